//! Keys never meet, whatever their parts hold.

use std::cmp::Ordering;
use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::{Algorithm, ErrorKind, Key, Policy, Quota, Space, join_subject};

fn policy(name: &str, algorithm: Algorithm) -> Policy {
    Policy::new(name, algorithm, Quota::per_second(1)).expect("a legal name")
}

/// Everything a key is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    prefix: String,
    scope: String,
    name: String,
    algorithm: Algorithm,
    subject: Vec<u8>,
}

impl Parts {
    fn space(&self) -> Space {
        Space::new(
            &self.prefix,
            &self.scope,
            &policy(&self.name, self.algorithm),
        )
    }

    /// `other`, but for the parts that are shared.
    fn sharing(&self, other: &Self, [prefix, scope, name, algorithm, subject]: [bool; 5]) -> Self {
        let from = |shared| if shared { self } else { other };
        Self {
            prefix: from(prefix).prefix.clone(),
            scope: from(scope).scope.clone(),
            name: from(name).name.clone(),
            algorithm: from(algorithm).algorithm,
            subject: from(subject).subject.clone(),
        }
    }

    /// Algorithms of one family share their state, so they share their keys.
    fn means_the_same_as(&self, other: &Self) -> bool {
        self.algorithm.family() == other.algorithm.family()
            && Self {
                algorithm: other.algorithm,
                ..self.clone()
            } == *other
    }
}

/// Few different characters, so that parts often run into each other: digits, colons, slashes, tags.
fn text(longest: usize) -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "", "a", "b", ":", "/", "1", "2", "1:", "2:a", "v", "h", "b1", "b1v", "{", "}", "*", " ",
    ]);
    vec(piece, 0..longest).prop_map(|pieces| pieces.concat())
}

