//! Tests of fetching an issuer's keys.

use belljar_kit_peers::{HttpPeer, OAuthIssuer, Reply};
use belljar_mcp::signing_keys;
use belljar_sandbox::{HttpOptions, Sandbox, SandboxConfig};
use serde_json::{Value, json};

use crate::Here;

async fn keys(url: &str) -> Result<Value, String> {
    let http = HttpOptions::default().with_resolver(Here);
    let sandbox = Sandbox::new(SandboxConfig { http, ..SandboxConfig::default() }).unwrap();
    signing_keys(&sandbox, url).await.map_err(|why| why.to_string())
}

/// The refusal of an issuer's keys.
async fn refused(issuer: OAuthIssuer) -> String {
    keys(&issuer.start().url("")).await.unwrap_err()
}

#[tokio::test]
async fn keys_are_read_where_the_issuer_says_that_they_are() {
    for place in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let document = json!({"keys": [1]});
        let issuer = OAuthIssuer { document_path: place, keys: document, ..OAuthIssuer::default() };
        assert_eq!(keys(&issuer.start().url("")).await.unwrap(), json!({"keys": [1]}));
    }
}

#[tokio::test]
async fn an_issuer_leads_nobody_astray() {
    let at = |keys: String| OAuthIssuer { jwks_uri: Some(keys), ..OAuthIssuer::default() };
    for (place, why) in [
        ("http://keys.example.org/keys", "is not encrypted"),
        ("https://keys.example.org/keys", "cannot be reached"),
        ("file:///etc/passwd", "is no address"),
        ("", "where its keys are"),
    ] {
        let refused = refused(at(place.to_owned())).await;
        assert!(refused.contains(why), "{place}: {refused}");
    }
    // Another program on this machine.
    let neighbour = HttpPeer::with_reply(Reply::json(&json!({"keys": [1]}))).url("/keys");
    for place in [neighbour.clone(), neighbour.replace("127.0.0.1", "localhost")] {
        let refused = refused(at(place)).await;
        assert!(refused.contains("at another port of this machine"), "{refused}");
    }
    let issuer = Some("https://id.example.org".to_owned());
    let other = refused(OAuthIssuer { issuer, ..OAuthIssuer::default() }).await;
    assert!(other.contains("says that it is"), "{other}");
    let redirects = HttpPeer::with_reply(Reply::redirect("302 Found", "http://127.0.0.1:9/"));
    let redirected = keys(&redirects.url("")).await.unwrap_err();
    assert!(redirected.contains("no redirect is followed"), "{redirected}");
    let long = json!({"keys": ["k".repeat(300 << 10)]});
    let long = refused(OAuthIssuer { keys: long, ..OAuthIssuer::default() }).await;
    assert!(long.contains("too long"), "{long}");
}
