//! Logs as JSON lines on standard error, and traces to an OpenTelemetry collector where one is named.
//!
//! | variable | says |
//! |---|---|
//! | `RUST_LOG` | what is logged; default `info` |
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | where traces go, as OTLP over HTTP; without it none are made |
//! | `OTEL_EXPORTER_OTLP_CERTIFICATE` | the authority that a collector behind `https://` is trusted by: a PEM file |
//!
//! The exporter reads the other variables of OpenTelemetry's specification (headers, timeout, sampler, resource) itself.

use std::env;
use std::fs;
use std::io;
use std::panic;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// What a collector may answer; more is not read.
const RESPONSE_MAX_BYTES: usize = 1 << 20;
/// A collector that takes longer has lost a batch.
const SEND_MAX: Duration = Duration::from_secs(10);
/// How long leaving waits for the last batch.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Enabled at debug level where each request gets a span, whatever becomes of it.
const TRACES: &str = "suture_traces";

/// Why there are no logs or traces.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `RUST_LOG` is malformed.
    #[error("`RUST_LOG` cannot be read: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter refuses its settings.
    #[error("traces cannot be sent: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The collector's authority cannot be read.
    #[error("`OTEL_EXPORTER_OTLP_CERTIFICATE` cannot be used: {0}")]
    Authority(String),
    /// Somebody logs already.
    #[error("logging is set up already: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Logs and traces of this process.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Starts logging, tracing if a collector is named, and logs panics. To be called on a tokio runtime.
    ///
    /// # Errors
    /// When the environment asks for what cannot be done.
    pub fn start() -> Result<Self, TelemetryError> {
        let wanted = env::var("RUST_LOG").unwrap_or_default();
        let filter = EnvFilter::try_new(if wanted.is_empty() { "info" } else { &wanted })?;
        let traces = if collector_named() { Some(provider(&Handle::current(), None)?) } else { None };
        let layer = traces.as_ref().map(|traces| {
            let tracer = traces.tracer("suture");
            // the client's own connections would otherwise be traced, and sent, and traced
            let ours = format!("off,suture=info,suture_service=info,suture_checker=info,{TRACES}=debug");
            let ours = EnvFilter::new(ours);
            tracing_opentelemetry::layer().with_tracer(tracer).with_filter(ours)
        });
        let logs = fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
        let logs = logs.with_writer(io::stderr).with_filter(filter);
        tracing_subscriber::registry().with(logs).with(layer).try_init()?;
        panic::set_hook(Box::new(|info| {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let message = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no text");
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(message, location, "panic");
        }));
        Ok(Self { traces })
    }

    /// Sends what is left. Blocks for two seconds at most.
    pub fn stop(self) {
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown_with_timeout(FLUSH_MAX)) {
            tracing::warn!(%error, "the last traces are lost");
        }
    }
}

/// Whether somebody wants a span of every request: a collector, or whoever debugs. Otherwise those have one that more
/// than an allowance is logged about.
pub fn traces() -> bool {
    tracing::enabled!(target: TRACES, tracing::Level::DEBUG)
}

fn collector_named() -> bool {
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// What makes traces and sends them to `address`, else where the environment says.
fn provider(runtime: &Handle, address: Option<&str>) -> Result<SdkTracerProvider, TelemetryError> {
    let collector = Collector::new(runtime.clone())?;
    let mut exporter = SpanExporter::builder().with_http().with_http_client(collector);
    if let Some(address) = address {
        exporter = exporter.with_endpoint(address);
    }
    let exporter = exporter.build()?;
    let mut resource = Resource::builder();
    if env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("suture");
    }
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// Makes a span part of the trace that the caller's `traceparent` names (the API server sends one when it traces itself).
pub fn join(span: &Span, headers: &HeaderMap) {
    if !headers.contains_key("traceparent") {
        return;
    }
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if context.span().span_context().is_valid() {
        // without a collector there is no trace to join
        _ = span.set_parent(context);
    }
}

/// Says in the trace how the request of a span ended. Log lines say it themselves: to add it to what they repeat of the
/// span would be to write that anew, for each request.
pub fn ended(span: &Span, outcome: &'static str) {
    span.set_attribute("outcome", outcome);
}

/// The way to the collector: the HTTP client that is linked anyway. Batches come from the exporter's own thread, the
/// connection lives on our runtime.
#[derive(Debug)]
struct Collector {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Collector {
    fn new(runtime: Handle) -> Result<Self, TelemetryError> {
        let roots = match env::var_os("OTEL_EXPORTER_OTLP_CERTIFICATE") {
            Some(path) => roots(&fs::read(&path).map_err(|error| TelemetryError::Authority(error.to_string()))?)?,
            None => RootCertStore::empty(),
        };
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new()).build(connector.build());
        Ok(Self { runtime, client })
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TelemetryError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TelemetryError::Authority(error.to_string()))?;
        roots.add(certificate).map_err(|error| TelemetryError::Authority(error.to_string()))?;
    }
    Ok(roots)
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = async move {
            let (parts, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, RESPONSE_MAX_BYTES).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        };
        self.runtime.spawn(async { tokio::time::timeout(SEND_MAX, sent).await }).await??
    }
}

#[cfg(test)]
mod tests;
