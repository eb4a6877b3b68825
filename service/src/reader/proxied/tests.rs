//! What an API server is asked, and what becomes of its answers: a server on this machine stands in for it, with Suture's own
//! routes behind the path that a Service is proxied under.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::extract::Request as Asked;
use axum::http::HeaderMap;
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::*;
use crate::serve::reports::access::{Authority, Reader};
use crate::serve::reports::api::{self, Around};
use crate::serve::reports::store::ReportStore;

const PROXY: &str = "/api/v1/namespaces/guard/services/https:suture-reports:reports/proxy";

/// Knows whoever shows one of these tokens.
struct Scripted;

#[async_trait::async_trait]
impl Authority for Scripted {
    async fn known(&self, token: &str) -> Result<Option<Reader>, String> {
        Ok(["ana-token", "file-token"].contains(&token).then(Reader::default))
    }

    async fn may_read(&self, _: &Reader, _: &str) -> Result<bool, String> {
        Ok(true)
    }
}

/// What the server was asked: path with query, and headers.
type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

/// An API server that proxies one Service, as `Authorization` is kept by a real one; for others it says `denied`.
async fn api_server(folder: &std::path::Path, denied: (u16, &'static str)) -> (Config, Seen) {
    let seen = Seen::default();
    let suture = api::router(ReportStore::open(folder).unwrap(), Arc::new(Scripted), Around::default());
    let asked = seen.clone();
    let answer = move |mut request: Asked| {
        let path = request.uri().path_and_query().unwrap().to_string();
        asked.lock().unwrap().push((path.clone(), request.headers().clone()));
        let suture = suture.clone();
        async move {
            let Some(rest) = path.strip_prefix(PROXY) else {
                let status = json!({"kind": "Status", "status": "Failure", "message": denied.1, "code": denied.0});
                return (
                    StatusCode::from_u16(denied.0).unwrap(),
                    [(CONTENT_TYPE, "application/json")],
                    status.to_string(),
                )
                    .into_response();
            };
            request.headers_mut().remove(AUTHORIZATION);
            *request.uri_mut() = rest.parse().unwrap();
            suture.oneshot(request).await.unwrap()
        }
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    _ = rustls::crypto::ring::default_provider().install_default();
    (Config::new(address.parse().unwrap()), seen)
}

fn place(service: &str) -> Place {
    Place { namespace: "guard".to_owned(), service: service.to_owned(), port: "reports".to_owned() }
}

async fn got(routes: &Router, path: &str) -> (u16, HeaderMap, String) {
    let response = routes.clone().oneshot(Asked::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    (parts.status.as_u16(), parts.headers, text)
}

#[tokio::test]
async fn a_reader_is_known_by_his_own_token_behind_the_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let (mut config, seen) = api_server(folder.path(), (404, "")).await;
    config.auth_info.token = Some("ana-token".to_owned().into());
    let proxied = Proxied::new(&config, place("suture-reports"), None).unwrap();
    proxied.check().await.unwrap();
    let routes = router(proxied);
    let (status, headers, page) = got(&routes, "/?user=a%26b").await;
    assert!(
        status == 200 && page.contains("value=\"a&amp;b\"") && headers[CONTENT_TYPE] == "text/html; charset=utf-8",
        "{page}"
    );
    assert!(headers[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("frame-ancestors 'none'"));
    assert_eq!(
        (&headers[CACHE_CONTROL], &headers[X_CONTENT_TYPE_OPTIONS]),
        (&HeaderValue::from_static("no-store"), &HeaderValue::from_static("nosniff"))
    );
    let (status, _, json) = got(&routes, "/reports?limit=3").await;
    assert_eq!((status, json.as_str()), (200, r#"{"count":0,"reports":[]}"#));
    // Suture's own refusals come through as they are
    let (status, _, text) = got(&routes, "/reports?color=red").await;
    assert!(status == 400 && text.contains("color"), "{text}");
    assert_eq!(got(&routes, "/reports/0000000000001/page").await.0, 404);
    let seen = seen.lock().unwrap();
    let paths: Vec<&str> = seen.iter().map(|(path, _)| path.strip_prefix(PROXY).unwrap()).collect();
    let asked =
        ["/reports?limit=1", "/?user=a%26b", "/reports?limit=3", "/reports?color=red", "/reports/0000000000001/page"];
    assert_eq!(paths, asked);
    for (_, headers) in seen.iter() {
        assert_eq!(
            (&headers[AUTHORIZATION], &headers[FORWARDED]),
            (&HeaderValue::from_static("Bearer ana-token"), &HeaderValue::from_static("Bearer ana-token"))
        );
    }
}

#[tokio::test]
async fn a_token_of_a_file_is_read_each_time_and_stands_in_for_one_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut config, seen) = api_server(folder.path(), (404, "")).await;
    let none = Proxied::new(&config, place("suture-reports"), None).unwrap();
    let why = none.check().await.unwrap_err();
    assert!(why.contains("has no token") && why.contains("--token-file"), "{why}");
    // a password is for the API server alone
    config.auth_info.username = Some("ana".to_owned());
    config.auth_info.password = Some("secret".to_owned().into());
    let basic = Proxied::new(&config, place("suture-reports"), None).unwrap();
    assert!(basic.check().await.unwrap_err().contains("has no token"));
    assert_eq!(seen.lock().unwrap().last().unwrap().1.get(FORWARDED), None, "a password goes nowhere else");

    // the same on a page, as where a token has ended meanwhile
    let (status, _, text) = got(&router(basic), "/").await;
    assert!(status == 401 && text.contains("--token-file"), "{text}");

    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "old-token").unwrap();
    let of_file = Proxied::new(&config, place("suture-reports"), Some(file.path().to_owned())).unwrap();
    assert!(of_file.check().await.unwrap_err().contains("does not know you"));
    std::fs::write(file.path(), "file-token\n").unwrap();
    of_file.check().await.unwrap();
    assert!(seen.lock().unwrap().last().unwrap().1[AUTHORIZATION].to_str().unwrap().starts_with("Basic "));
}

#[tokio::test]
async fn what_the_api_server_refuses_is_said_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (denied, what) in [
        ((403, "User \"ana\" cannot get resource \"services/proxy\""), "--resource-name https:other:reports"),
        ((404, "services \"other\" not found"), "--service"),
        ((503, "no endpoints available"), "is a replica of Suture ready?"),
        ((401, "Unauthorized"), "Unauthorized"),
        ((500, "<b>"), "<b>"),
    ] {
        let (config, _) = api_server(&folder.path().join(denied.0.to_string()), denied).await;
        let proxied = Proxied::new(&config, place("other"), None).unwrap();
        let why = proxied.check().await.unwrap_err();
        assert!(why.contains(denied.1) && why.contains(what), "{why}");
        let (status, headers, text) = got(&router(proxied), "/").await;
        assert!(status == denied.0 && text == why, "{status} {text}");
        assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(headers[CONTENT_SECURITY_POLICY], NOTHING);
    }
    // nobody listens
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let proxied = Proxied::new(&config, place("suture-reports"), None).unwrap();
    assert!(proxied.check().await.is_err());
    let (status, _, text) = got(&router(proxied), "/").await;
    assert!(status == 502 && text.contains("the cluster cannot be asked"), "{text}");
}
