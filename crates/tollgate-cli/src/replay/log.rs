//! Plays an access log: reads its lines, turns them into hits and reports what could not be played.

use std::fmt::{self, Display};
use std::io::BufRead;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use tollgate_core::{Cost, Timestamp};

use super::Replay;
use super::format::{EpochUnit, FieldNames, Format, Record, RecordReader};
use super::input::{self, Line, Lines, MAX_LINE_BYTES};
use super::key::{KeySpec, Part};
use super::order::{Hit, Late, MAX_HELD_HITS, Reorder};
use super::text::excerpt;

/// Lines at the start of a file that may be unreadable before it is taken for something else than a log.
const LINES_BEFORE_GIVING_UP: u64 = 100;
/// How many of the lines that were left out are kept to be shown.
const SHOWN_LINES: usize = 5;
const REASON_LENGTH: usize = 200;
const EXCERPT_LENGTH: usize = 80;

/// How to read a log.
#[derive(Debug)]
pub(crate) struct LogOptions {
    /// A path, or `-` for standard input.
    pub(crate) path: String,
    /// `None` is the format of the first readable line.
    pub(crate) format: Option<Format>,
    pub(crate) names: FieldNames,
    pub(crate) time_unit: Option<EpochUnit>,
    pub(crate) key: KeySpec,
    /// The field that holds what a hit costs; `None` is a cost of 1.
    pub(crate) cost_field: Option<String>,
    pub(crate) reorder_window: Duration,
}

/// What a log held.
#[derive(Debug)]
pub(crate) struct LogSummary {
    pub(crate) format: Format,
    /// Lines that are not blank.
    pub(crate) lines: u64,
    pub(crate) malformed: LeftOut,
    pub(crate) without_key: LeftOut,
    pub(crate) without_cost: LeftOut,
    pub(crate) late: Late,
}

/// Lines that were not played, and the first few of them.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) lines: u64,
    pub(crate) first: Vec<LeftOutLine>,
}

/// One line that was not played.
#[derive(Debug)]
pub(crate) struct LeftOutLine {
    pub(crate) number: u64,
    pub(crate) reason: String,
    /// The start of the line, printable.
    pub(crate) excerpt: String,
}

impl LeftOut {
    fn add(&mut self, number: u64, text: &[u8], reason: impl Display) {
        self.lines += 1;
        if self.first.len() < SHOWN_LINES {
            let reason = excerpt(reason.to_string().as_bytes(), REASON_LENGTH);
            self.first.push(LeftOutLine {
                number,
                reason,
                excerpt: excerpt(text, EXCERPT_LENGTH),
            });
        }
    }

    /// For the end of an error message: why the first of these lines was not played.
    fn first_line(&self) -> String {
        self.first.first().map_or_else(String::new, |line| {
            format!("; line {}: {line}", line.number)
        })
    }
}

impl Display for LeftOutLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.excerpt)
    }
}

/// Why a readable line is not played.
enum Unplayable<'a> {
    NoKey(&'a Part),
    NoCost(String),
}

/// Plays every line of the log that can be played.
///
/// # Errors
///
/// The input cannot be read, is no access log, or holds nothing that can be played.
pub(crate) fn play(
    options: &LogOptions,
    replay: &mut Replay,
    progress: &ProgressBar,
) -> Result<LogSummary> {
    let lines = input::open(&options.path, progress)?;
    let mut player = Player {
        options,
        reader: RecordReader::new(options.format, options.names.clone(), options.time_unit),
        reorder: Reorder::new(options.reorder_window, MAX_HELD_HITS),
        subject: String::new(),
        is_format_checked: false,
        lines: 0,
        malformed: LeftOut::default(),
        without_key: LeftOut::default(),
        without_cost: LeftOut::default(),
    };
    player.play_all(lines, replay)?;
    player.summary(replay)
}

struct Player<'a> {
    options: &'a LogOptions,
    reader: RecordReader,
    reorder: Reorder,
    subject: String,
    is_format_checked: bool,
    lines: u64,
    malformed: LeftOut,
    without_key: LeftOut,
    without_cost: LeftOut,
}

