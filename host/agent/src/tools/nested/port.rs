//! Passes nested calls from a tool's store to the task of its outer call, which executes them.

use std::sync::Arc;

use belljar_sandbox::{
    NestedScope, PeerCall, PeerError, PeerPort, PeerResult, PeerTool, ToolErrorKind,
};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait. A tool waits for each answer, so there is never a second request.
const MAX_WAITING: usize = 1;

/// A request of a tool: nested calls to execute, and where to send the results.
pub(crate) struct NestedRequest {
    pub(crate) calls: Vec<PeerCall>,
    pub(crate) within: NestedScope,
    pub(crate) reply: oneshot::Sender<Vec<PeerResult>>,
}

/// The tool's end of the channel.
pub(crate) struct PeersPort {
    tools: Arc<[PeerTool]>,
    requests: mpsc::Sender<NestedRequest>,
}

impl PeersPort {
    /// Makes both ends of the channel. `tools` are the agent's tools that the tool may see.
    pub(crate) fn open(tools: Arc<[PeerTool]>) -> (Arc<Self>, mpsc::Receiver<NestedRequest>) {
        let (requests, receiver) = mpsc::channel(MAX_WAITING);
        (Arc::new(Self { tools, requests }), receiver)
    }
}

impl PeerPort for PeersPort {
    fn list_tools(&self) -> Vec<PeerTool> {
        self.tools.to_vec()
    }

    fn call_tools(
        &self,
        calls: Vec<PeerCall>,
        within: NestedScope,
    ) -> BoxFuture<'static, Vec<PeerResult>> {
        let requests = self.requests.clone();
        Box::pin(async move {
            let count = calls.len();
            let (reply, answer) = oneshot::channel();
            let gone = || {
                let error = PeerError {
                    kind: ToolErrorKind::Failed,
                    message: "the call that makes it has ended".to_owned(),
                };
                vec![Err(error); count]
            };
            if requests.send(NestedRequest { calls, within, reply }).await.is_err() {
                return gone();
            }
            answer.await.unwrap_or_else(|_| gone())
        })
    }
}
