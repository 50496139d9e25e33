//! The guide to the recipes.

use std::path::Path;

/// The file that a section of the guide links to, and the lines it shows of it.
fn sections(guide: &str) -> Vec<(&str, Vec<&str>)> {
    let sections = guide.split("\n## ").skip(1);
    let parsed = sections.map(|section| {
        let (_, link) = section.split_once("[Source](../").unwrap();
        let (source, rest) = link.split_once(')').unwrap();
        let (_, code) = rest.split_once("```rust\n").unwrap();
        let (code, _) = code.split_once("```").unwrap();
        (source, code.lines().collect())
    });
    parsed.collect()
}

#[test]
fn the_guide_shows_three_lines_of_each_recipe() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/recipes.md")).unwrap();
    let sections = sections(&guide);
    assert_eq!(sections.len(), 8);
    for (source, shown) in sections {
        let code = std::fs::read_to_string(root.join(source)).unwrap();
        assert_eq!(shown.len(), 3, "{source}");
        for line in shown {
            assert!(
                code.lines().any(|own| own.trim() == line),
                "{source}: {line}"
            );
        }
    }
}
