//! The guides in `docs/` say what is so: their code is code of this crate, and the cases they name exist.

use std::collections::BTreeSet;

const GUIDES: [(&str, &str); 2] = [
    (
        "writing-a-store.md",
        include_str!("../../../docs/writing-a-store.md"),
    ),
    (
        "conformance.md",
        include_str!("../../../docs/conformance.md"),
    ),
];

const SOURCES: [&str; 4] = [
    include_str!("../examples/map_store/backend.rs"),
    include_str!("../examples/map_store/main.rs"),
    include_str!("conformance_cas.rs"),
    include_str!("map_harness/mod.rs"),
];

/// What stands between the fences of Rust code.
fn code(guide: &str) -> impl Iterator<Item = &str> {
    let fenced = guide.split("```rust\n").skip(1);
    fenced.filter_map(|rest| rest.split("```").next())
}

#[test]
fn every_piece_of_code_in_the_guides_stands_in_this_crate() {
    let mut pieces = 0;
    for (name, guide) in GUIDES {
        for piece in code(guide) {
            pieces += 1;
            let known = SOURCES.iter().any(|source| source.contains(piece));
            assert!(known, "{name} shows code that is nowhere here:\n{piece}");
        }
    }
    assert!(pieces > 5, "the guides show code");
}

#[test]
fn every_case_that_the_guides_name_exists() {
    let cases: BTreeSet<String> = tollgate_conformance::case_names().collect();
    let families: BTreeSet<&str> = cases
        .iter()
        .filter_map(|case| case.split("::").next())
        .collect();
    let mut named = 0;
    for (guide, text) in GUIDES {
        for quoted in text.split('`').skip(1).step_by(2) {
            let Some((family, case)) = quoted.split_once("::") else {
                continue;
            };
            if families.contains(family) && !case.is_empty() {
                named += 1;
                assert!(
                    cases.contains(quoted),
                    "{guide} names {quoted}, which is no case"
                );
            }
        }
    }
    assert!(named > 30, "the guides name cases");
}
