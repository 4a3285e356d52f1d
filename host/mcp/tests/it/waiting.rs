//! Tests of calls that wait for a person, and of calls that wait for those. The test controls the clock.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use belljar_kit_peers::{McpPeer, mcp};
use belljar_mcp::{
    AcceptedTools, CallSpec, Connection, ListedTool, QuestionAnswer, SampleRequest, SampledText,
    SamplingGrant, Server, ServerGrants, ServerQuestion, ServerResponder,
};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits, ToolName};
use belljar_sandbox::{
    CallResult, CancellationToken, HttpOptions, OutputPart, Sandbox, SandboxConfig, SecretStore,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::Here;

/// A person who answers when the test allows.
#[derive(Default)]
struct Person {
    asked: Notify,
    answers: Notify,
}

#[async_trait]
impl ServerResponder for Person {
    async fn ask_person(&self, _: &ServerQuestion<'_>) -> QuestionAnswer {
        self.asked.notify_one();
        self.answers.notified().await;
        QuestionAnswer::Words("Yes".to_owned())
    }

    async fn sample_text(
        &self,
        _: &str,
        _: &SamplingGrant,
        _: &SampleRequest,
    ) -> Result<SampledText, String> {
        Err("no model".to_owned())
    }

    fn is_muted(&self, _: &str) -> bool {
        false
    }

    async fn mute_server(&self, _: &str) {}

    fn is_given_up(&self, _: &str) -> bool {
        false
    }

    fn record_attendance(&self, _: &str, _: bool) {}
}

/// A server whose call `first` asks the person for a yes.
fn server() -> McpPeer {
    let peer = McpPeer::start();
    let tool = json!({"name": "echo", "description": "d", "inputSchema": {"type": "object"}});
    peer.lists(vec![tool]);
    let (answered, answers) = channel();
    let answers = Mutex::new(answers);
    peer.acts(move |request, connection| {
        if request.body["params"]["arguments"]["text"] == "first" {
            let params = json!({"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}});
            let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
            mcp::events(connection);
            mcp::event(connection, &ask);
            answers.lock().unwrap().recv().unwrap();
            let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": mcp::said("first")});
            return mcp::event(connection, &answer);
        }
        if request.body["id"] == "q" {
            mcp::status(connection, "202 Accepted", "");
            answered.send(()).unwrap();
            return true;
        }
        false
    });
    peer
}

fn told(result: CallResult) -> String {
    match result.outcome.unwrap().parts.last() {
        Some(OutputPart::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The time limit of a call in seconds.
const LIMIT: u64 = 30;

#[tokio::test(start_paused = true)]
async fn a_person_who_takes_their_time_costs_neither_the_call_nor_those_behind_it() {
    // While something blocks, the clock does not move by itself.
    let (still, held) = channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "a test that waits for a channel")]
    let held = tokio::task::spawn_blocking(move || held.recv());
    let peer = server();
    let url = peer.url();
    let rule = url.trim_end_matches("/mcp").parse().unwrap();
    let tool: ListedTool = serde_json::from_value(
        json!({"name": "echo", "description": "d", "schema": {"type": "object"}}),
    )
    .unwrap();
    let server = Server::new("s", &url, rule, BTreeSet::new(), None).unwrap();
    let server = server
        .with_grants(ServerGrants { elicitation: true, ..ServerGrants::default() })
        .with_accepted(&url, AcceptedTools::from_tools(&url, vec![tool]));
    let http = HttpOptions::default().with_resolver(Here);
    let sandbox = Sandbox::new(SandboxConfig { http, ..SandboxConfig::default() }).unwrap();
    let (secrets, cancel) = (SecretStore::default(), CancellationToken::new());
    let limits = Limits { call_timeout_seconds: LIMIT, ..Limits::default() };
    let budget = Budget::new_root(BudgetLevel::Session, BudgetCaps::unlimited());
    let person = Person::default();
    let spec = || {
        let alone = CallSpec::from_parts(&sandbox, &secrets, &budget, &limits, &cancel);
        CallSpec { answers: Some(&person), ..alone }
    };
    let connection = Connection::new(Arc::new(server));
    let name = ToolName::new("mcp__s__echo").unwrap();
    let calls = |text: &'static str| {
        let arguments = json!({ "text": text }).to_string();
        let (connection, name, spec) = (&connection, &name, spec());
        async move { connection.call_tool(name, &arguments, spec).await }
    };
    let thinks = async {
        person.asked.notified().await;
        tokio::time::advance(Duration::from_secs(LIMIT * 10)).await;
        person.answers.notify_one();
    };
    let (first, second, ()) = tokio::join!(calls("first"), calls("second"), thinks);
    assert_eq!(told(first), "first");
    assert_eq!(told(second), "second");
    drop(still);
    assert!(held.await.unwrap().is_err());
}
