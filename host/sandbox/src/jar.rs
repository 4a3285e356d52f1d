//! A jar: all the stores of one subagent.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_policy::{Budget, Rights, ToolAsk, ToolName, ToolPermit};
use tokio_util::sync::CancellationToken;

use crate::http::SecretStore;
use crate::output::{CallError, CallResult};
use crate::{Hints, Wasm};

/// What a jar is made from.
#[derive(Debug)]
pub struct JarSpec {
    /// The subagent's rights.
    pub rights: Rights,
    /// The subagent's budget. Each call gets a budget below it.
    pub budget: Budget,
    /// The tool components that the subagent may call. No store opens before a first call.
    pub tools: Vec<JarTool>,
    /// The values of secrets; which of them are used is for the rights to say.
    pub secrets: SecretStore,
    /// Ends all calls, for good.
    pub cancel: CancellationToken,
}

/// One tool component in a jar.
#[derive(Debug, Clone)]
pub struct JarTool {
    /// The tools of the component that this jar may call, with their hints.
    pub tools: BTreeMap<ToolName, Hints>,
    /// The component.
    pub wasm: Wasm,
    /// What its manifest asks for.
    pub ask: ToolAsk,
    /// Its settings, as `wasi:config` gives them.
    pub config: Arc<BTreeMap<String, String>>,
}

/// One report of `belljar:tool/progress`. Foreign text: escape it before a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How much is done, in the tool's unit.
    pub done: u64,
    /// Of how much; `None` = not known.
    pub total: Option<u64>,
    /// The tool's words, cut at a bound.
    pub message: String,
}

/// Gets the progress reports of a call, on the thread that runs the guest: it must be quick.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// All the stores of one subagent, dropped as one.
#[derive(Debug)]
pub struct Jar {
    _spec: JarSpec,
}

impl Jar {
    pub(crate) fn new(spec: JarSpec) -> Self {
        Self { _spec: spec }
    }

    /// Calls a tool. Waits behind earlier calls of the same component, in the order asked;
    /// overlaps with calls of other components only where both tools are hinted read-only.
    /// `arguments` must be a JSON object as text.
    ///
    /// Dropping the future ends the call at once; its store is discarded.
    pub async fn call(&self, permit: ToolPermit, arguments: &str) -> CallResult {
        self.call_with_progress(permit, arguments, None).await
    }

    /// As [`Jar::call`], with the guest's progress reports.
    pub async fn call_with_progress(
        &self,
        permit: ToolPermit,
        arguments: &str,
        progress: Option<ProgressSink>,
    ) -> CallResult {
        let _ = (permit, progress);
        let receipt = crate::receipt::Receipt::empty("", "", arguments);
        CallResult { outcome: Err(CallError::HostFault), receipt }
    }

    /// Opens the store of a tool ahead of its first call.
    pub async fn open(&self, tool: &str) -> Result<(), CallError> {
        let _ = tool;
        Err(CallError::HostFault)
    }

    /// Cancels what runs, waits until nothing of it is in flight, and drops the stores.
    pub async fn close(self) {}
}
