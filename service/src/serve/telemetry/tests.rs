//! That traces reach a collector.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;

use super::*;

type Received = Arc<Mutex<Vec<Bytes>>>;

async fn collector() -> (String, Received) {
    let received = Received::default();
    let take = |State(received): State<Received>, body: Bytes| async move { received.lock().unwrap().push(body) };
    let router = Router::new().route("/v1/traces", post(take)).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, received)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_span_reaches_the_collector_in_the_trace_of_its_caller() {
    let (address, received) = collector().await;
    let provider = provider(&Handle::current(), Some(&address)).unwrap();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let mut headers = HeaderMap::new();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    headers.insert("traceparent", format!("00-{trace}-b7ad6b7169203331-01").parse().unwrap());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let span = tracing::info_span!("review", uid = "u-1");
        join(&span, &headers);
        span.in_scope(|| tracing::info!("answered"));
        ended(&span, "shed");
    });
    let flushed = tokio::task::spawn_blocking(move || provider.force_flush()).await.unwrap();
    assert!(flushed.is_ok(), "{flushed:?}");
    let sent = received.lock().unwrap().concat();
    let id: Vec<u8> = (0..16).map(|byte| u8::from_str_radix(&trace[2 * byte..2 * byte + 2], 16).unwrap()).collect();
    assert!(has(&sent, b"review") && has(&sent, b"u-1") && has(&sent, b"answered") && has(&sent, b"suture"));
    assert!(has(&sent, b"outcome") && has(&sent, b"shed"));
    assert!(has(&sent, &id));
}

#[test]
fn without_a_collector_nothing_is_joined() {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", "nonsense".parse().unwrap());
    join(&Span::none(), &headers);
}
