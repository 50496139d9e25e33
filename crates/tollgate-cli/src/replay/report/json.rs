//! The report as one JSON object.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use tollgate_core::Timestamp;

use super::super::moments::Moments;
use super::super::run::Run;
use super::{PlayedLog, Report, Traffic, to_jiff};

#[derive(Serialize)]
struct Document<'a> {
    source: Source<'a>,
    /// Hits that were played against every policy.
    hits: u64,
    subjects: usize,
    first: String,
    last: String,
    results: Vec<RunResult<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Source<'a> {
    Log {
        file: &'a str,
        format: &'static str,
        key: String,
        lines: u64,
        malformed: u64,
        without_key: u64,
        without_cost: u64,
        late: u64,
        left_out: Vec<LeftOutLine<'a>>,
    },
    Pattern {
        pattern: &'static str,
    },
}

#[derive(Serialize)]
struct LeftOutLine<'a> {
    line: u64,
    what: &'static str,
    reason: &'a str,
    excerpt: &'a str,
}

#[derive(Serialize)]
struct RunResult<'a> {
    policy: String,
    algorithm: &'static str,
    admitted: u64,
    denied: u64,
    admitted_units: u128,
    denied_units: u128,
    subjects: usize,
    subjects_denied: usize,
    peak_admitted_per_second: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_at: Option<String>,
    longest_delay_micros: u128,
    worst: Vec<Worst<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moments: Vec<Moment>,
}

#[derive(Serialize)]
struct Worst<'a> {
    subject: &'a str,
    hits: u64,
    denied: u64,
}

#[derive(Serialize)]
struct Moment {
    at_micros: u64,
    hits: u64,
    admitted: u64,
}

impl Report<'_> {
    /// Writes the report for machines: one object on one line.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> Result<()> {
        let replay = self.replay;
        let document = Document {
            source: self.source(),
            hits: replay.hits,
            subjects: replay.subjects.len(),
            first: rfc3339(replay.first),
            last: rfc3339(replay.last),
            results: replay
                .runs
                .iter()
                .enumerate()
                .map(|(index, run)| self.result(index, run))
                .collect(),
        };
        serde_json::to_writer(&mut *out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }

    fn source(&self) -> Source<'_> {
        let PlayedLog { options, summary } = match self.traffic {
            Traffic::Log(log) => &**log,
            Traffic::Pattern(pattern) => {
                return Source::Pattern {
                    pattern: pattern.name(),
                };
            }
        };
        let left_out = summary.left_out().into_iter().flat_map(|(what, left_out)| {
            left_out.first.iter().map(move |line| LeftOutLine {
                line: line.number,
                what,
                reason: &line.reason,
                excerpt: &line.excerpt,
            })
        });
        Source::Log {
            file: &options.path,
            format: summary.format.name(),
            key: options.key.to_string(),
            lines: summary.lines,
            malformed: summary.malformed.lines,
            without_key: summary.without_key.lines,
            without_cost: summary.without_cost.lines,
            late: summary.late.hits,
            left_out: left_out.collect(),
        }
    }

    fn result(&self, index: usize, run: &Run) -> RunResult<'_> {
        let subjects = &self.replay.subjects;
        let tally = run.tally();
        let worst = tally
            .worst(self.worst)
            .into_iter()
            .map(|(id, denied)| Worst {
                subject: subjects.name(id),
                hits: subjects.hits(id),
                denied,
            });
        let moments = self
            .replay
            .moments
            .iter()
            .flat_map(Moments::list)
            .map(|moment| Moment {
                at_micros: moment.time.as_micros(),
                hits: moment.hits,
                admitted: moment.admitted[index],
            });
        let peak_at = Timestamp::from_micros(tally.peak.second.saturating_mul(1_000_000)).ok();
        RunResult {
            policy: run.quotas().to_string(),
            algorithm: run.algorithm().name(),
            admitted: tally.admitted,
            denied: tally.denied,
            admitted_units: tally.admitted_units,
            denied_units: tally.denied_units,
            subjects: subjects.len(),
            subjects_denied: tally.denied_by_subject.len(),
            peak_admitted_per_second: tally.peak.hits,
            peak_at: peak_at.filter(|_| tally.peak.hits > 0).map(rfc3339),
            longest_delay_micros: tally.longest_delay.as_micros(),
            worst: worst.collect(),
            moments: moments.collect(),
        }
    }
}

fn rfc3339(time: Timestamp) -> String {
    to_jiff(time).to_string()
}
