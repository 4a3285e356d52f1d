//! Tests of the hosts that are reached for a server.

use std::collections::BTreeSet;
use std::sync::Arc;

use belljar_kit_peers::{HttpPeer, Reply};
use belljar_mcp::{CallSpec, Connection, Server};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits};
use belljar_sandbox::{CancellationToken, HttpOptions, Sandbox, SandboxConfig, SecretStore};

use crate::Here;

/// Asks the server at this address what it offers; gives why it does not say.
async fn refused(url: &str, http: HttpOptions) -> String {
    let rule = url.trim_end_matches("/mcp").parse().unwrap();
    let server = Server::new("s", url, rule, BTreeSet::new(), None).unwrap();
    let sandbox = Sandbox::new(SandboxConfig { http, ..SandboxConfig::default() }).unwrap();
    let (secrets, limits) = (SecretStore::default(), Limits::default());
    let budget = Budget::new_root(BudgetLevel::Session, BudgetCaps::unlimited());
    let cancel = CancellationToken::new();
    let spec = CallSpec::from_parts(&sandbox, &secrets, &budget, &limits, &cancel);
    Connection::new(Arc::new(server)).list_tools(spec).await.unwrap_err()
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_reached_and_one_that_is_named_is() {
    let peer = HttpPeer::with_reply(Reply::default());
    let port = peer.address.port();
    let http = || HttpOptions::default().with_resolver(Here);
    let why = refused(&format!("http://mcp.example.com:{port}/mcp"), http()).await;
    assert!(why.contains("it cannot be reached"), "{why}");
    assert_eq!(peer.connection_count(), 0);
    refused(&format!("http://127.0.0.1:{port}/mcp"), http()).await;
    assert_eq!(peer.connection_count(), 1);
    // Not where this process listens itself, whoever names it.
    let own = http().with_own_listeners([peer.address]);
    refused(&format!("http://127.0.0.1:{port}/mcp"), own).await;
    assert_eq!(peer.connection_count(), 1);
}
