//! Source files stay short enough to be read in one go.

use super::{Source, Violation};

/// What a file aims for. Above it a file is mentioned.
const AIM: usize = 500;
/// What a file must not exceed.
const LIMIT: usize = 600;

pub(super) fn check(source: &Source) -> Option<Violation> {
    let lines = lines(source);
    (lines > LIMIT).then(|| {
        let message = format!("{lines} lines; split it, {LIMIT} is the limit and {AIM} the aim");
        Violation::file(&source.path, message)
    })
}

/// A remark on a file that grows towards the limit.
pub(super) fn remark(source: &Source) -> Option<String> {
    let lines = lines(source);
    (lines > AIM && lines <= LIMIT)
        .then(|| format!("{}: {lines} lines, time to split it", source.path))
}

/// Files under a `data` folder are test data, not source to be read.
fn lines(source: &Source) -> usize {
    if source.path.contains("/data/") {
        return 0;
    }
    source.text.lines().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> Source {
        Source {
            path: path.to_owned(),
            text: "//\n".repeat(lines),
        }
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        assert!(check(&file("a/src/lib.rs", LIMIT)).is_none());
        let violation = check(&file("a/src/lib.rs", LIMIT + 1)).unwrap();
        assert!(violation.message.starts_with("601 lines"));
    }

    #[test]
    fn a_file_between_aim_and_limit_is_mentioned() {
        assert!(remark(&file("a/src/lib.rs", AIM)).is_none());
        assert!(remark(&file("a/src/lib.rs", AIM + 1)).is_some());
        assert!(remark(&file("a/src/lib.rs", LIMIT + 1)).is_none());
    }

    #[test]
    fn test_data_may_be_long() {
        assert!(check(&file("a/tests/data/vectors.rs", LIMIT + 1)).is_none());
    }
}
