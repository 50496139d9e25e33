//! What a harness can give a case beyond the store itself.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tollgate_core::State;

/// Any error of a harness.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a hook of a [`Harness`](crate::Harness) answers.
pub type Offered<T> = Result<Offer<T>, BoxError>;

/// What a harness can give a case beyond the store itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<T> {
    /// Here it is.
    Given(T),
    /// The harness has no way to. Cases that need it are left out, and fail where everything is required.
    NotOffered,
    /// There is no such thing with this store, and this is why. Cases that need it do not apply.
    NotApplicable(&'static str),
}

/// What a backend holds under a key, seen without the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing, not even an empty entry.
    Nothing,
    /// Something that never expires.
    ForGood,
    /// Something that the backend may drop after this long.
    For(Duration),
}

/// What to put under a key behind the store's back.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Plant<'a> {
    /// The state in the store's first published format, byte for byte as it was then.
    ///
    /// Write it out by hand in the harness. A harness that calls the store's current writer would prove nothing.
    VersionOne(&'a State),
    /// The same, marked as a version that this library does not know yet.
    LaterVersion(&'a State),
    /// The same, cut off in the middle.
    Torn(&'a State),
}

type Switch =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>> + Send + Sync>;

/// A store whose backend serves nobody else, and the means to take that backend away and bring it back.
pub struct Outage<S> {
    pub(crate) store: S,
    pub(crate) begin: Switch,
    pub(crate) end: Switch,
}

impl<S> Outage<S> {
    /// `begin` makes the backend of `store` unreachable, `end` brings it back with all it held.
    pub fn new<Begin, Beginning, End, Ending>(store: S, begin: Begin, end: End) -> Self
    where
        Begin: Fn() -> Beginning + Send + Sync + 'static,
        Beginning: Future<Output = Result<(), BoxError>> + Send + 'static,
        End: Fn() -> Ending + Send + Sync + 'static,
        Ending: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        Self {
            store,
            begin: Box::new(move || Box::pin(begin())),
            end: Box::new(move || Box::pin(end())),
        }
    }

    pub(crate) fn map<T>(self, wrap: impl FnOnce(S) -> T) -> Outage<T> {
        Outage {
            store: wrap(self.store),
            begin: self.begin,
            end: self.end,
        }
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for Outage<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outage")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
