//! Calls the tools of MCP servers, in sessions of the agent's own that begin with its first call and end with
//! it. INV-313: no two agents share a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_mcp::{CallSpec, Connection, Server, ServerResponder};
use belljar_policy::{DenyCode, ToolName, ToolPermit};
use belljar_sandbox::{CallEnding, CallError, CallResult, ProgressSink, Receipt};
use tokio_util::sync::CancellationToken;

use crate::agent_loop::job::AgentJob;

/// The agent's sessions with MCP servers, by tool.
pub(crate) struct RemoteTools(BTreeMap<ToolName, Arc<Connection>>);

impl RemoteTools {
    /// One session for each server of these tools. None has begun yet.
    pub(crate) fn for_tools(tools: BTreeMap<ToolName, Arc<Server>>) -> Self {
        let mut sessions: BTreeMap<String, Arc<Connection>> = BTreeMap::new();
        let tools = tools.into_iter().map(|(tool, server)| {
            let name = server.name().to_owned();
            let session = sessions.entry(name);
            let session = session.or_insert_with(|| Arc::new(Connection::new(server)));
            (tool, Arc::clone(session))
        });
        Self(tools.collect())
    }

    /// Returns whether this is a tool of a server.
    pub(crate) fn has_tool(&self, tool: &ToolName) -> bool {
        self.0.contains_key(tool)
    }

    /// Calls a tool; if `fresh`, in a session for this call alone (INV-350). In a replay no request is sent
    /// unless the operator permits it (INV-201).
    pub(crate) async fn call_tool(
        &self,
        job: &AgentJob,
        stop: &CancellationToken,
        permit: &ToolPermit,
        (arguments, fresh): (&str, bool),
        progress: Option<ProgressSink>,
        answers: &dyn ServerResponder,
    ) -> CallResult {
        let tool = permit.tool();
        let rehearsed = job.shared.rerun.as_ref().is_some_and(|rerun| !rerun.has_network());
        match self.0.get(tool).filter(|_| !permit.needs_answer() && !rehearsed) {
            Some(session) if fresh => {
                let own = Connection::new(Arc::clone(session.server()));
                let spec_of_call = build_call_spec(job, stop, progress, Some(answers));
                let result = own.call_tool(tool, arguments, spec_of_call).await;
                own.close(build_call_spec(job, &CancellationToken::new(), None, None)).await;
                result
            }
            Some(session) => {
                let spec = build_call_spec(job, stop, progress, Some(answers));
                session.call_tool(tool, arguments, spec).await
            }
            None => {
                let mut receipt = Receipt::for_call(tool.as_str(), "", arguments);
                receipt.ending = CallEnding::Refused(DenyCode::ToolNotAllowed.to_string());
                CallResult { outcome: Err(CallError::Refused(DenyCode::ToolNotAllowed)), receipt }
            }
        }
    }

    /// Ends the sessions that have begun.
    pub(crate) async fn close_sessions(&self, job: &AgentJob) {
        let mut sessions: Vec<&Arc<Connection>> = self.0.values().collect();
        sessions.dedup_by(|a, b| Arc::ptr_eq(a, b));
        // If a call was cancelled, its server is still notified here.
        let never = CancellationToken::new();
        let closing = sessions
            .into_iter()
            .map(|session| session.close(build_call_spec(job, &never, None, None)));
        futures::future::join_all(closing).await;
    }
}

/// The agent's contributions to a call: sandbox, secrets, budget, limits, progress and answers to the server.
fn build_call_spec<'a>(
    job: &'a AgentJob,
    cancel: &'a CancellationToken,
    progress: Option<ProgressSink>,
    answers: Option<&'a dyn ServerResponder>,
) -> CallSpec<'a> {
    let (host, limits) = (&job.shared.host, job.rights.limits());
    let alone = CallSpec::from_parts(&host.sandbox, &host.secrets, &job.budget, limits, cancel);
    CallSpec { progress, answers, ..alone }
}
