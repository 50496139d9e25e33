//! A budget of tokens.

use std::convert::Infallible;

use bytes::Bytes;
use futures::stream;
use http_body_util::StreamBody;
use reqwest::{Body, Method, Response};
use serde_json::json;
use tokio::sync::mpsc;
use tollgate_memory::ManualClock;

use crate::server::Server;
use crate::support::{number, post, store, violated};

#[path = "../../examples/token_budget.rs"]
#[expect(dead_code, reason = "its `main` is for users")]
mod example;

async fn start() -> Server {
    let store = store(&ManualClock::default());
    Server::start(example::app(&store).unwrap()).await
}

async fn complete(server: &Server, prompt: &str) -> Response {
    post(server, "/complete", &json!({"prompt": prompt})).await
}

fn left(response: &Response) -> u64 {
    number(response, "x-ratelimit-remaining").unwrap()
}

#[tokio::test]
async fn an_answer_costs_its_tokens_once_it_is_complete() {
    let server = start().await;
    let answer = complete(&server, "what is the answer").await;
    // 31 bytes are 8 tokens at most, and the answer may have 100.
    assert_eq!(left(&answer), 1_000 - 108);
    assert_eq!(answer.text().await.unwrap(), "answer the is what ");

    // Four words were asked, and four answered.
    let next = complete(&server, "what is the answer").await;
    assert_eq!(left(&next), 1_000 - 8 - 108);
}

#[tokio::test]
async fn what_is_never_settled_stays_charged() {
    let server = start().await;
    let request = server.request(Method::POST, "/complete").body("no json.");
    let refused = request.send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), left(&refused)),
        (415, 1_000 - 102)
    );

    let next = complete(&server, "what is the answer").await;
    assert_eq!(left(&next), 1_000 - 102 - 108);
}

#[tokio::test]
async fn what_was_used_beyond_the_estimate_is_paid_by_waiting() {
    let server = start().await;
    let long = complete(&server, &"word ".repeat(510)).await;
    assert_eq!(long.status(), 200);
    assert_eq!(long.text().await.unwrap().len(), 510 * 5);

    // 1020 of 1000 are used. A thousand a minute are 108 and the debt of 20 in 7.68 seconds.
    let denied = complete(&server, "what is the answer").await;
    assert_eq!(denied.status(), 429);
    assert_eq!(number(&denied, "retry-after"), Some(8));
    assert_eq!(violated(denied).await, json!(["tokens"]));
}

#[tokio::test]
async fn a_prompt_of_unknown_length_is_charged_the_most_that_one_has() {
    let server = start().await;
    let prompt = Bytes::from(json!({"prompt": "hello"}).to_string());
    let frames = stream::iter([Ok::<_, Infallible>(http_body::Frame::data(prompt))]);
    let request = server.request(Method::POST, "/complete");
    let request = request.header("content-type", "application/json");
    let answer = request
        .body(Body::wrap(StreamBody::new(frames)))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (answer.status().as_u16(), left(&answer)),
        (200, 1_000 - 600)
    );
}

#[tokio::test]
async fn nothing_more_is_generated_for_a_client_that_has_left() {
    let (words, mut answer) = mpsc::channel(1);
    let reading = async move {
        answer.recv().await.unwrap();
        answer.recv().await.unwrap();
    };
    let (tokens, ()) = tokio::join!(
        example::generate("one two three four five six", &words),
        reading
    );
    // Six were asked and two read; one more may have been on its way.
    assert!((8..=9).contains(&tokens), "{tokens}");
}
