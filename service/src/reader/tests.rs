//! Who does not know the path, or asks by another name, or for something else than to read, gets nothing.

use axum::routing::get;
use http_body_util::BodyExt;

use super::*;

const PORT: u16 = 4711;

async fn ask(routes: &Router, method: &str, host: Option<&str>, path: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path);
    let request = match host {
        Some(host) => request.header("host", host),
        None => request,
    };
    let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    (status, String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn it_answers_under_its_path_by_its_own_name_to_get_alone() {
    let echo = get(|uri: Uri| async move { format!("asked for {uri}") });
    let key = key().unwrap();
    assert!(key.len() == 32 && key != super::key().unwrap());
    let routes = local(&key, PORT, Router::new().fallback(echo));
    let own = Some("127.0.0.1:4711");
    for (path, asked) in [
        ("/", "/"),
        ("/?user=a%26b&before=x", "/?user=a%26b&before=x"),
        ("/reports/0000000000001/page", "/reports/0000000000001/page"),
    ] {
        for host in [own, Some("localhost:4711")] {
            let answer = ask(&routes, "GET", host, &format!("/{key}{path}")).await;
            assert_eq!(answer, (200, format!("asked for {asked}")), "{path}");
        }
    }
    let inside = format!("/{key}/reports");
    for (method, status) in [("POST", 405), ("PUT", 405), ("DELETE", 405), ("HEAD", 405), ("OPTIONS", 405)] {
        assert_eq!(ask(&routes, method, own, &inside).await.0, status, "{method}");
    }
    for host in
        [None, Some("evil.example"), Some("evil.example:4711"), Some("127.0.0.1"), Some("127.0.0.1:80"), Some("")]
    {
        let (status, text) = ask(&routes, "GET", host, &inside).await;
        assert!(status == 421 && !text.contains("asked for /"), "{host:?} {status} {text}");
    }
    let other = super::key().unwrap();
    let wrong = [
        "/".to_owned(),
        "/reports".to_owned(),
        format!("/{other}/reports"),
        format!("/{key}"),
        format!("/{}/", &key[1..]),
        format!("//{key}/"),
    ];
    for path in wrong {
        let (status, text) = ask(&routes, "GET", own, &path).await;
        assert!(status == 404 && text.contains("has printed"), "{path} {status} {text}");
    }
    for path in ["..", "../..", "reports/../../x", "reports//x", "%2e%2e/x", "reports/", "a%2fb", "api/v1:x"] {
        let (status, text) = ask(&routes, "GET", own, &format!("/{key}/{path}")).await;
        assert!(status == 404 && !text.contains("asked for /"), "{path} {status} {text}");
    }
}