impl Player<'_> {
    fn play_all(&mut self, mut lines: Lines<impl BufRead>, replay: &mut Replay) -> Result<()> {
        loop {
            let number = lines.number() + 1;
            let line = lines
                .next_line()
                .with_context(|| format!("cannot read {} at line {number}", self.name()))?;
            let Some(line) = line else { break };
            self.take_line(number, &line, replay)?;
            while let Some(hit) = self.reorder.pop_ready() {
                replay.play(hit);
            }
        }
        while let Some(hit) = self.reorder.pop() {
            replay.play(hit);
        }
        Ok(())
    }

    fn take_line(&mut self, number: u64, line: &Line<'_>, replay: &mut Replay) -> Result<()> {
        let text = match line {
            Line::Text(text) if text.trim_ascii().is_empty() => return Ok(()),
            Line::Text(text) => text,
            Line::TooLong => {
                self.lines += 1;
                let reason = format!("longer than {MAX_LINE_BYTES} bytes");
                self.malformed.add(number, b"(not kept)", reason);
                return self.check_is_log();
            }
        };
        self.lines += 1;
        let Self {
            options,
            reader,
            subject,
            ..
        } = self;
        let read = match reader.read(text, |record| playable(options, record, subject)) {
            Ok(read) => read,
            Err(reason) => {
                self.malformed.add(number, text, reason);
                return self.check_is_log();
            }
        };
        self.check_format()?;
        match read {
            Ok((time, cost)) => {
                let subject = replay.subject(&self.subject)?;
                self.reorder.push(Hit {
                    time,
                    subject,
                    cost,
                });
            }
            Err(Unplayable::NoKey(part)) => {
                self.without_key
                    .add(number, text, format_args!("no {part}"));
            }
            Err(Unplayable::NoCost(reason)) => self.without_cost.add(number, text, reason),
        }
        Ok(())
    }

    /// Gives up on a file whose format is still unknown after many lines.
    fn check_is_log(&self) -> Result<()> {
        if self.reader.format().is_none() && self.malformed.lines >= LINES_BEFORE_GIVING_UP {
            bail!(
                "{} is not an access log: none of its first {LINES_BEFORE_GIVING_UP} lines is in the common, combined \
                 or JSON format{}; if its log starts later, name the format with --format",
                self.name(),
                self.malformed.first_line(),
            );
        }
        Ok(())
    }

    /// Refuses, as soon as the format is known, what no line of it can have.
    fn check_format(&mut self) -> Result<()> {
        let Some(format) = self.reader.format().filter(|_| !self.is_format_checked) else {
            return Ok(());
        };
        self.is_format_checked = true;
        let Some(fields) = format.fields() else {
            return Ok(());
        };
        let fields = fields.join(", ");
        if let Some(part) = self.options.key.impossible_part(format) {
            bail!(
                "the {} format has no {part}; its fields are {fields}",
                format.name()
            );
        }
        if let Some(field) = self
            .options
            .cost_field
            .as_ref()
            .filter(|field| !format.has_field(field))
        {
            bail!(
                "the {} format has no field {field:?} for the cost; its fields are {fields}",
                format.name()
            );
        }
        Ok(())
    }

    fn summary(self, replay: &Replay) -> Result<LogSummary> {
        if self.lines == 0 {
            bail!("{} is empty: there is no line to play", self.name());
        }
        let Some(format) = self
            .reader
            .format()
            .filter(|_| self.malformed.lines < self.lines)
        else {
            let format = self
                .options
                .format
                .map_or("common, combined or JSON", Format::name);
            bail!(
                "{} is not an access log: none of its {} lines is in the {format} format{}",
                self.name(),
                self.lines,
                self.malformed.first_line()
            );
        };
        if replay.hits() == 0 {
            bail!(
                "none of the {} lines of {} can be played{}{}",
                self.lines,
                self.name(),
                self.without_key.first_line(),
                self.without_cost.first_line(),
            );
        }
        Ok(LogSummary {
            format,
            lines: self.lines,
            malformed: self.malformed,
            without_key: self.without_key,
            without_cost: self.without_cost,
            late: self.reorder.late(),
        })
    }

    fn name(&self) -> &str {
        name_of(&self.options.path)
    }
}

/// The path, or what stands for standard input in messages.
pub(crate) fn name_of(path: &str) -> &str {
    if path == "-" { "standard input" } else { path }
}

fn playable<'a>(
    options: &'a LogOptions,
    record: &dyn Record,
    subject: &mut String,
) -> Result<(Timestamp, Cost), Unplayable<'a>> {
    options
        .key
        .write_subject(record, subject)
        .map_err(Unplayable::NoKey)?;
    let cost = match &options.cost_field {
        Some(field) => cost_of(field, record).map_err(Unplayable::NoCost)?,
        None => Cost::ONE,
    };
    Ok((record.time(), cost))
}

fn cost_of(field: &str, record: &dyn Record) -> Result<Cost, String> {
    let value = record
        .field(field)
        .ok_or_else(|| format!("no field {field:?} for the cost"))?;
    let units = std::str::from_utf8(&value)
        .ok()
        .and_then(|text| text.parse().ok());
    units
        .and_then(|units: u64| Cost::new(units).ok())
        .ok_or_else(|| {
            let shown = excerpt(&value, 40);
            format!("the cost {shown:?} in the field {field:?} is not a whole number of at least 1")
        })
}
