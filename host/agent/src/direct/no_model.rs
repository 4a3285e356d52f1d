//! The model of an agent whose calls a client makes: never called.

use async_trait::async_trait;
use belljar_model::{CallContext, ChatModel, ChatRequest, ModelError, ModelReply, StreamEvent};

/// Never asked: any request reports an end.
pub(super) struct NoModel;

#[async_trait]
impl ChatModel for NoModel {
    fn id(&self) -> &str {
        "client"
    }

    async fn chat(
        &self,
        _: &ChatRequest,
        _: &CallContext<'_>,
        _: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        Err(ModelError::Cancelled)
    }
}
