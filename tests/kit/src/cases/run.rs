//! Runs the cases of one tool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, GuestPath, HostRule,
    Limits, Mount, Rights, SecretName, ToolAsk, ToolName,
};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{CallResult, JarSpec, JarTool, Sandbox, SecretStore, ToolInfo, Wasm};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::{Case, Cases, check, server, workspace};

/// A component, what its manifest asks, and the cases it has to pass.
pub struct ToolUnderTest {
    /// The tool's name, which is also its folder's.
    pub name: String,
    /// The component.
    pub wasm: Wasm,
    /// From `tool.toml`.
    pub ask: ToolAsk,
    /// The text of `cases.toml`.
    pub cases: String,
}

/// Runs every case; gives how many ran, and one text for each that failed.
pub async fn run_cases(sandbox: &Sandbox, tool: &ToolUnderTest) -> (usize, Vec<String>) {
    let cases: Cases = toml::from_str(&tool.cases).expect("cases.toml is well-formed");
    let described =
        sandbox.describe_tools(&tool.wasm).await.expect("the component describes itself");
    let mut failures = Vec::new();
    for case in &cases.case {
        for fault in run_case(sandbox, tool, &described, case).await {
            failures.push(format!("{}: {}: {fault}", tool.name, case.name));
        }
    }
    (cases.case.len(), failures)
}

async fn run_case(
    sandbox: &Sandbox,
    tool: &ToolUnderTest,
    described: &[ToolInfo],
    case: &Case,
) -> Vec<String> {
    let root = tempfile::tempdir().expect("make a workspace");
    workspace::make(root.path(), case);
    let server = server::start(case).await;
    let rights = rights(case, &tool.name, root.path(), &server.uri());
    let fill = |text: &String| text.replace("{{server}}", &server.uri());
    let config = case.config.iter().map(|(key, value)| (key.clone(), fill(value))).collect();
    let hints = described.iter().map(|info| (info.name.clone(), info.hints)).collect();
    let jar_tool = JarTool {
        tools: hints,
        wasm: tool.wasm.clone(),
        ask: tool.ask.clone(),
        config: Arc::new(config),
    };
    let permit = rights.tool(&tool.name).expect("the case grants its tool");
    let budget = Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(rights.limits()));
    let spec = JarSpec {
        rights,
        budget,
        tools: vec![jar_tool],
        secrets: secrets(case, &server.uri()),
        overlays: BTreeMap::new(),
        cancel: CancellationToken::new(),
    };
    let jar = sandbox.open_jar(spec).expect("a jar opens");
    let arguments = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => fill(text),
        value => fill(&value.to_string()),
    };
    for earlier in &case.before {
        jar.call_permitted(permit.clone(), &arguments(earlier)).await;
    }
    let result = jar.call_permitted(permit, &arguments(&case.arguments)).await;
    jar.close().await;
    faults(case, &result, root.path(), &server.uri())
}

fn faults(case: &Case, result: &CallResult, root: &std::path::Path, uri: &str) -> Vec<String> {
    let mut faults = check::faults(&case.expect, result, uri);
    faults.extend(workspace::faults(root, case));
    if !faults.is_empty() && !result.receipt.denials.is_empty() {
        faults.push(format!("refused on the way: {:?}", result.receipt.denials));
    }
    faults
}

fn rights(case: &Case, tool: &str, root: &std::path::Path, uri: &str) -> Rights {
    let host =
        |text: &String| text.replace("{{server}}", uri).parse::<HostRule>().expect("a host rule");
    let hosts = match &case.hosts {
        Some(hosts) => hosts.iter().map(host).collect(),
        None if case.serve.is_empty() => Vec::new(),
        None => vec![host(&uri.to_owned())],
    };
    let grants = Grants {
        tools: BTreeMap::from([(ToolName::new(tool).expect("a name"), CallPermission::Allow)]),
        mounts: vec![Mount {
            guest: GuestPath::workspace(),
            host: root.to_path_buf(),
            access: case.access,
        }],
        hosts: vec![hosts],
        secrets: case.secrets.iter().map(|name| secret_name(name)).collect::<BTreeSet<_>>(),
        limits: Limits::default().granted(&case.limits),
    };
    Rights::intersect_rights(&AskedRights::default(), &grants, None).0
}

fn secret_name(name: &str) -> SecretName {
    SecretName::new(name).expect("a secret name")
}

fn secrets(case: &Case, uri: &str) -> SecretStore {
    let mut store = SecretStore::default();
    for name in &case.secrets {
        let rule = uri.parse().expect("the server's address is a host rule");
        let value = SecretString::from("test-secret-value");
        let secret = Secret::new(&value, vec![rule], "X-Subscription-Token", "");
        store.insert(secret_name(name), secret.expect("a secret for a header"));
    }
    store
}
