//! The report as tables.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use jiff::SignedDuration;

use super::super::run::Run;
use super::super::subjects::SubjectId;
use super::super::text::{counted, grouped, percent, shortened};
use super::{PlayedLog, Report, Traffic, seconds};

const NAME_WIDTH: usize = 60;
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

impl Report<'_> {
    /// Writes the report for people.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn write_table(&self, out: &mut impl Write) -> Result<()> {
        self.write_heading(out)?;
        write_titled(out, None, &self.results())?;
        if let Some(moments) = self
            .replay
            .moments
            .as_ref()
            .filter(|moments| !moments.list().is_empty())
        {
            write_titled(
                out,
                Some("Admitted at each moment, of the hits that came"),
                &self.moments(moments.list()),
            )?;
        }
        for runs in self
            .replay
            .runs
            .chunk_by(|one, other| one.quotas() == other.quotas())
        {
            self.write_worst(runs, out)?;
        }
        Ok(())
    }

    /// Writes the worst subjects of the runs of one policy.
    fn write_worst(&self, runs: &[Run], out: &mut impl Write) -> Result<()> {
        let quotas = runs[0].quotas();
        if runs.iter().all(|run| run.tally().denied == 0) {
            writeln!(out, "\nUnder {quotas} no hit was denied.")?;
            return Ok(());
        }
        let worst = self.worst_of(runs);
        if worst.is_empty() {
            return Ok(());
        }
        let title = format!("Worst {}s under {quotas}: hits denied", self.subject_noun());
        write_titled(out, Some(&title), &self.worst_table(runs, &worst))
    }

    fn write_heading(&self, out: &mut impl Write) -> Result<()> {
        let hits = counted(self.replay.hits, "hit");
        let (name, subjects, span) = (self.source_name(), self.counted_subjects(), self.span());
        let Traffic::Log(log) = self.traffic else {
            writeln!(out, "{name}: {hits} of {subjects}, {span}")?;
            return Ok(());
        };
        let PlayedLog { options, summary } = &**log;
        let (format, key) = (summary.format.name(), &options.key);
        let lines = counted(summary.lines, "line");
        writeln!(out, "{name}: {lines}, {format} format, {span}")?;
        writeln!(out, "played {hits} of {subjects} by {key}")?;
        for (what, left_out) in summary
            .left_out()
            .into_iter()
            .filter(|(_, left_out)| left_out.lines > 0)
        {
            writeln!(out, "left out {} {what}", counted(left_out.lines, "line"))?;
        }
        if summary.late.hits > 0 {
            writeln!(
                out,
                "played {} at a later time than the log says, out of order by up to {} (--reorder-window was {})",
                counted(summary.late.hits, "hit"),
                duration(summary.late.longest),
                duration(options.reorder_window)
            )?;
        }
        Ok(())
    }

    fn results(&self) -> Table {
        let denied_subjects = format!("{}s denied", self.subject_noun());
        let has_costs =
            matches!(self.traffic, Traffic::Log(log) if log.options.cost_field.is_some());
        let has_delays = self
            .replay
            .runs
            .iter()
            .any(|run| !run.tally().longest_delay.is_zero());
        let mut header = vec![
            "policy",
            "algorithm",
            "admitted",
            "denied",
            "share",
            &denied_subjects,
            "peak/s",
        ];
        if has_costs {
            header.extend(["units admitted", "units denied"]);
        }
        if has_delays {
            header.push("longest wait");
        }
        let mut table = table(&header, 2);
        for run in &self.replay.runs {
            let tally = run.tally();
            let mut row = vec![
                run.quotas().to_string(),
                run.algorithm().to_string(),
                grouped(tally.admitted),
                grouped(tally.denied),
                percent(tally.denied, self.replay.hits),
                grouped(u64::try_from(tally.denied_by_subject.len()).unwrap_or(u64::MAX)),
                grouped(tally.peak.hits),
            ];
            if has_costs {
                row.extend([grouped(tally.admitted_units), grouped(tally.denied_units)]);
            }
            if has_delays {
                row.push(if tally.longest_delay.is_zero() {
                    String::new()
                } else {
                    duration(tally.longest_delay)
                });
            }
            table.add_row(row);
        }
        table
    }

    fn moments(&self, moments: &[super::super::moments::Moment]) -> Table {
        let times: Vec<String> = moments.iter().map(|moment| seconds(moment.time)).collect();
        let mut header = vec!["policy", "algorithm"];
        header.extend(times.iter().map(String::as_str));
        let mut table = table(&header, 2);
        for (index, run) in self.replay.runs.iter().enumerate() {
            let mut row = vec![run.quotas().to_string(), run.algorithm().to_string()];
            row.extend(
                moments
                    .iter()
                    .map(|moment| format!("{} of {}", moment.admitted[index], moment.hits)),
            );
            table.add_row(row);
        }
        table
    }

    /// The subjects that any of the runs denied most, by their worst run.
    fn worst_of(&self, runs: &[Run]) -> Vec<SubjectId> {
        let mut most = BTreeMap::new();
        for (id, denied) in runs.iter().flat_map(|run| run.tally().worst(self.worst)) {
            let known = most.entry(id).or_insert(0);
            *known = denied.max(*known);
        }
        let mut worst: Vec<(SubjectId, u64)> = most.into_iter().collect();
        worst.sort_by_key(|(id, denied)| (Reverse(*denied), *id));
        worst.truncate(self.worst);
        worst.into_iter().map(|(id, _)| id).collect()
    }

    fn worst_table(&self, runs: &[Run], worst: &[SubjectId]) -> Table {
        let mut header = vec![self.subject_noun(), "hits"];
        header.extend(runs.iter().map(|run| run.algorithm().name()));
        let mut table = table(&header, 1);
        for id in worst {
            let name = shortened(self.replay.subjects.name(*id), NAME_WIDTH);
            let mut row = vec![name, grouped(self.replay.subjects.hits(*id))];
            row.extend(runs.iter().map(|run| {
                let denied = run.tally().denied_by_subject.get(id).copied();
                grouped(denied.unwrap_or(0))
            }));
            table.add_row(row);
        }
        table
    }
}

/// A table whose columns from `numbers_from` on are numbers.
fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(header.iter().enumerate().map(|(index, title)| {
        let alignment = if index < numbers_from {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        };
        Cell::new(title).set_alignment(alignment)
    }));
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn write_titled(out: &mut impl Write, title: Option<&str>, table: &Table) -> Result<()> {
    writeln!(out)?;
    if let Some(title) = title {
        writeln!(out, "{title}")?;
    }
    writeln!(out, "{}", table.trim_fmt())?;
    Ok(())
}

/// Like `1m 30s`.
fn duration(duration: Duration) -> String {
    SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |signed| format!("{signed:#}"))
}
