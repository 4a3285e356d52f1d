//! Requests as the OpenAPI document allows them, and as it does not.

use serde_json::json;

use crate::kit::World;

/// Each is as the document has it: whatever is not there is not there, and nothing is called unfit.
#[tokio::test]
async fn what_the_document_allows_is_not_refused_as_unfit() {
    let world = World::new().await;
    let id = world.state("blue").await.0.remove(0).id;
    let long = "é".repeat(200);
    for (path, status) in [
        ("/v1/grants?agent=".to_owned(), 404),
        (format!("/v1/grants?agent={}", "x".repeat(300)), 404),
        ("/v1/tools?agent=%E2%80%8B".to_owned(), 404),
        ("/v1/explain?agent=&tool=".to_owned(), 404),
        (format!("/v1/explain?agent=teller&tool={}", "x".repeat(300)), 404),
        (format!("/v1/sessions?q={}", long.replace('é', "%C3%A9")), 200),
        (format!("/v1/sessions/{id}/messages?full=true&limit=200"), 200),
        ("/v1/agents?scope=library/x-1".to_owned(), 200),
        ("/v1/usage?since=2026-11-28&by=model,day".to_owned(), 200),
    ] {
        world.call_as("blue-admin", "GET", &path).send().await.is(status);
    }
    for (path, body, status) in [
        ("/v1/chat", json!({"agent": "", "text": "x"}), 404),
        ("/v1/chat", json!({"model": "\u{200b}", "text": "x", "limits": {"steps": 1}}), 404),
        ("/v1/chat/completions", json!({"model": "", "messages": []}), 404),
        ("/v1/chat/completions", json!({"model": "nobody", "messages": [{}], "n": 2}), 404),
        ("/v1/responses", json!({"model": "nobody", "input": null}), 404),
        ("/v1/preview", json!({"model": "", "text": ""}), 404),
    ] {
        let answer = world.call_as("blue-admin", "POST", path).json(&body).send().await;
        answer.is(status);
    }
    let cancel = format!("/v1/sessions/{id}/cancel");
    let odd = json!({"subagent": "\u{200b}".repeat(3_000)});
    let told = world.call_as("blue-admin", "POST", &cancel).json(&odd).send().await.is(200).json();
    assert_eq!(told["cancelled"], false);
    // And what it does not allow is refused.
    for path in ["/v1/sessions?limit=0", "/v1/usage?since=28.11.2026", "/v1/agents?scope=draft"] {
        world.call_as("blue-admin", "GET", path).send().await.is(400);
    }
    for body in [json!({"text": " "}), json!({"text": "x", "limits": {"stepps": 1}})] {
        world.call_as("blue-admin", "POST", "/v1/chat").json(&body).send().await.is(400);
    }
}

/// A head that is too large is refused before any route sees the request, so no handler documents
/// the status.
#[tokio::test]
async fn a_refusal_before_any_route_is_documented_by_every_operation() {
    let world = World::new().await;
    let document =
        world.call_as("blue-admin", "GET", "/v1/openapi.json").send().await.is(200).json();
    let long = "x".repeat(40_000);
    for path in ["/v1/explain", "/v1/sessions", "/v1/usage", "/v1/models"] {
        let answer =
            world.call_as("blue-admin", "GET", &format!("{path}?agent={long}")).send().await;
        answer.is(431);
        assert!(document["paths"][path]["get"]["responses"]["431"].is_object(), "{path}");
    }
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (verb, operation) in operations.as_object().unwrap() {
            assert!(operation["responses"]["431"].is_object(), "{verb} {path}");
        }
    }
}
