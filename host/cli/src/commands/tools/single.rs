//! A single tool call outside of any run, for `tools call` and for the self-test of `doctor`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use belljar_policy::{
    AskedRights, Budget, BudgetCaps, BudgetLevel, CallPermission, Grants, GuestPath, HostRule,
    Limits, Mount, MountAccess, Rights, ToolAsk, ToolName,
};
use belljar_sandbox::{CallResult, JarSpec, JarTool, Sandbox, SecretStore, Wasm};
use tokio_util::sync::CancellationToken;

use crate::setup::exit::Failure;

/// A tool to call, with the rights of the call.
pub(crate) struct SingleToolCall<'a> {
    pub(crate) wasm: &'a Wasm,
    pub(crate) ask: ToolAsk,
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) tool: &'a ToolName,
    pub(crate) arguments: &'a str,
    /// The directory that is mounted at `/workspace`.
    pub(crate) workspace: &'a Path,
    pub(crate) access: MountAccess,
    pub(crate) hosts: Vec<HostRule>,
    /// The secrets for the tool, if its manifest requests them.
    pub(crate) secrets: SecretStore,
    pub(crate) cancel: CancellationToken,
}

impl SingleToolCall<'_> {
    /// Calls the tool in a new jar.
    pub(crate) async fn call_in_jar(self, sandbox: &Sandbox) -> Result<CallResult, Failure> {
        let infos = sandbox.describe_tools(self.wasm).await;
        let infos = infos.map_err(|error| Failure::new(format!("`{}`: {error}", self.tool)))?;
        let info = infos.iter().find(|info| info.name == *self.tool).ok_or_else(|| {
            let names: Vec<String> = infos.iter().map(|info| format!("`{}`", info.name)).collect();
            Failure::usage(format!("the component has no tool `{}`", self.tool))
                .with_hint(format!("it has {}", names.join(", ")))
        })?;
        let limits = Limits::default();
        let mount = Mount {
            guest: GuestPath::workspace(),
            host: self.workspace.to_path_buf(),
            access: self.access,
        };
        let grants = Grants {
            tools: [(self.tool.clone(), CallPermission::Allow)].into(),
            mounts: vec![mount],
            hosts: vec![self.hosts],
            secrets: self.secrets.names().cloned().collect(),
            ..Grants::none()
        };
        let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        let permit =
            rights.tool(self.tool.as_str()).map_err(|denied| Failure::new(denied.to_string()))?;
        let spec = JarSpec {
            rights,
            budget: Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(&limits)),
            tools: vec![JarTool {
                tools: [(info.name.clone(), info.hints)].into(),
                wasm: self.wasm.clone(),
                ask: self.ask,
                config: Arc::new(self.config),
            }],
            secrets: self.secrets,
            overlays: BTreeMap::new(),
            cancel: self.cancel,
        };
        let jar = sandbox.open_jar(spec).map_err(|error| Failure::new(error.to_string()))?;
        let result = jar.call_permitted(permit, self.arguments).await;
        // An operation that has not ended is not part of the result, and the process ends soon.
        let _ = jar.close().await;
        Ok(result)
    }
}
