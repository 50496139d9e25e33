//! The command line of `tollgate replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use tollgate_core::{Algorithm, Quota, QuotaList};

use super::format::{ADDRESS_FIELDS, EpochUnit, FieldNames, Format, PATH_FIELDS, TIME_FIELDS};
use super::key::KeySpec;
use super::log::LogOptions;
use super::pattern::Pattern;
use super::run::Run;
use crate::usage::UsageError;

/// Play an access log, or built-in traffic, against rate limits
///
/// Reads an access log and judges every request at the time the log gives it, once for every policy and every
/// algorithm, side by side. Nothing is limited and nothing waits: the report says what would have been admitted and
/// what would have been denied, and who would have been hit hardest.
#[derive(Debug, Args)]
#[command(after_long_help = after_long_help())]
pub(crate) struct ReplayArgs {
    /// Access log to play, plain or gzip; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "pattern")]
    file: Option<String>,

    /// Play built-in traffic instead of a log, sized by the first policy's limit L and period P
    #[arg(long, value_enum, conflicts_with_all = [
        "file", "format", "key", "cost_field", "time_field", "time_unit", "address_field", "path_field",
        "reorder_window",
    ])]
    pattern: Option<Pattern>,

    /// Rate limit to play against; may be given several times
    ///
    /// LIMIT/PERIOD with an optional burst, such as "10/minute", "100 per 15 seconds" or "20/s burst 100". Several
    /// quotas that hold together, such as "10/second; 1000/hour", are one policy: a hit is charged to all or to none.
    #[arg(
        long = "policy",
        value_name = "QUOTA",
        required = true,
        help_heading = "Limits"
    )]
    policies: Vec<QuotaList>,

    /// Algorithms to play the policies under: `all`, or names joined by commas
    ///
    /// fixed-window, sliding-window, sliding-log, token-bucket, leaky-bucket, gcra. A burst belongs to the last three;
    /// `all` leaves the others out for a policy with a burst.
    #[arg(
        long = "algorithm",
        value_name = "NAMES",
        default_value = "all",
        value_delimiter = ',',
        value_parser = parse_algorithm,
        help_heading = "Limits"
    )]
    algorithms: Vec<Choice>,

    /// Who is limited: address, path, header:NAME, field:NAME, or several joined by commas
    ///
    /// The path is taken without its query. Lines that lack a part of the key are left out and counted.
    #[arg(
        long,
        value_name = "KEY",
        default_value = "address",
        help_heading = "Limits"
    )]
    key: KeySpec,

    /// Field that holds what a hit costs, a whole number of at least 1 [default: every hit costs 1]
    #[arg(long, value_name = "NAME", help_heading = "Limits")]
    cost_field: Option<String>,

    /// Format of the log [default: the format of its first readable line]
    #[arg(long, value_enum, help_heading = "Log format")]
    format: Option<Format>,

    /// JSON field with the time [default: the first of the usual names, see below]
    #[arg(long, value_name = "NAME", help_heading = "Log format")]
    time_field: Option<String>,

    /// What numbers in the JSON time field count [default: told from the size of the first one]
    #[arg(long, value_enum, value_name = "UNIT", help_heading = "Log format")]
    time_unit: Option<EpochUnit>,

    /// JSON field with the client's address [default: the first of the usual names, see below]
    #[arg(long, value_name = "NAME", help_heading = "Log format")]
    address_field: Option<String>,

    /// JSON field with the path or the request line [default: the first of the usual names, see below]
    #[arg(long, value_name = "NAME", help_heading = "Log format")]
    path_field: Option<String>,

    /// How far out of order lines may be and still be put in order, such as 60s, 5m or 0s
    ///
    /// Servers log a request when it ends, so slow ones come late. A line whose time the replay has already passed is
    /// counted, reported and played at the time the replay has reached.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        value_parser = parse_window,
        help_heading = "Log format"
    )]
    reorder_window: Duration,

    /// Print one JSON object instead of tables
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Draw admitted and denied hits over time into an SVG file
    #[arg(long, value_name = "FILE.svg", value_parser = parse_plot, help_heading = "Output")]
    plot: Option<PathBuf>,

    /// How many of the worst clients to list
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 5,
        help_heading = "Output"
    )]
    worst: usize,
}

/// Where the traffic comes from.
#[derive(Debug)]
pub(crate) enum Source {
    Log(LogOptions),
    /// With the quota that sets its size.
    Pattern(Pattern, Quota),
}

/// What to write.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) worst: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    All,
    One(Algorithm),
}

