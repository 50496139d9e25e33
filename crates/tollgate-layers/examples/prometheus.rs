//! What a scrape of an instrumented limiter shows, after a minute of traffic that a manual clock plays in no time.
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tollgate_layers::{Instrumented, observe_memory};
use tollgate_memory::{Algorithm, Limiter, ManualClock, MemoryStore, Policies, Policy};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", scrape()?);
    Ok(())
}

/// Plays the traffic, and renders the metrics as a `/metrics` route would.
pub(crate) fn scrape() -> Result<String, Box<dyn Error>> {
    // Without buckets the exporter makes a summary of a histogram. A store on the network answers in about a millisecond.
    let buckets = [
        0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
    ];
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("duration_seconds".to_owned()), &buckets)?
        .build_recorder();
    let prometheus = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    let clock = ManualClock::default();
    let memory = MemoryStore::builder().clock(clock.clone()).build()?;
    let store = Instrumented::new(memory.clone())
        .name("memory")
        .time_in_process(true);
    let policies = Policies::new([
        Policy::new("burst", Algorithm::TokenBucket, "5/second".parse()?)?,
        Policy::new("sustained", Algorithm::SlidingWindow, "20/minute".parse()?)?,
    ])?;
    let limiter = Limiter::new(store, policies);

    // Ten hits at once, every second for six seconds.
    for _ in 0..6 {
        for _ in 0..10 {
            let _ = limiter.hit_now("user:42")?;
        }
        clock.advance(Duration::from_secs(1));
    }
    // More than a burst can ever hold.
    let _ = limiter.hit_n_now("user:43", 6)?;

    observe_memory("memory", &memory);
    Ok(prometheus.render())
}
