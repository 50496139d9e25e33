//! What is logged when a store fails and recovers.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use quanta::Mock;
use tollgate_core::{ErrorKind, FailureMode, Limiter, Source};
use tollgate_layers::Instrumented;
use tracing::Level;

use crate::support::{Fault, Faulty, Lines, at, policy};

/// A limiter on a store that fails on command, the command, and the clock that outages are timed by.
struct Scene {
    limiter: Limiter<Instrumented<Faulty>>,
    store: Faulty,
    clock: quanta::Clock,
    time: Arc<Mock>,
}

impl Scene {
    fn new() -> Self {
        let store = Faulty::new().with_stand_in();
        let (clock, time) = quanta::Clock::mock();
        let watched = Instrumented::new(store.clone()).name("redis");
        Self {
            limiter: Limiter::new(watched, policy("p", "100000/minute")),
            store,
            clock,
            time,
        }
    }

    fn hit(&self, times: u32) {
        for _ in 0..times {
            let _ = self.limiter.hit_now("user:42").unwrap();
        }
    }

    fn wait(&self, millis: u64) {
        self.time.increment(Duration::from_millis(millis));
    }

    /// What `play` made the store log, spans left out.
    fn log(&self, play: impl FnOnce(&Self)) -> Vec<String> {
        let lines = Lines::of(|| quanta::with_clock(&self.clock, || play(self)));
        let events = lines.into_iter().filter(|line| line.contains(" event "));
        events.collect()
    }
}

const RECOVERED: &str = "the store answers again";

#[test]
fn an_outage_of_a_thousand_calls_is_one_warning_and_its_end_one_info() {
    let lines = Scene::new().log(|scene| {
        scene.store.fail(ErrorKind::Timeout);
        scene.hit(999);
        scene.wait(4_000);
        scene.hit(1);
        scene.wait(1_000);
        scene.store.set(Fault::None);
        scene.hit(1);
        scene.wait(1_000);
        scene.hit(500);
    });
    assert_eq!(
        lines,
        [
            "WARN event message=the store does not answer; until it does, the failure mode decides \
             store=redis kind=timeout error=faulty: store timed out: on command",
            "INFO event message=the store answers again store=redis lasted=5s answers=1000",
        ]
    );
}

#[test]
fn eight_threads_in_one_outage_log_one_warning_and_one_info() {
    let scene = Scene::new();
    let lines = Lines::default();
    let dispatch = lines.dispatch();
    let (failed, answered) = (Barrier::new(9), Barrier::new(9));
    let watched = |play: &dyn Fn()| {
        tracing::dispatcher::with_default(&dispatch, || quanta::with_clock(&scene.clock, play));
    };
    let thread = || {
        scene.hit(125);
        failed.wait();
        scene.hit(10);
        answered.wait();
        scene.hit(10);
    };
    scene.store.fail(ErrorKind::Unavailable);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| watched(&thread));
        }
        failed.wait();
        scene.store.set(Fault::None);
        answered.wait();
        scene.wait(60_000);
    });
    scene.wait(60_000);
    watched(&|| scene.hit(1));
    // Some of the ten hits after the first barrier may still have met the fault, so the count has a range.
    let lines = lines.take();
    assert_eq!(at(Level::WARN, &lines).len(), 1);
    let [recovered] = at(Level::INFO, &lines)[..] else {
        panic!("{lines:#?}");
    };
    let (_, answers) = recovered.split_once("answers=").unwrap();
    let answers: u32 = answers.parse().unwrap();
    assert!((1000..=1080).contains(&answers), "{recovered}");
}

#[test]
fn a_store_that_fails_every_other_call_is_one_outage() {
    let lines = Scene::new().log(|scene| {
        for _ in 0..100 {
            scene.store.fail(ErrorKind::Overloaded);
            scene.hit(1);
            scene.store.set(Fault::None);
            scene.wait(500);
            scene.hit(1);
        }
        scene.wait(1_000);
        scene.hit(1);
    });
    assert_eq!(at(Level::WARN, &lines).len(), 1);
    let [recovered] = at(Level::INFO, &lines)[..] else {
        panic!("{lines:#?}");
    };
    assert!(recovered.ends_with("lasted=50s answers=100"), "{recovered}");
}