impl ReplayArgs {
    /// Every policy under every algorithm, and what of it `all` has left out, with the reason.
    ///
    /// # Errors
    ///
    /// A policy has too many quotas, or an algorithm that was named cannot enforce it.
    pub(crate) fn runs(&self) -> Result<(Vec<Run>, Vec<String>), UsageError> {
        let mut runs = Vec::new();
        let mut left_out = Vec::new();
        for quotas in &self.policies {
            let has_burst = quotas.iter().any(|quota| quota.burst().is_some());
            for algorithm in Algorithm::ALL {
                let is_named = self.algorithms.contains(&Choice::One(algorithm));
                if !is_named && !self.algorithms.contains(&Choice::All) {
                    continue;
                }
                match Run::new(quotas, algorithm) {
                    Ok(run) => runs.push(run),
                    Err(error) if has_burst && !is_named => left_out.push(format!(
                        "{quotas} is not played under {algorithm}: {error:#}"
                    )),
                    Err(error) => return Err(UsageError(format!("policy {quotas}: {error:#}"))),
                }
            }
        }
        Ok((runs, left_out))
    }

    pub(crate) fn output(&self) -> Output {
        Output {
            json: self.json,
            plot: self.plot.clone(),
            worst: self.worst,
        }
    }

    /// # Errors
    ///
    /// There is neither a file nor a pattern.
    pub(crate) fn source(self) -> Result<Source, UsageError> {
        if let Some(pattern) = self.pattern {
            let quota = self
                .policies
                .first()
                .and_then(|quotas| quotas.as_slice().first());
            let quota = quota.ok_or_else(|| UsageError("a pattern needs a policy".to_owned()))?;
            return Ok(Source::Pattern(pattern, *quota));
        }
        let Some(path) = self.file else {
            return Err(UsageError(
                "name a log to play, or a pattern with --pattern".to_owned(),
            ));
        };
        Ok(Source::Log(LogOptions {
            path,
            format: self.format,
            names: FieldNames {
                time: self.time_field,
                address: self.address_field,
                path: self.path_field,
            },
            time_unit: self.time_unit,
            key: self.key,
            cost_field: self.cost_field,
            reorder_window: self.reorder_window,
        }))
    }
}

fn parse_algorithm(text: &str) -> Result<Choice, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    text.parse().map(Choice::One).map_err(|_| {
        format!(
            "no algorithm is called {text:?}; use all or some of {}",
            Algorithm::ALL.map(Algorithm::name).join(", ")
        )
    })
}

fn parse_window(text: &str) -> Result<Duration, String> {
    let window = text
        .parse::<SignedDuration>()
        .ok()
        .and_then(|signed| Duration::try_from(signed).ok());
    window.ok_or_else(|| {
        format!("{text:?} is not a duration of zero or more; write it like 60s, 5m or 250ms")
    })
}

fn parse_plot(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path
        .extension()
        .is_none_or(|extension| !extension.eq_ignore_ascii_case("svg"))
    {
        return Err("only SVG is drawn; name a file that ends in .svg".to_owned());
    }
    Ok(path)
}

fn after_long_help() -> String {
    format!(
        "\
Log formats:
  common    address identity user [time] \"request\" status bytes
  combined  the same, then \"referer\" \"user agent\"; further fields at the end are not looked at
  json      one object per line. A dot leads into an object: request.client_ip.
            Unless a flag names the field, the first of these that a line has is used:
              time     {time}
              address  {address}
              path     {path}
            Times are RFC 3339, the common format's, or numbers since 1970 with or without decimals.
            A header NAME is looked for as request.headers.NAME, headers.NAME, http_name, request_NAME and name.

Lines:
  A line that cannot be read is counted, the first few are shown with their numbers, and the replay goes on. So are
  lines without the key and lines without a usable cost. Blank lines are skipped. Lines may be 65,536 bytes long.

Memory:
  Bounded by the number of different clients (some 30 bytes and the name each), not by the number of lines. On top
  come the clients who are being limited just now, and at most 500,000 hits that wait to be put in order.

Exit status:
  0  the traffic was played, whatever was denied or left out
  1  it could not be: the input cannot be read, is no log or holds nothing to play, or a result cannot be written
  2  the command line is wrong

Examples:
  tollgate replay --policy \"10/minute\" --algorithm all --key address access.log
  tollgate replay --policy \"5/s burst 20\" --policy \"100/minute\" --algorithm gcra --plot out.svg access.log.gz
  zcat -f access.log* | tollgate replay --policy \"1000/hour\" --key header:user-agent --json -
  tollgate replay --policy \"10/minute\" --pattern boundary-burst",
        time = TIME_FIELDS.join(", "),
        address = ADDRESS_FIELDS.join(", "),
        path = PATH_FIELDS.join(", "),
    )
}
