//! What a replay found, for people and for machines.

mod json;
mod table;

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use tollgate_core::Timestamp;

use super::Replay;
use super::log::{LeftOut, LogOptions, LogSummary, name_of};
use super::pattern::Pattern;
use super::text::{counted, excerpt};

/// Where the hits came from.
#[derive(Debug)]
pub(crate) enum Traffic {
    Log(Box<PlayedLog>),
    Pattern(Pattern),
}

/// A log, and how it was read.
#[derive(Debug)]
pub(crate) struct PlayedLog {
    pub(crate) options: LogOptions,
    pub(crate) summary: LogSummary,
}

/// A replay that is over.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) replay: &'a Replay,
    pub(crate) traffic: &'a Traffic,
    /// How many of the worst subjects to name.
    pub(crate) worst: usize,
}

impl Report<'_> {
    /// Writes the first few lines that were left out, and how many there were.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn write_warnings(&self, out: &mut impl Write) -> Result<()> {
        let Traffic::Log(log) = self.traffic else {
            return Ok(());
        };
        let name = self.source_name();
        for (what, left_out) in log.summary.left_out() {
            for line in &left_out.first {
                writeln!(out, "warning: {name}:{}: {what}: {line}", line.number)?;
            }
            let shown = u64::try_from(left_out.first.len())?;
            if left_out.lines > shown {
                let all = counted(left_out.lines, "line");
                writeln!(
                    out,
                    "warning: {name}: {all} {what}, of which the first {shown} are shown"
                )?;
            }
        }
        Ok(())
    }

    /// The log's path, or the pattern's name.
    fn source_name(&self) -> String {
        match self.traffic {
            Traffic::Log(log) => excerpt(name_of(&log.options.path).as_bytes(), 200),
            Traffic::Pattern(pattern) => format!("pattern {}", pattern.name()),
        }
    }

    /// The same without folders, to go into a title.
    pub(crate) fn short_source_name(&self) -> String {
        let name = self.source_name();
        let file_name = Path::new(&name)
            .file_name()
            .map_or(name.as_str().into(), OsStr::to_string_lossy);
        excerpt(file_name.as_bytes(), 50)
    }

    /// Whether a subject is a client, rather than a path or something else.
    fn subjects_are_clients(&self) -> bool {
        match self.traffic {
            Traffic::Log(log) => log.options.key.is_address(),
            Traffic::Pattern(_) => true,
        }
    }

    /// What a subject is called.
    fn subject_noun(&self) -> &'static str {
        if self.subjects_are_clients() {
            "client"
        } else {
            "subject"
        }
    }

    /// So many subjects: `1,753 clients`.
    pub(crate) fn counted_subjects(&self) -> String {
        let count = u64::try_from(self.replay.subjects.len()).unwrap_or(u64::MAX);
        counted(count, self.subject_noun())
    }

    /// From when to when the traffic went.
    pub(crate) fn span(&self) -> String {
        let (first, last) = (self.replay.first, self.replay.last);
        match self.traffic {
            Traffic::Log(_) => {
                format!("{} to {} UTC", date_and_time(first), date_and_time(last))
            }
            Traffic::Pattern(_) => format!("over {}", seconds(last)),
        }
    }
}

impl LogSummary {
    /// Lines that were not played, by the reason.
    fn left_out(&self) -> [(&'static str, &LeftOut); 3] {
        [
            ("malformed", &self.malformed),
            ("without the key", &self.without_key),
            ("without a cost", &self.without_cost),
        ]
    }
}

/// `2015-05-17 10:05:03`.
fn date_and_time(time: Timestamp) -> String {
    to_jiff(time).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Seconds since the start of a pattern, with the decimals that are needed.
fn seconds(time: Timestamp) -> String {
    let micros = time.as_micros();
    let whole = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    format!("{} s", whole.trim_end_matches('0').trim_end_matches('.'))
}

/// The same instant for the calendar.
pub(crate) fn to_jiff(time: Timestamp) -> jiff::Timestamp {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        let time = Timestamp::from_micros(1_431_857_103_500_000).unwrap();
        assert_eq!(date_and_time(time), "2015-05-17 10:05:03");
        for (micros, text) in [
            (0, "0 s"),
            (59_000_000, "59 s"),
            (10_500_000, "10.5 s"),
            (1, "0.000001 s"),
        ] {
            assert_eq!(seconds(Timestamp::from_micros(micros).unwrap()), text);
        }
    }
}
