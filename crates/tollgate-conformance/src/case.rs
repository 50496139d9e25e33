//! A case: a named story that a store must live up to.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::outcome::Outcome;
use crate::testbed::TestBed;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Vectors worked out by hand.
    Golden,
    /// Random sequences in virtual time that must be answered as core does, bit for bit.
    Differential,
    /// Several checks judged as one.
    Batch,
    /// Many callers at once.
    Concurrency,
    /// Whose clock counts, and real waiting.
    Clock,
    /// Dropped calls, outages and refusals.
    Failure,
    /// Hostile keys, and what is left behind.
    Hygiene,
    /// What other versions have stored.
    StoredState,
}

impl Family {
    /// The name as it stands in front of each case: `golden`, `stored_state`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Golden => "golden",
            Self::Differential => "differential",
            Self::Batch => "batch",
            Self::Concurrency => "concurrency",
            Self::Clock => "clock",
            Self::Failure => "failure",
            Self::Hygiene => "hygiene",
            Self::StoredState => "stored_state",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

pub(crate) type CaseFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A named story that a store must live up to.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) family: Family,
    pub(crate) name: Cow<'static, str>,
    pub(crate) story: Arc<dyn Fn(TestBed) -> CaseFuture + Send + Sync>,
}

impl Case {
    pub(crate) fn new<Story, Told>(
        family: Family,
        name: impl Into<Cow<'static, str>>,
        story: Story,
    ) -> Self
    where
        Story: Fn(TestBed) -> Told + Send + Sync + 'static,
        Told: Future<Output = Outcome> + Send + 'static,
    {
        Self {
            family,
            name: name.into(),
            story: Arc::new(move |bed| Box::pin(story(bed))),
        }
    }

    /// The whole name: `batch::one_denial_charges_none`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}::{}", self.family, self.name)
    }
}

/// The cases of functions, named like them.
macro_rules! stories {
    ($family:expr => $($story:ident),+ $(,)?) => {
        vec![$($crate::case::Case::new($family, stringify!($story), $story)),+]
    };
}

/// One case per algorithm of a function, named like it with the algorithm in place of the first word:
/// `[algorithm]_admits_exactly_its_limit`.
macro_rules! stories_of_each_algorithm {
    ($family:expr => $($story:ident as $name:literal),+ $(,)?) => {{
        let mut cases = Vec::new();
        $(for algorithm in tollgate_core::Algorithm::ALL {
            let name = $name.replace("{}", &algorithm.name().replace('-', "_"));
            cases.push($crate::case::Case::new($family, name, move |bed| $story(bed, algorithm)));
        })+
        cases
    }};
}

pub(crate) use {stories, stories_of_each_algorithm};
