//! The way from a tool's store to its agent: calls go to the driver of the outer call.

use std::sync::Arc;

use belljar_sandbox::{
    NestedScope, PeerCall, PeerError, PeerPort, PeerResult, PeerTool, ToolErrorKind,
};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Waiting requests. A guest waits for each answer, so there is never a second one.
const MAX_WAITING: usize = 1;

/// Calls to be made.
pub(crate) struct NestedRequest {
    pub(crate) calls: Vec<PeerCall>,
    pub(crate) within: NestedScope,
    pub(crate) reply: oneshot::Sender<Vec<PeerResult>>,
}

/// A tool's end of the port.
pub(crate) struct PeersPort {
    tools: Arc<[PeerTool]>,
    requests: mpsc::Sender<NestedRequest>,
}

impl PeersPort {
    /// Makes both ends. `tools`: the agent's tools.
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