fn parts() -> impl Strategy<Value = Parts> {
    let name = text(4).prop_map(|name| format!("n{name}"));
    let subject = prop_oneof![
        6 => text(6).prop_map(String::into_bytes),
        2 => vec(any::<u8>(), 1..8),
        1 => vec(any::<u8>(), 250..270),
    ];
    let subject = subject.prop_filter("empty", |subject| !subject.is_empty());
    (
        text(4),
        text(4),
        name,
        proptest::sample::select(Algorithm::ALL.to_vec()),
        subject,
    )
        .prop_map(|(prefix, scope, name, algorithm, subject)| Parts {
            prefix,
            scope,
            name,
            algorithm,
            subject,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn two_keys_are_the_same_in_every_respect_or_in_none(one in parts(), other in parts(), shared in any::<[bool; 5]>()) {
        let other = one.sharing(&other, shared);
        let (one_space, other_space) = (one.space(), other.space());
        let one_key = Key::new(&one_space, &one.subject).expect("not empty");
        let other_key = Key::new(&other_space, &other.subject).expect("not empty");
        let same = one.means_the_same_as(&other);
        prop_assert_eq!(one_key.encode() == other_key.encode(), same);
        prop_assert_eq!(one_key == other_key, same);
        let by_digest = one_key.digest() == other_key.digest() && one_key.subject() == other_key.subject();
        prop_assert_eq!(by_digest, same);
        prop_assert_eq!(one_key.cmp(&other_key) == Ordering::Equal, same);
        prop_assert_eq!(one_key.cmp(&other_key), other_key.cmp(&one_key).reverse());
        prop_assert_eq!(HashSet::from([one_key, other_key]).len() == 1, same);
        prop_assert_eq!(one_space == other_space, one_space.digest() == other_space.digest());
    }

    /// The same letters, cut into parts at other places.
    #[test]
    fn parts_cut_at_other_places_make_another_key(letters in text(12), cuts in vec(any::<prop::sample::Index>(), 6)) {
        let cut = |cuts: &[prop::sample::Index]| {
            let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(letters.len() + 1)).collect();
            places.sort_unstable();
            let [first, second, third] = places[..] else {
                panic!("three cuts");
            };
            Parts {
                prefix: letters[..first].to_owned(),
                scope: letters[first..second].to_owned(),
                name: format!("n{}", &letters[second..third]),
                algorithm: Algorithm::Gcra,
                subject: format!("s{}", &letters[third..]).into_bytes(),
            }
        };
        let (one, other) = (cut(&cuts[..3]), cut(&cuts[3..]));
        let (one_space, other_space) = (one.space(), other.space());
        let one_key = Key::new(&one_space, &one.subject).expect("not empty");
        let other_key = Key::new(&other_space, &other.subject).expect("not empty");
        prop_assert_eq!(one_key == other_key, one == other);
        prop_assert_eq!(one_key.encode() == other_key.encode(), one == other);
    }

    #[test]
    fn joined_subjects_are_the_same_only_if_their_parts_are(one in vec(text(3), 0..4), other in vec(text(3), 0..4)) {
        prop_assert_eq!(join_subject(&one) == join_subject(&other), one == other);
    }
}

#[test]
fn a_slash_belongs_to_the_part_it_stands_in() {
    let gcra = policy("p", Algorithm::Gcra);
    let (one, other) = (Space::new("", "a/b", &gcra), Space::new("", "a", &gcra));
    assert_ne!(
        Key::new(&one, b"c").unwrap(),
        Key::new(&other, b"b/c").unwrap()
    );
    assert_ne!(join_subject(["a/b", "c"]), join_subject(["a", "b/c"]));
}

/// A key that is stored for long must be found again by every later version.
#[test]
fn the_encoding_is_the_documented_one() {
    let space = Space::new("app", "login", &policy("per user", Algorithm::TokenBucket));
    assert_eq!(
        Key::new(&space, b"user:7").unwrap().encode(),
        b"b1v3:app5:login8:per useruser:7"
    );
    let families = [
        (Algorithm::FixedWindow, "f1v"),
        (Algorithm::SlidingWindow, "w1v"),
        (Algorithm::SlidingLog, "l1v"),
        (Algorithm::TokenBucket, "b1v"),
        (Algorithm::LeakyBucket, "b1v"),
        (Algorithm::Gcra, "b1v"),
    ];
    for (algorithm, tag) in families {
        let space = Space::new("", "", &policy("p", algorithm));
        let encoded = Key::new(&space, b"x").unwrap().encode();
        assert_eq!(encoded, format!("{tag}0:0:1:px").as_bytes());
    }
}

/// As above for stores that keep the digest: these are the first 16 bytes of the SHA-256 of the four parts.
#[test]
fn the_digest_is_the_documented_one() {
    use sha2::{Digest, Sha256};
    let space = Space::new("app", "login", &policy("per user", Algorithm::TokenBucket));
    let mut parts = Vec::new();
    for part in ["app", "login", "per user", "b1"] {
        parts.extend_from_slice(&u64::try_from(part.len()).unwrap().to_le_bytes());
        parts.extend_from_slice(part.as_bytes());
    }
    let hash = Sha256::digest(parts);
    assert_eq!(space.digest().to_be_bytes(), hash[..16]);
}

#[test]
fn a_subject_of_256_bytes_stands_as_it_is_and_one_of_257_is_hashed() {
    let space = Space::new("", "", &policy("p", Algorithm::Gcra));
    let subject = vec![b'x'; Key::MAX_SUBJECT + 1];
    let longest = Key::new(&space, &subject[..256]).unwrap();
    assert!(!longest.is_hashed());
    assert_eq!(longest.subject(), &subject[..256]);
    let hashed = Key::new(&space, &subject).unwrap();
    assert!(hashed.is_hashed());
    assert_eq!(hashed.subject().len(), 32);
    let mut other = subject.clone();
    other[256] = b'y';
    assert_ne!(hashed, Key::new(&space, &other).unwrap());
    assert_eq!(hashed, Key::new(&space, &subject.clone()).unwrap());
}

/// Whoever knows the hash of somebody's long subject cannot name it as a subject of his own.
#[test]
fn a_subject_spelled_like_a_hash_is_another_key() {
    let space = Space::new("", "", &policy("p", Algorithm::Gcra));
    let long = vec![b'x'; 1_000];
    let hashed = Key::new(&space, &long).unwrap();
    let spelled = hashed.subject().to_vec();
    let verbatim = Key::new(&space, &spelled).unwrap();
    assert_eq!(verbatim.subject(), hashed.subject());
    assert_ne!(verbatim, hashed);
    assert_ne!(verbatim.encode(), hashed.encode());
    assert_ne!(verbatim.digest(), hashed.digest());
}

#[test]
fn a_subject_may_hold_any_bytes_but_not_none() {
    let space = Space::new("", "", &policy("p", Algorithm::Gcra));
    for subject in [
        &b"\0"[..],
        b"\xff\xfe",
        b"a\nb",
        b"*",
        "\u{1f600}".as_bytes(),
    ] {
        assert_eq!(Key::new(&space, subject).unwrap().subject(), subject);
    }
    let error = Key::new(&space, b"").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("at least one byte"), "{error}");
}
