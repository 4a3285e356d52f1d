//! The keys of an issuer, asked for by whoever checks its tokens.

use belljar_mcp::signing_keys;
use belljar_sandbox::{HttpOptions, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::Here;

/// An issuer on this machine that answers each path so; gives its address.
async fn issuer(answer: impl Fn(&str, &str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n")
                && stream.read_buf(&mut request).await.unwrap() > 0
            {}
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let _ = stream.write_all(answer(&own, path).as_bytes()).await;
        }
    });
    url
}

fn ok(body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn about(issuer: &str, keys: &str) -> String {
    ok(&json!({ "issuer": issuer, "jwks_uri": keys }))
}

const NONE: &str = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

async fn keys(url: &str) -> Result<Value, String> {
    let http = HttpOptions::default().with_resolver(Here);
    let sandbox = Sandbox::new(SandboxConfig { http, ..SandboxConfig::default() }).unwrap();
    signing_keys(&sandbox, url).await.map_err(|why| why.to_string())
}

#[tokio::test]
async fn keys_are_read_where_the_issuer_says_that_they_are() {
    for place in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let url = issuer(move |own, path| match path {
            "/keys" => ok(&json!({"keys": [1]})),
            path if path == place => about(own, &format!("{own}/keys")),
            _ => NONE.to_owned(),
        });
        assert_eq!(keys(&url.await).await.unwrap(), json!({"keys": [1]}));
    }
}

#[tokio::test]
async fn an_issuer_leads_nobody_astray() {
    let at = |keys: &'static str| {
        issuer(move |own, path| match path {
            "/.well-known/oauth-authorization-server" => about(own, keys),
            _ => NONE.to_owned(),
        })
    };
    for (place, why) in [
        ("http://keys.example.org/keys", "is not encrypted"),
        ("https://keys.example.org/keys", "cannot be reached"),
        ("file:///etc/passwd", "is no address"),
        ("", "where its keys are"),
    ] {
        let refused = keys(&at(place).await).await.unwrap_err();
        assert!(refused.contains(why), "{place}: {refused}");
    }
    // Another program on this machine.
    let neighbour = issuer(|_, _| ok(&json!({"keys": [1]}))).await;
    for place in [neighbour.clone(), neighbour.replace("127.0.0.1", "localhost")] {
        let leads = issuer(move |own, _| about(own, &format!("{place}/keys")));
        let refused = keys(&leads.await).await.unwrap_err();
        assert!(refused.contains("at another port of this machine"), "{refused}");
    }
    let other = issuer(|_, _| about("https://id.example.org", "https://id.example.org/keys"));
    let refused = keys(&other.await).await.unwrap_err();
    assert!(refused.contains("says that it is"), "{refused}");
    let redirects = issuer(|_, _| {
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"
            .to_owned()
    });
    let refused = keys(&redirects.await).await.unwrap_err();
    assert!(refused.contains("no redirect is followed"), "{refused}");
    let long = issuer(|own, path| match path {
        "/keys" => ok(&json!({"keys": ["k".repeat(300 << 10)]})),
        _ => about(own, &format!("{own}/keys")),
    });
    let refused = keys(&long.await).await.unwrap_err();
    assert!(refused.contains("too long"), "{refused}");
}
