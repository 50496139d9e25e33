//! The shortest whole program: three hits a minute for each user, in this process.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tollgate_memory::{Limiter, MemoryStore, Quota};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::new(MemoryStore::new(), "3/minute".parse::<Quota>()?);

    for _ in 0..4 {
        let decision = limiter.hit_now("user:42")?;
        match decision.retry_after() {
            Some(wait) if !decision.is_allowed() => println!("denied, try again in {wait:?}"),
            _ => println!(
                "allowed, {} of {} left",
                decision.remaining(),
                decision.limit()
            ),
        }
    }
    Ok(())
}
