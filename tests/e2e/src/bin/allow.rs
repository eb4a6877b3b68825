//! A webhook that allows everything: what any webhook costs at least, made of the same parts as Suture's.
//!
//! `allow PORT CERTIFICATE KEY`

use std::env;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use axum::routing::post;
use axum::{Json, Router};
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use serde_json::{Value, json};

async fn allow(Json(review): Json<Value>) -> Json<Value> {
    Json(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review.pointer("/request/uid"), "allowed": true},
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [port, certificate, key] = arguments.as_slice() else {
        return Err("usage: allow PORT CERTIFICATE KEY".into());
    };
    _ = rustls::crypto::ring::default_provider().install_default();
    let tls = RustlsConfig::from_pem_file(certificate, key).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
    let app = Router::new().route("/admit", post(allow)).route("/validate", post(allow));
    let server = axum_server::bind(address).acceptor(RustlsAcceptor::new(tls).acceptor(NoDelayAcceptor::new()));
    server.serve(app.into_make_service()).await?;
    Ok(())
}
