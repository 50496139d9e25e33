//! What the log says, and how often.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use tollgate_axum::{Headers, RateLimitLayer};
use tollgate_memory::{Limiter, ManualClock, Policies, Policy, Quota};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::server::{Server, limiter};
use crate::stores::Remote;

/// Keeps the lines of this crate.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tollgate_axum") && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

fn app<S: tollgate_memory::Store + Clone>(limiter: Limiter<S>) -> Router {
    Router::new()
        .route("/", get(|| async {}))
        .route_layer(RateLimitLayer::new(limiter))
}

/// Everything runs on the thread of the test, whose subscriber this is.
fn listen() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let guard = tracing::subscriber::set_default(lines.clone());
    (lines, guard)
}

#[tokio::test]
async fn an_outage_is_one_line_when_it_begins_and_one_when_it_ends() {
    let (lines, _guard) = listen();
    let store = Remote::new();
    let server = Server::start(app(Limiter::new(store.clone(), Quota::per_minute(99)))).await;
    assert_eq!(server.statuses(["/"; 3]).await, [200; 3]);
    assert_eq!(lines.take(), Vec::<String>::new());

    store.break_down(true);
    assert_eq!(server.statuses(["/"; 3]).await, [200; 3]);
    let said = lines.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("WARN"), "{said:?}");
    assert!(said[0].contains("cut off"), "{said:?}");

    store.break_down(false);
    assert_eq!(server.statuses(["/"; 3]).await, [200; 3]);
    let said = lines.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("INFO"), "{said:?}");
}

#[tokio::test]
async fn the_cause_of_a_refusal_is_in_the_log_and_says_what_to_do() {
    let (lines, _guard) = listen();
    let app = app(limiter(Quota::per_minute(9), &ManualClock::default()));
    let server = Server::start_without_peers(app).await;
    assert_eq!(server.status("/").await, 500);
    let said = lines.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("ERROR"), "{said:?}");
    assert!(
        said[0].contains("into_make_service_with_connect_info"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_shadow_lets_requests_pass_and_says_what_it_would_have_denied() {
    let (lines, _guard) = listen();
    let policies = Policies::new([
        Policy::from(Quota::per_minute(3)),
        Policy::new(
            "tight",
            tollgate_memory::Algorithm::Gcra,
            Quota::per_minute(1),
        )
        .unwrap()
        .shadow(),
    ])
    .unwrap();
    let server = Server::start(app(limiter(policies, &ManualClock::default()))).await;
    let response = server.get("/").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-ratelimit-limit"], "3");
    assert_eq!(
        response.headers()["ratelimit-policy"],
        r#""default";q=3;w=60"#
    );
    assert_eq!(lines.take(), Vec::<String>::new());

    assert_eq!(server.status("/").await, 200);
    let said = lines.take();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("DEBUG"), "{said:?}");
    assert!(said[0].contains("tight"), "{said:?}");
    assert_eq!(server.statuses(["/"; 2]).await, [200, 429]);
}

#[tokio::test]
async fn a_shadow_is_named_to_clients_only_if_told_so() {
    let shadow = Policy::from(Quota::per_minute(0)).shadow();
    let layer = |headers| {
        let limiter = limiter(shadow.clone(), &ManualClock::default());
        RateLimitLayer::new(limiter).headers(headers)
    };
    let app = Router::new()
        .route("/hidden", get(|| async {}).layer(layer(Headers::default())))
        .route(
            "/shown",
            get(|| async {}).layer(layer(Headers::default().shadow(true))),
        );
    let server = Server::start(app).await;
    let hidden = server.get("/hidden").await;
    assert_eq!(hidden.status(), 200);
    assert!(!hidden.headers().contains_key("x-ratelimit-shadow"));
    let shown = server.get("/shown").await;
    assert_eq!(shown.status(), 200);
    assert_eq!(shown.headers()["x-ratelimit-shadow"], r#""default""#);
    assert!(!shown.headers().contains_key("ratelimit"));
}
