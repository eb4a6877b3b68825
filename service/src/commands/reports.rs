//! `suture reports`: the reports of a cluster, or of a folder, in the browser of whoever may read them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, Request};
use tokio::net::TcpListener;
use tower::ServiceBuilder;

use crate::arguments::Reports;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::proxied::{Place, Proxied};
use crate::reader::{self, proxied};
use crate::serve;
use crate::serve::reports::access::Owner;
use crate::serve::reports::api::{self, Around};
use crate::serve::reports::store::ReportStore;

pub(super) fn run(arguments: Reports) -> Result<Exit, Failure> {
    // one that is installed already serves as well
    _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::invalid(format!("cannot start: {error}")))?;
    runtime.block_on(show(arguments))
}

/// Serves until Ctrl-C.
async fn show(arguments: Reports) -> Result<Exit, Failure> {
    let Reports { port, reports, .. } = &arguments;
    let (port, folder) = (port.unwrap_or(0), reports.clone());
    let (whose, routes) = match folder {
        Some(folder) => (format!("of {}", folder.display()), of_folder(&folder)?),
        None => (
            format!("of {} in {}, as you may read them", arguments.service, arguments.namespace),
            of_cluster(arguments).await?,
        ),
    };
    let unbound = |error| Failure::invalid(format!("cannot listen at port {port} of 127.0.0.1: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(unbound)?;
    let port = listener.local_addr().map_err(unbound)?.port();
    let key = reader::key().map_err(Failure::invalid)?;
    output::print(&format!(
        "Reports {whose}: open http://127.0.0.1:{port}/{key}/\nWhoever has this address reads as you do, until Ctrl-C.\n"
    ))?;
    let asked_to_leave = async { _ = tokio::signal::ctrl_c().await };
    let serving = axum::serve(listener, reader::local(&key, port, routes));
    tokio::select! {
        served = serving => served.map_err(Failure::invalid)?,
        () = asked_to_leave => {}
    }
    Ok(Exit::Good)
}

/// Those of a cluster, if it answers.
async fn of_cluster(arguments: Reports) -> Result<Router, Failure> {
    let Reports { namespace, service, kubeconfig, context, token_file, .. } = arguments;
    let config = serve::config(kubeconfig.as_deref(), context.as_deref()).await?;
    let (service, port) = service.split_once(':').unwrap_or((&service, "reports"));
    let place = Place { namespace, service: service.to_owned(), port: port.to_owned() };
    if let Some(file) = &token_file {
        std::fs::read_to_string(file).map_err(|error| Failure::read(file, error))?;
    }
    let proxied = Proxied::new(&config, place, token_file).map_err(Failure::invalid)?;
    proxied.check().await.map_err(|why| Failure::invalid(format!("the reports cannot be read: {why}")))?;
    Ok(proxied::router(proxied))
}

/// Those of a folder. Whoever may open its file may read everything.
fn of_folder(folder: &Path) -> Result<Router, Failure> {
    let store = ReportStore::open_existing(folder);
    let store = store.map_err(|error| Failure::read(folder, std::io::Error::other(error)))?;
    let known = |mut request: Request<axum::body::Body>| {
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer owner"));
        request
    };
    Ok(api::router(store, Arc::new(Owner), Around::default()).layer(ServiceBuilder::new().map_request(known)))
}
