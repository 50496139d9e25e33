//! `tollgate replay`: plays traffic in virtual time against policies, and reports what each would have denied.

mod args;
mod format;
mod input;
mod key;
mod log;
mod moments;
mod order;
mod pattern;
mod plot;

mod report;
mod run;
mod subjects;
mod text;
mod timeline;

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use tollgate_core::{Cost, Timestamp};

pub(crate) use self::args::ReplayArgs;
use self::args::Source;
use self::log::LogOptions;
use self::moments::Moments;
use self::order::Hit;
use self::report::{PlayedLog, Report, Traffic};
use self::run::Run;
use self::subjects::{SubjectId, Subjects};
use self::timeline::Timeline;

/// Runs the command and writes its report to `out`.
///
/// # Errors
///
/// Whatever keeps the traffic from being played or the report from being written.
pub(crate) fn run(args: ReplayArgs, out: &mut impl Write, warnings: &mut impl Write) -> Result<()> {
    let (runs, left_out) = args.runs()?;
    for reason in left_out {
        writeln!(warnings, "warning: {reason}")?;
    }
    let output = args.output();
    let mut replay = Replay::new(runs);
    let traffic = match args.source()? {
        Source::Log(options) => play_log(options, &mut replay)?,
        Source::Pattern(pattern, quota) => {
            replay.moments = Some(Moments::new(replay.runs.len()));
            replay.timeline = Timeline::new(replay.runs.len(), 1);
            for hit in pattern.schedule(quota.limit(), quota.period_micros())? {
                let subject = replay.subject(&hit.subject)?;
                replay.play(Hit {
                    time: hit.time,
                    subject,
                    cost: Cost::ONE,
                });
            }
            Traffic::Pattern(pattern)
        }
    };
    let report = Report {
        replay: &replay,
        traffic: &traffic,
        worst: output.worst,
    };
    report.write_warnings(warnings)?;
    // The drawing is written even if whoever reads the report has stopped reading.
    let written = if output.json {
        report.write_json(out)
    } else {
        report.write_table(out)
    };
    if let Some(path) = &output.plot {
        let drawing = plot::draw(&report);
        fs::write(path, drawing).with_context(|| format!("cannot write {}", path.display()))?;
    }
    written
}

fn play_log(options: LogOptions, replay: &mut Replay) -> Result<Traffic> {
    let progress = progress_bar(&options.path);
    let summary = log::play(&options, replay, &progress);
    progress.finish_and_clear();
    let summary = summary?;
    Ok(Traffic::Log(Box::new(PlayedLog { options, summary })))
}

/// A bar on standard error; it hides itself where that is no terminal.
fn progress_bar(path: &str) -> ProgressBar {
    if path == "-" {
        return ProgressBar::no_length().with_style(style("{spinner} {bytes} read, {elapsed}"));
    }
    ProgressBar::new(0).with_style(style("{wide_bar} {bytes} of {total_bytes}, {eta} left"))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this program are right")
}

/// All runs over the same traffic.
#[derive(Debug)]
pub(crate) struct Replay {
    runs: Vec<Run>,
    subjects: Subjects,
    timeline: Timeline,
    /// Only for patterns.
    moments: Option<Moments>,
    hits: u64,
    first: Timestamp,
    last: Timestamp,
}

impl Replay {
    fn new(runs: Vec<Run>) -> Self {
        // Logs tell times apart by seconds at least.
        let timeline = Timeline::new(runs.len(), 1_000_000);
        Self {
            runs,
            subjects: Subjects::default(),
            timeline,
            moments: None,
            hits: 0,
            first: Timestamp::EPOCH,
            last: Timestamp::EPOCH,
        }
    }

    fn subject(&mut self, name: &str) -> Result<SubjectId> {
        self.subjects.id_of(name)
    }

    /// Plays a hit, whose time is never before an earlier one's, against every run.
    fn play(&mut self, hit: Hit) {
        if self.hits == 0 {
            self.first = hit.time;
        }
        self.last = hit.time;
        self.hits += 1;
        self.subjects.count_hit(hit.subject);
        self.timeline.advance(hit.time);
        if let Some(moments) = &mut self.moments {
            moments.count_hit(hit.time);
        }
        for (index, run) in self.runs.iter_mut().enumerate() {
            let is_admitted = run.play(hit);
            self.timeline.count(index, is_admitted);
            if let Some(moments) = self.moments.as_mut().filter(|_| is_admitted) {
                moments.count_admitted(index);
            }
        }
    }

    fn hits(&self) -> u64 {
        self.hits
    }
}
