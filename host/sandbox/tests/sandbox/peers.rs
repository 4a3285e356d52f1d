//! The cost of calling other tools, for every kind of provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_kit::{TestHost, hostile};
use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, Limits, PeersAsk, Rights,
    ToolAsk, ToolName,
};
use belljar_sandbox::{
    CallOptions, JarSpec, JarTool, NestedScope, PeerCall, PeerPort, PeerResult, PeerTool,
    SecretStore, ToolHints,
};
use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const DESCRIPTION: usize = 1 << 20;

/// A provider of a single tool with a long description.
struct Wordy;

impl PeerPort for Wordy {
    fn list_tools(&self) -> Vec<PeerTool> {
        vec![PeerTool {
            name: "wordy".to_owned(),
            tool: ToolName::new("wordy").unwrap(),
            description: "x".repeat(DESCRIPTION),
            schema: "{}".to_owned(),
            hints: ToolHints::default(),
        }]
    }

    fn call_tools(&self, _: Vec<PeerCall>, _: NestedScope) -> BoxFuture<'static, Vec<PeerResult>> {
        Box::pin(async { Vec::new() })
    }
}

#[tokio::test]
async fn a_guest_pays_for_each_byte_of_the_list_of_tools() {
    let host = TestHost::new();
    let names = ["caller", "wordy"].map(|name| ToolName::new(name).unwrap());
    let grants = Grants {
        tools: names.iter().map(|name| (name.clone(), CallPermission::Allow)).collect(),
        ..Grants::none()
    };
    let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
    let tool = JarTool {
        tools: [(names[0].clone(), ToolHints::default())].into(),
        wasm: hostile("caller"),
        ask: ToolAsk { peers: PeersAsk::All, ..ToolAsk::default() },
        config: Arc::default(),
    };
    let spec = JarSpec {
        rights: rights.clone(),
        budget: Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&Limits::default())),
        tools: vec![tool],
        secrets: SecretStore::default(),
        overlays: BTreeMap::new(),
        cancel: CancellationToken::new(),
    };
    let jar = host.sandbox.open_jar(spec).unwrap();
    let lists = async |times: usize| {
        let arguments = json!({ "steps": vec![json!({ "do": "list" }); times] }).to_string();
        let with = CallOptions { peers: Some(Arc::new(Wordy)), ..CallOptions::default() };
        let result = jar.call_with(rights.tool("caller").unwrap(), &arguments, with).await;
        result.outcome.unwrap();
        result.receipt.fuel
    };
    lists(1).await;
    let (one, eleven) = (lists(1).await, lists(11).await);
    assert!(eleven - one >= 10 * DESCRIPTION as u64, "{} for ten", eleven - one);
}