#[test]
fn the_next_outage_is_told_anew() {
    let lines = Scene::new().log(|scene| {
        for _ in 0..3 {
            scene.store.fail(ErrorKind::Timeout);
            scene.hit(10);
            scene.store.set(Fault::None);
            scene.hit(1);
            scene.wait(1_000);
            scene.hit(1);
        }
    });
    assert_eq!(at(Level::WARN, &lines).len(), 3);
    let recovered = at(Level::INFO, &lines);
    assert_eq!(recovered.len(), 3);
    assert!(recovered.iter().all(|line| line.ends_with("answers=10")));
}

#[test]
fn a_stand_in_that_judges_is_an_outage_too() {
    let lines = Scene::new().log(|scene| {
        scene.store.set(Fault::As(Source::Fallback));
        scene.hit(20);
        scene.store.set(Fault::As(Source::NativeCounter));
        scene.hit(1);
        scene.wait(1_000);
        scene.hit(1);
    });
    assert_eq!(
        lines,
        [
            "WARN event message=the store does not answer; until it does, another judges in its place store=redis",
            "INFO event message=the store answers again store=redis lasted=0ns answers=20",
        ]
    );
}

#[test]
fn a_remembered_denial_is_no_sign_of_recovery() {
    let lines = Scene::new().log(|scene| {
        scene.store.fail(ErrorKind::Timeout);
        scene.hit(1);
        scene.store.set(Fault::As(Source::DenyCache));
        for _ in 0..10 {
            scene.wait(1_000);
            scene.hit(1);
        }
    });
    assert!(
        !lines.iter().any(|line| line.contains(RECOVERED)),
        "{lines:#?}"
    );
}

#[test]
fn an_error_that_does_not_pass_is_told_once_for_each_kind_until_the_store_recovers() {
    let kinds = [ErrorKind::Refused, ErrorKind::Corrupt, ErrorKind::Other];
    let lines = Scene::new().log(|scene| {
        for _ in 0..50 {
            for kind in kinds {
                scene.store.fail(kind);
                scene.hit(1);
            }
        }
        scene.store.set(Fault::None);
        scene.hit(1);
        scene.wait(1_000);
        scene.hit(1);
        scene.store.fail(ErrorKind::Refused);
        scene.hit(5);
    });
    let told = at(Level::ERROR, &lines);
    let kind = |line: &&str| {
        line.split(" kind=")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    let told: Vec<String> = told.iter().map(kind).collect();
    assert_eq!(told, ["refused", "corrupt", "other", "refused"]);
    assert_eq!(at(Level::WARN, &lines).len(), 2);
}

#[test]
fn a_mistake_of_the_caller_is_not_logged() {
    let lines = Scene::new().log(|scene| {
        for kind in [ErrorKind::InvalidInput, ErrorKind::Unsupported] {
            scene.store.fail(kind);
            scene.limiter.hit_now("user:42").unwrap_err();
        }
    });
    assert_eq!(lines, [""; 0]);
}

#[test]
fn a_reset_that_is_refused_is_an_error_but_no_outage() {
    let lines = Scene::new().log(|scene| {
        for kind in [ErrorKind::Timeout, ErrorKind::Refused, ErrorKind::Refused] {
            scene.store.fail(kind);
            futures::executor::block_on(scene.limiter.reset("user:42")).unwrap_err();
        }
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert_eq!(at(Level::ERROR, &lines).len(), 1);
}

#[test]
fn a_limiter_that_denies_for_want_of_a_store_says_so_once() {
    let lines = Scene::new().log(|scene| {
        scene.store.fail(ErrorKind::Timeout);
        let closed = scene.limiter.clone().on_failure(FailureMode::Closed);
        for _ in 0..10 {
            assert!(!closed.hit_now("user:42").unwrap().is_allowed());
        }
    });
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

#[test]
fn a_span_says_what_was_asked_and_how_it_ended() {
    let scene = Scene::new();
    let play = || {
        scene.hit(1);
        let _ = futures::executor::block_on(scene.limiter.peek("user:42")).unwrap();
    };
    let lines = Lines::of(|| quanta::with_clock(&scene.clock, play));
    assert_eq!(
        lines,
        [
            "DEBUG store_call store=redis verb=hit policies=p",
            "DEBUG recorded outcome=allowed",
            "DEBUG recorded elapsed_us=0",
            "DEBUG store_call store=redis verb=peek policies=p",
            "DEBUG recorded outcome=allowed",
            "DEBUG recorded elapsed_us=0",
        ]
    );
}
