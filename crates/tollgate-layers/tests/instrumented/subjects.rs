//! Subjects stand in logs only on request.

use proptest::prelude::*;
use tollgate_core::{ErrorKind, Limiter};
use tollgate_layers::{Instrumented, SubjectLogging};

use crate::support::{Fault, Faulty, Lines, policy};

/// Everything that is said of a hit that is admitted, one that is denied and one that fails.
fn said(
    subject: &[u8],
    settings: impl FnOnce(Instrumented<Faulty>) -> Instrumented<Faulty>,
) -> Vec<String> {
    let store = Faulty::new();
    let watched = settings(Instrumented::new(store.clone()));
    let limiter = Limiter::new(watched, policy("p", "1/minute"));
    Lines::of(|| {
        let _ = limiter.hit_now(subject).unwrap();
        let _ = limiter.hit_now(subject).unwrap();
        // Somebody's words, which may happen to name a subject.
        store.set(Fault::Error(
            ErrorKind::Corrupt,
            "the key user:42 holds something else",
        ));
        let _ = limiter.hit_now(subject).unwrap();
        store.set(Fault::Error(ErrorKind::Other, "user:42 is not well"));
        let _ = limiter.hit_now(subject).unwrap();
    })
}

fn denials(lines: &[String]) -> Vec<&String> {
    lines
        .iter()
        .filter(|line| line.contains("message=denied"))
        .collect()
}

#[test]
fn denials_are_logged_on_request_without_a_subject() {
    assert_eq!(denials(&said(b"user:42", |store| store)).len(), 0);
    let lines = said(b"user:42", |store| store.log_denials(true));
    assert_eq!(
        denials(&lines),
        [
            "DEBUG event message=denied store=store scope= policy=p shadow=false retry_after=Some(60s)"
        ]
    );
    assert!(
        !lines.iter().any(|line| line.contains("user:42")),
        "{lines:#?}"
    );
}

#[test]
fn a_verbatim_subject_stands_as_it_is_and_escaped() {
    let verbatim = |store: Instrumented<Faulty>| {
        store
            .log_denials(true)
            .log_subjects(SubjectLogging::Verbatim)
    };
    let lines = said(b"user:42", verbatim);
    assert!(
        denials(&lines)[0].ends_with(" subject=user:42"),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("the key user:42 holds"))
    );
    let lines = said(b"a\n\xff", verbatim);
    assert!(
        denials(&lines)[0].ends_with(r" subject=a\n\xff"),
        "{lines:#?}"
    );
    let lines = said(&[b'x'; 1000], verbatim);
    assert!(
        denials(&lines)[0].contains(" subject=sha256:"),
        "{lines:#?}"
    );
}

#[test]
fn a_hash_is_the_same_for_one_subject_and_another_for_others() {
    let hash = |subject: &[u8]| {
        let lines = said(subject, |store| {
            store.log_denials(true).log_subjects(SubjectLogging::Hashed)
        });
        let (_, hash) = denials(&lines)[0].split_once(" subject=").unwrap();
        hash.to_owned()
    };
    assert_eq!(hash(b"user:42").len(), 16);
    assert_eq!(hash(b"user:42"), hash(b"user:42"));
    assert_ne!(hash(b"user:42"), hash(b"user:43"));
    // SHA-256 of the subject alone begins like this; whoever has a list of users could look it up.
    assert_ne!(hash(b"user:42"), "ea3fd43be1e57d62");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_event_shows_a_hashed_subject(
        // Long enough not to stand in an event by chance.
        subject in "[ -~]{12,40}",
    ) {
        let lines = said(subject.as_bytes(), |store| {
            store.log_denials(true).log_subjects(SubjectLogging::Hashed)
        });
        prop_assert_eq!(denials(&lines).len(), 1);
        for line in &lines {
            prop_assert!(!line.contains(&subject), "{line}");
            prop_assert!(!line.contains(&subject.escape_debug().to_string()), "{line}");
        }
    }
}
