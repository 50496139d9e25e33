//! The kit as a test binary.

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Trial};
use tollgate_core::Store;

use crate::cases;
use crate::client::{Backend, Erased};
use crate::harness::{Fresh, Harness};
use crate::offer::BoxError;
use crate::options::{Options, OptionsError};
use crate::run::{Ending, tell};

/// The whole of a store's `tests/conformance.rs`, for a target with `harness = false`.
///
/// `make` makes the store of each case: a fresh one, or a client of a backend they all share. The binary takes the
/// arguments of any Rust test binary, `--require all`, and what [`Options::from_env`] reads.
///
/// ```no_run
/// use tollgate_conformance::ReferenceStore;
///
/// fn main() -> std::process::ExitCode {
///     tollgate_conformance::main("reference", || async { Ok(ReferenceStore::default()) })
/// }
/// ```
///
/// # Panics
/// If no tokio runtime can be started.
#[must_use]
pub fn main<F, Making, S>(name: &'static str, make: F) -> ExitCode
where
    F: Fn() -> Making + Send + Sync + 'static,
    Making: Future<Output = Result<S, BoxError>> + Send + 'static,
    S: Store,
{
    main_with(Fresh::new(name, make))
}

/// [`main`] for a harness with hooks.
///
/// # Panics
/// If no tokio runtime can be started.
#[must_use]
pub fn main_with<H: Harness>(harness: H) -> ExitCode {
    let settings = Options::from_env().and_then(|options| settings(options, std::env::args()));
    match settings {
        Ok((options, arguments)) => run_trials(harness, &Arguments::from_iter(arguments), &options),
        Err(error) => complain(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "this is the end of a test program, and its user reads it here"
)]
fn complain(error: &OptionsError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

/// Takes the kit's own argument, `--require all`, from those that every test binary understands.
fn settings(
    mut options: Options,
    mut arguments: impl Iterator<Item = String>,
) -> Result<(Options, Vec<String>), OptionsError> {
    const REQUIRE: &str = "--require";
    let mut others = Vec::new();
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix(REQUIRE) {
            Some("") => arguments.next().unwrap_or_default(),
            Some(rest) if rest.starts_with('=') => rest[1..].to_owned(),
            _ => {
                others.push(argument);
                continue;
            }
        };
        if value != "all" {
            return Err(OptionsError::new(REQUIRE, &value, "\"all\""));
        }
        options = options.require_all(true);
    }
    Ok((options, others))
}

fn run_trials<H: Harness>(harness: H, arguments: &Arguments, options: &Options) -> ExitCode {
    let backend: Arc<dyn Backend> = Arc::new(Erased(Arc::new(harness)));
    let trials = cases::all().into_iter().map(|case| {
        let (backend, options) = (Arc::clone(&backend), options.clone());
        Trial::ignorable_test(case.full_name(), move || {
            match tell(&case, &backend, &options) {
                Ending::Passed => Ok(Completion::Completed),
                Ending::Failed(message) => Err(message.into()),
                Ending::LeftOut(why) => Ok(Completion::ignored_with(format!("left out: {why}"))),
                Ending::NotApplicable(why) => {
                    Ok(Completion::ignored_with(format!("does not apply: {why}")))
                }
            }
        })
    });
    libtest_mimic::run(arguments, trials.collect()).exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<(Options, Vec<String>), OptionsError> {
        settings(
            Options::new(),
            arguments.iter().map(|argument| (*argument).to_owned()),
        )
    }

    #[test]
    fn require_all_is_taken_from_among_the_arguments_of_every_test_binary() {
        let required = Options::new().require_all(true);
        for arguments in [
            ["x", "--require", "all", "golden::"].as_slice(),
            &["x", "--require=all", "golden::"],
        ] {
            let (options, others) = read(arguments).unwrap();
            assert_eq!(
                (options, others),
                (
                    required.clone(),
                    vec!["x".to_owned(), "golden::".to_owned()]
                )
            );
        }
    }

    #[test]
    fn anything_else_to_require_is_refused() {
        for arguments in [
            ["x", "--require"].as_slice(),
            &["x", "--require", "golden"],
            &["x", "--require=ALL"],
        ] {
            let message = read(arguments).unwrap_err().to_string();
            assert!(
                message.contains("--require") && message.contains("\"all\""),
                "{message}"
            );
        }
    }
}
