//! The report as a drawing: one panel per run, all over one time axis.

mod axis;
mod svg;

use self::axis::{Clock, round_top, stretch, time_ticks};
use self::svg::{Anchor, Px, Svg, TextStyle};
use super::report::{Report, Traffic};
use super::run::Run;
use super::text::{counted, grouped, percent, shortened};
use super::timeline::{Bin, Timeline};

// Blue and vermilion of Okabe and Ito's palette: told apart in any kind of colour vision, and in grey.
const ADMITTED: &str = "#0072b2";
const DENIED: &str = "#d55e00";
const INK: &str = "#222222";
const FAINT_INK: &str = "#555555";
const AXIS: &str = "#888888";
const GRID: &str = "#e2e2e2";

const WIDTH: u64 = 960;
const LEFT: u64 = 84;
const RIGHT: u64 = 24;
const HEADER: u64 = 92;
const PANEL_TITLE: u64 = 22;
const PANEL_HEIGHT: u64 = 84;
const PANEL_GAP: u64 = 20;
const FOOTER: u64 = 62;
/// Characters of a panel's name that leave room for the result beside it.
const PANEL_NAME_LENGTH: usize = 70;

/// Draws admitted and denied hits over time, as the text of an SVG file.
pub(crate) fn draw(report: &Report<'_>) -> String {
    let replay = report.replay;
    let title = format!("Hits admitted and denied: {}", report.short_source_name());
    let description = description(report);
    let panels = u64::try_from(replay.runs.len()).unwrap_or(u64::MAX);
    let height = HEADER + panels * (PANEL_TITLE + PANEL_HEIGHT + PANEL_GAP) + FOOTER;
    let mut svg = Svg::new(Px::whole(WIDTH), Px::whole(height), &title, &description);

    svg.text(Px::whole(LEFT), Px::whole(32), bold(18), &title);
    svg.text(
        Px::whole(LEFT),
        Px::whole(54),
        plain(12, FAINT_INK),
        &description,
    );
    draw_legend(&mut svg, &replay.timeline);

    let scale = Scale::new(report);
    let mut top = HEADER;
    for (index, run) in replay.runs.iter().enumerate() {
        draw_panel_title(&mut svg, top, run, replay.hits);
        top += PANEL_TITLE;
        scale.draw_grid(&mut svg, top);
        scale.draw_bars(&mut svg, top, replay.timeline.bins(index));
        scale.draw_value_labels(&mut svg, top);
        top += PANEL_HEIGHT + PANEL_GAP;
    }
    scale.draw_time_labels(&mut svg, top - PANEL_GAP);
    let middle = HEADER + (top - HEADER) / 2;
    let per_bar = format!("hits per {}", stretch(replay.timeline.width_micros()));
    svg.upright_text(Px::whole(22), Px::whole(middle), centred(12), &per_bar);
    svg.finish()
}

fn description(report: &Report<'_>) -> String {
    let replay = report.replay;
    let key = match report.traffic {
        Traffic::Log(log) => format!(" by {}", log.options.key),
        Traffic::Pattern(_) => String::new(),
    };
    format!(
        "{} of {}{key}, {}",
        counted(replay.hits, "hit"),
        report.counted_subjects(),
        report.span()
    )
}

fn draw_legend(svg: &mut Svg, timeline: &Timeline) {
    let entries = [
        (LEFT, ADMITTED, "admitted"),
        (LEFT + 96, DENIED, "denied (on top of the admitted ones)"),
    ];
    for (x, color, name) in entries {
        svg.bar(
            Px::whole(x),
            Px::whole(66),
            Px::whole(12),
            Px::whole(12),
            color,
        );
        svg.text(Px::whole(x + 18), Px::whole(76), plain(12, INK), name);
    }
    let width = format!("one bar per {}", stretch(timeline.width_micros()));
    let style = TextStyle {
        anchor: Anchor::End,
        ..plain(12, FAINT_INK)
    };
    svg.text(Px::whole(WIDTH - RIGHT), Px::whole(76), style, &width);
}

fn draw_panel_title(svg: &mut Svg, top: u64, run: &Run, hits: u64) {
    let baseline = Px::whole(top + PANEL_TITLE - 7);
    let name = format!("{} {}", run.algorithm(), run.quotas());
    svg.text(
        Px::whole(LEFT),
        baseline,
        bold(13),
        &shortened(&name, PANEL_NAME_LENGTH),
    );
    let denied = run.tally().denied;
    let result = format!(
        "{} of {} denied ({})",
        grouped(denied),
        grouped(hits),
        percent(denied, hits)
    );
    let style = TextStyle {
        anchor: Anchor::End,
        ..plain(12, INK)
    };
    svg.text(Px::whole(WIDTH - RIGHT), baseline, style, &result);
}

/// Turns times and counts into places, the same in every panel.
struct Scale {
    start: u64,
    bin_micros: u64,
    bins: u64,
    clock: Clock,
    /// The count at the top of a panel.
    top_count: u64,
}

