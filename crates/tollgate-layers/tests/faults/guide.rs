//! The guide says what is so: its code is run here, and every run stands in its table.

use crate::run::Scene;

const GUIDE: &str = include_str!("../../../../docs/when-the-store-is-down.md");
const STACK: &str = include_str!("stack.rs");

/// Every run stands in the guide's table of figures.
pub(crate) fn lists(scene: Scene) -> bool {
    GUIDE.contains(&format!("| {} | {} |", scene.store, scene.fault))
}

#[test]
fn the_stack_that_the_guide_shows_is_the_one_that_is_put_to_the_test() {
    let mut lines = 0;
    for piece in GUIDE.split("```rust\n").skip(1) {
        let code = piece.split("```").next().unwrap_or_default();
        for line in code.lines() {
            lines += 1;
            assert!(STACK.contains(line.trim()), "{line}");
        }
    }
    assert_eq!(lines, 4);
}
