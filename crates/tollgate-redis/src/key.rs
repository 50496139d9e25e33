//! Names of counters in Redis.

use tollgate_core::Key;

/// The name of a counter: `<prefix>:<family>:<scope>:<policy>:{<subject>}`.
///
/// Each part is written by [`escape`], so the separators stand only where this function puts them, and no two keys are
/// named alike. The subject is the hash tag: all counters of one subject lie in one slot of a cluster. A hashed subject
/// stands as `#` and hexadecimal digits; an escaped one never begins with `#`.
pub(crate) fn name(key: &Key<'_>) -> Vec<u8> {
    name_with_tag(key, key.space().family().tag())
}

/// The name of a fixed window that is counted by INCREX: the other form is another key.
pub(crate) fn counter(key: &Key<'_>) -> Vec<u8> {
    name_with_tag(key, "i1")
}

fn name_with_tag(key: &Key<'_>, tag: &str) -> Vec<u8> {
    let space = key.space();
    let mut name = Vec::with_capacity(capacity(key));
    escape(&mut name, space.prefix().as_bytes());
    name.push(b':');
    name.extend_from_slice(tag.as_bytes());
    name.push(b':');
    escape(&mut name, space.scope().as_bytes());
    name.push(b':');
    escape(&mut name, space.policy().as_bytes());
    name.extend_from_slice(b":{");
    if key.is_hashed() {
        name.push(b'#');
        for byte in key.subject() {
            push_hex(&mut name, *byte);
        }
    } else {
        escape(&mut name, key.subject());
    }
    name.push(b'}');
    name
}

fn capacity(key: &Key<'_>) -> usize {
    let space = key.space();
    let parts = space.prefix().len() + space.scope().len() + space.policy().len();
    parts + key.subject().len() + 16
}

/// What the names of all counters under `prefix` begin with; it holds nothing that a glob pattern would read otherwise.
pub(crate) fn prefix(prefix: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(prefix.len() + 1);
    escape(&mut name, prefix.as_bytes());
    name.push(b':');
    name
}

/// Letters, digits and `-._~/@+=,` stand for themselves, any other byte as `%` and two hexadecimal digits.
fn escape(into: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/@+=,".contains(byte) {
            into.push(*byte);
        } else {
            into.push(b'%');
            push_hex(into, *byte);
        }
    }
}

fn push_hex(into: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    into.push(DIGITS[usize::from(byte >> 4)]);
    into.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use tollgate_core::{Algorithm, Policy, Quota, Space};

    use super::*;

    fn space(prefix: &str, scope: &str, policy: &str) -> Space {
        let policy = Policy::new(policy, Algorithm::TokenBucket, Quota::per_minute(1)).unwrap();
        Space::new(prefix, scope, &policy)
    }

    fn named(space: &Space, subject: &[u8]) -> String {
        String::from_utf8(name(&Key::new(space, subject).unwrap())).unwrap()
    }

    #[test]
    fn a_name_reads_like_its_parts() {
        let space = space("tollgate", "GET /users", "login");
        assert_eq!(
            named(&space, b"user:42"),
            "tollgate:b1:GET%20/users:login:{user%3a42}"
        );
    }

    #[test]
    fn braces_and_separators_in_a_part_are_not_those_of_the_name() {
        let mut names = HashSet::new();
        for (scope, policy, subject) in [
            ("a:b", "c", "d"),
            ("a", "b:c", "d"),
            ("a", "b", "c:{d}"),
            ("a", "b", "}{d"),
            ("a%3ab", "c", "d"),
            ("a", "b", "#64"),
        ] {
            let name = named(&space("p", scope, policy), subject.as_bytes());
            assert_eq!(name.matches(['{', '}']).count(), 2, "{name}");
            assert!(names.insert(name));
        }
    }

    #[test]
    fn a_hashed_subject_never_meets_one_spelled_like_it() {
        let space = space("p", "", "x");
        let long = named(&space, &[b'a'; 300]);
        let (_, tag) = long.split_once('{').unwrap();
        let spelled = named(&space, tag.trim_end_matches('}').as_bytes());
        assert_ne!(long, spelled);
    }

    proptest! {
        #[test]
        fn no_two_subjects_share_a_name(a in any::<Vec<u8>>(), b in any::<Vec<u8>>()) {
            prop_assume!(!a.is_empty() && !b.is_empty());
            let space = space("p", "s", "x");
            prop_assert_eq!(a == b, named(&space, &a) == named(&space, &b));
        }

        #[test]
        fn no_name_holds_a_character_that_globs_read_otherwise(subject in any::<Vec<u8>>(), prefix in any::<String>()) {
            prop_assume!(!subject.is_empty());
            let name = named(&space(&prefix, "*?", "[x]"), &subject);
            prop_assert!(!name.contains(['*', '?', '[', ']', '\\', '^']), "{}", name);
        }
    }
}
