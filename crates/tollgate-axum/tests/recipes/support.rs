//! A store in virtual time, and requests with JSON in them.

use reqwest::{Method, Response};
use serde_json::Value;
use tollgate_memory::{ManualClock, MemoryStore, SharedStore};

use crate::server::Server;

/// A store in memory, in a time that stands still until the test moves it.
pub(crate) fn store(clock: &ManualClock) -> SharedStore {
    let store = MemoryStore::builder().clock(clock.clone());
    SharedStore::new(store.build().unwrap())
}

/// A POST of a JSON document.
pub(crate) async fn post(server: &Server, path: &str, body: &Value) -> Response {
    let request = server.request(Method::POST, path).json(body);
    request.send().await.unwrap()
}

/// A header that is a number.
pub(crate) fn number(response: &Response, name: &str) -> Option<u64> {
    let value = response.headers().get(name)?;
    value.to_str().unwrap().parse().ok()
}

/// The names in `violated-policies` of a denial.
pub(crate) async fn violated(response: Response) -> Value {
    let mut problem: Value = response.json().await.unwrap();
    problem["violated-policies"].take()
}
