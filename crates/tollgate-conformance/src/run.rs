//! Runs cases and says how they ended.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::runtime::Runtime;
use tokio::task::JoinError;

use crate::case::{Case, Family};
use crate::cases;
use crate::client::{Backend, Erased};
use crate::harness::Harness;
use crate::options::Options;
use crate::outcome::{Outcome, Stop};
use crate::testbed::TestBed;

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The store did what it must.
    Passed,
    /// It did not, and this is what it did.
    Failed(String),
    /// It could not be checked: the store or the harness lacks what it takes.
    LeftOut(String),
    /// There is nothing to check with this store.
    NotApplicable(String),
}

/// One case of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseResult {
    /// What it is about.
    pub family: Family,
    /// Its name within the family.
    pub name: String,
    /// How it ended.
    pub ending: Ending,
}

/// The full names of all cases, `batch::one_denial_charges_none` and so on, whatever store they are run on.
#[must_use]
pub fn case_names() -> impl ExactSizeIterator<Item = String> {
    cases::all().into_iter().map(|case| case.full_name())
}

/// How many cases [`run`] has going: many of them wait for time to pass.
const AT_A_TIME: usize = 16;

/// Runs the cases of `families` (of all, if there are none), several at a time, and returns how they ended.
///
/// For those who test a kit or a harness; a store's test binary calls [`main`](crate::main).
///
/// # Panics
/// If no tokio runtime can be started, or when called on one: it blocks.
pub fn run<H: Harness>(harness: H, families: &[Family], options: &Options) -> Vec<CaseResult> {
    let backend: Arc<dyn Backend> = Arc::new(Erased(Arc::new(harness)));
    let chosen = cases::all()
        .into_iter()
        .filter(|case| families.is_empty() || families.contains(&case.family));
    let (queue, results) = (Mutex::new(chosen.enumerate()), Mutex::new(BTreeMap::new()));
    let take = || lock(&queue).next();
    let work = || {
        while let Some((index, case)) = take() {
            let result = CaseResult {
                family: case.family,
                name: case.name.clone().into_owned(),
                ending: tell(&case, &backend, options),
            };
            lock(&results).insert(index, result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_values().collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one case to its end, or to the end of patience.
///
/// The wait is this thread's and not the runtime's: a store that blocks every thread of the runtime is told of, too.
pub(crate) fn tell(case: &Case, backend: &Arc<dyn Backend>, options: &Options) -> Ending {
    let (story, over, set_up) = (
        Arc::clone(&case.story),
        Arc::clone(backend),
        options.clone(),
    );
    let told = runtime().spawn(async move { story(TestBed::new(over, set_up).await?).await });
    let stop_it = told.abort_handle();
    let (ended, end) = channel();
    runtime().spawn(async move {
        // Nobody waits any more if the case took too long.
        let _ = ended.send(told.await.unwrap_or_else(|error| Err(broke_off(error))));
    });
    let outcome = match end.recv_timeout(options.patience) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => {
            stop_it.abort();
            Err(Stop::Failed(format!(
                "not done after {:?}: it hangs, or waits for itself",
                options.patience
            )))
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(Stop::Failed("the runtime dropped the case".to_owned()))
        }
    };
    ending(
        outcome.map_err(|stop| stop.context(backend.name())),
        options,
    )
}

fn broke_off(error: JoinError) -> Stop {
    Stop::Failed(match error.try_into_panic() {
        Ok(payload) => format!("panicked: {}", panic_message(payload.as_ref())),
        Err(error) => format!("did not run to its end: {error}"),
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

fn ending(outcome: Outcome, options: &Options) -> Ending {
    match outcome {
        Ok(()) => Ending::Passed,
        Err(Stop::Failed(message)) => Ending::Failed(message),
        Err(Stop::LeftOut(why)) if options.require_all => Ending::Failed(format!(
            "everything is required, but this was left out: {why}"
        )),
        Err(Stop::LeftOut(why)) => Ending::LeftOut(why),
        Err(Stop::NotApplicable(why)) => Ending::NotApplicable(why),
    }
}

/// One runtime for the whole process: connections belong to the runtime that opened them.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .expect("a tokio runtime can be started")
    })
}