impl Scale {
    fn new(report: &Report<'_>) -> Self {
        let replay = report.replay;
        let timeline = &replay.timeline;
        let all_bins = (0..replay.runs.len()).flat_map(|run| timeline.bins(run));
        let largest = all_bins
            .map(|bin| bin.admitted + bin.denied)
            .max()
            .unwrap_or(0);
        let bins = timeline.bins(0).len();
        Self {
            start: timeline.start_micros(),
            bin_micros: timeline.width_micros(),
            bins: u64::try_from(bins).unwrap_or(u64::MAX),
            clock: match report.traffic {
                Traffic::Log(_) => Clock::Calendar,
                Traffic::Pattern(_) => Clock::SinceStart,
            },
            top_count: round_top(largest),
        }
    }

    fn end(&self) -> u64 {
        self.start + self.bins * self.bin_micros
    }

    fn x(&self, micros: u64) -> Px {
        let width = Px::whole(WIDTH - LEFT - RIGHT);
        Px::whole(LEFT)
            .plus(width.scaled(micros.saturating_sub(self.start), self.end() - self.start))
    }

    fn height(&self, count: u64) -> Px {
        Px::whole(PANEL_HEIGHT).scaled(count, self.top_count)
    }

    fn draw_grid(&self, svg: &mut Svg, top: u64) {
        let (left, right) = (Px::whole(LEFT), Px::whole(WIDTH - RIGHT));
        let bottom = Px::whole(top + PANEL_HEIGHT);
        for tick in time_ticks(self.start, self.end(), self.clock) {
            let x = self.x(tick.micros);
            svg.line((x, Px::whole(top)), (x, bottom), GRID);
        }
        for count in self.value_ticks() {
            let y = bottom.minus(self.height(count));
            svg.line((left, y), (right, y), GRID);
        }
        svg.line((left, bottom), (right, bottom), AXIS);
    }

    fn draw_bars(&self, svg: &mut Svg, top: u64, bins: &[Bin]) {
        let mut admitted = Vec::new();
        let mut denied = Vec::new();
        let bottom = Px::whole(top + PANEL_HEIGHT);
        for (number, bin) in (0..).zip(bins) {
            let from = self.start + number * self.bin_micros;
            let left = self.x(from);
            let room = self.x(from + self.bin_micros).minus(left);
            // A hair of white between bars, as far as they are wide enough for it.
            let width = room.minus(Px::hundredths(100).min(room.scaled(1, 5)));
            let lower = self.visible_height(bin.admitted);
            let upper = self.visible_height(bin.denied);
            if bin.admitted > 0 {
                admitted.push((left, bottom.minus(lower), width, lower));
            }
            if bin.denied > 0 {
                denied.push((left, bottom.minus(lower).minus(upper), width, upper));
            }
        }
        svg.bars(&admitted, ADMITTED);
        svg.bars(&denied, DENIED);
    }

    /// A single hit among thousands is still a pixel high.
    fn visible_height(&self, count: u64) -> Px {
        if count == 0 {
            Px::default()
        } else {
            self.height(count).max(Px::whole(1))
        }
    }

    fn value_ticks(&self) -> Vec<u64> {
        if self.top_count == 1 {
            vec![1]
        } else {
            vec![self.top_count / 2, self.top_count]
        }
    }

    fn draw_value_labels(&self, svg: &mut Svg, top: u64) {
        let style = TextStyle {
            anchor: Anchor::End,
            ..plain(11, FAINT_INK)
        };
        for count in std::iter::once(0).chain(self.value_ticks()) {
            let y = Px::whole(top + PANEL_HEIGHT + 4).minus(self.height(count));
            svg.text(Px::whole(LEFT - 8), y, style, &grouped(count));
        }
    }

    fn draw_time_labels(&self, svg: &mut Svg, bottom: u64) {
        for tick in time_ticks(self.start, self.end(), self.clock) {
            let x = self.x(tick.micros);
            svg.line((x, Px::whole(bottom)), (x, Px::whole(bottom + 5)), AXIS);
            svg.text(
                x,
                Px::whole(bottom + 18),
                TextStyle {
                    anchor: Anchor::Middle,
                    ..plain(11, INK)
                },
                &tick.label,
            );
            if let Some(second_line) = &tick.second_line {
                svg.text(
                    x,
                    Px::whole(bottom + 32),
                    TextStyle {
                        anchor: Anchor::Middle,
                        ..plain(11, FAINT_INK)
                    },
                    second_line,
                );
            }
        }
        let name = match self.clock {
            Clock::Calendar => "time (UTC)",
            Clock::SinceStart => "time since the start",
        };
        svg.text(
            Px::whole(LEFT + (WIDTH - LEFT - RIGHT) / 2),
            Px::whole(bottom + 52),
            centred(12),
            name,
        );
    }
}

fn plain(size: u64, color: &'static str) -> TextStyle {
    TextStyle {
        size,
        is_bold: false,
        color,
        anchor: Anchor::Start,
    }
}

fn bold(size: u64) -> TextStyle {
    TextStyle {
        is_bold: true,
        ..plain(size, INK)
    }
}

fn centred(size: u64) -> TextStyle {
    TextStyle {
        anchor: Anchor::Middle,
        ..plain(size, INK)
    }
}
