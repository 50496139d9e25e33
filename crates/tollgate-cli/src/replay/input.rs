//! Where log lines come from: a file or standard input, plain or gzip, one line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use indicatif::ProgressBar;

/// Longest line that is read; what is longer is skipped and reported, so that memory stays bounded.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;

const BUFFER_BYTES: usize = 128 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The line's bytes without its line ending.
    Text(&'a [u8]),
    /// A line of more than [`MAX_LINE_BYTES`]; its content was skipped.
    TooLong,
}

/// Reads lines as bytes and counts them from 1.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Number of the line last returned.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        // Room for the longest line and its line ending.
        let bound = u64::try_from(MAX_LINE_BYTES + 2).unwrap_or(u64::MAX);
        if self
            .reader
            .by_ref()
            .take(bound)
            .read_until(b'\n', &mut self.buffer)?
            == 0
        {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.buffer.last() == Some(&b'\n');
        if !ended && self.buffer.len() > MAX_LINE_BYTES {
            self.reader.skip_until(b'\n')?;
        }
        let mut line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.len() > MAX_LINE_BYTES {
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(Line::Text(line)))
    }
}

/// Opens `path`, or standard input for `-`, and advances `progress` by the bytes read.
///
/// # Errors
///
/// The file cannot be opened or its first bytes cannot be read.
pub(crate) fn open(path: &str, progress: &ProgressBar) -> Result<Lines<Box<dyn BufRead>>> {
    let raw: Box<dyn Read> = if path == "-" {
        Box::new(progress.wrap_read(io::stdin()))
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
        progress.set_length(file.metadata().map_or(0, |metadata| metadata.len()));
        Box::new(progress.wrap_read(file))
    };
    let reader = decompressed(raw).with_context(|| format!("cannot read {path}"))?;
    Ok(Lines::new(reader))
}

/// Unpacks gzip, recognised by its first two bytes (RFC 1952, section 2.3.1), and passes anything else on.
fn decompressed<'a>(mut raw: Box<dyn Read + 'a>) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut start = Vec::with_capacity(GZIP_MAGIC.len());
    raw.by_ref().take(2).read_to_end(&mut start)?;
    let is_gzip = start == GZIP_MAGIC;
    let whole = Cursor::new(start).chain(raw);
    if is_gzip {
        // Rotated logs are often several gzip members in a row.
        let decoder = MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole));
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)));
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, whole)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines_of(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(decompressed(Box::new(bytes)).unwrap());
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong => None,
            });
        }
        found
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn text(line: &str) -> Option<Vec<u8>> {
        Some(line.as_bytes().to_vec())
    }

    #[test]
    fn both_line_endings_and_a_missing_last_one_are_read() {
        assert_eq!(
            lines_of(b"a\r\nb\n\nc"),
            [text("a"), text("b"), text(""), text("c")]
        );
    }

    #[test]
    fn empty_and_one_byte_inputs_are_not_mistaken_for_gzip() {
        assert_eq!(lines_of(b""), Vec::<Option<Vec<u8>>>::new());
        assert_eq!(lines_of(b"x"), [text("x")]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(lines_of(b"\xef\xbb\xbfa\n"), [text("a")]);
    }

    #[test]
    fn several_gzip_members_are_one_stream() {
        let packed = [gzip(b"a\nb"), gzip(b"c\nd\n")].concat();
        assert_eq!(lines_of(&packed), [text("a"), text("bc"), text("d")]);
    }

    #[test]
    fn a_cut_off_gzip_file_is_an_error_and_not_a_shorter_log() {
        let packed = gzip(&b"a line of some length\n".repeat(1000));
        let mut lines = Lines::new(decompressed(Box::new(&packed[..packed.len() / 2])).unwrap());
        let outcome = loop {
            match lines.next_line() {
                Ok(Some(_)) => {}
                other => break other.map(|line| line.is_none()),
            }
        };
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_line_at_the_bound_is_kept_and_a_longer_one_is_skipped_whole() {
        let longest = vec![b'x'; MAX_LINE_BYTES];
        for ending in ["\n", "\r\n"] {
            let mut input = longest.clone();
            input.extend_from_slice(ending.as_bytes());
            for extra in [1, 2, 3, MAX_LINE_BYTES, 5 * MAX_LINE_BYTES] {
                input.extend_from_slice(&vec![b'y'; MAX_LINE_BYTES + extra]);
                input.extend_from_slice(ending.as_bytes());
            }
            input.extend_from_slice(b"after");
            let expected = [
                vec![Some(longest.clone())],
                vec![None; 5],
                vec![text("after")],
            ]
            .concat();
            assert!(lines_of(&input) == expected, "with line ending {ending:?}");
        }
    }

    #[test]
    fn lines_are_numbered_from_one_and_long_ones_count() {
        let mut input = vec![b'x'; MAX_LINE_BYTES * 2];
        input.extend_from_slice(b"\nlast\n");
        let mut lines = Lines::new(&input[..]);
        assert_eq!(lines.next_line().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.number(), 1);
        assert_eq!(lines.next_line().unwrap(), Some(Line::Text(b"last")));
        assert_eq!(lines.number(), 2);
    }
}
