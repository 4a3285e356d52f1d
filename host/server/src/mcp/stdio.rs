//! MCP over the standard streams, for the only client of the process.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_session::Service;
use rmcp::model::InitializeRequestParams;
use rmcp::service::{QuitReason, RequestContext, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::client::ProtocolClient;
use super::flow::{BoundedTransport, WaitingRequests};
use super::handler::{ClientLookup, McpHandler};
use super::mended::MendedReader;
use super::state::SealedStates;

/// The most bytes of a message: twice the largest body over HTTP.
pub(super) const MAX_LINE: usize = 8 << 20;

/// The client's name in the audit log.
const LOCAL: &str = "local";

/// The most characters of the name that a client states.
const MAX_NAME: usize = 100;

/// The reason why the streams could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The system returned no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// The client's first message was not an MCP message.
    #[error("the client did not begin as the protocol says: {0}")]
    Begin(String),
    /// The connection ended because of a bug.
    #[error("the connection ended early: {0}")]
    Ended(String),
}

/// Serves the client at the standard streams, until the client closes them or `stop` is cancelled. On return,
/// no tool runs, and all effects are stored. Turns that the client began belong to the service, which shuts
/// down separately.
///
/// # Errors
/// When the client does not speak MCP.
pub async fn serve_stdio(service: Service, stop: CancellationToken) -> Result<(), StdioError> {
    let (read, write) = stdio_pipes();
    let states = Arc::new(SealedStates::new().map_err(StdioError::Random)?);
    let waits = Arc::<WaitingRequests>::default();
    let client = tokio::sync::OnceCell::new();
    let own = Arc::new(StdioClient { service, states, waits: Arc::clone(&waits), client });
    let transport =
        AsyncRwTransport::new(MendedReader::new(read), write).with_max_line_length(MAX_LINE);
    let clients: Arc<dyn ClientLookup> = Arc::<StdioClient>::clone(&own);
    let handler = McpHandler::new(clients);
    let served =
        serve_server_with_ct(handler, BoundedTransport::new(transport, waits), stop.clone()).await;
    let ended = match served {
        Ok(running) => {
            running.waiting().await.map_err(|error| StdioError::Ended(error.to_string()))
        }
        // A client that closes the streams before its first message is no error.
        Err(_) if stop.is_cancelled() => Ok(QuitReason::Cancelled),
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(QuitReason::Closed),
        Err(error) => Err(StdioError::Begin(error.to_string())),
    };
    if let Some(client) = own.client.get() {
        client.close_session().await;
    }
    match ended? {
        QuitReason::JoinError(error) => Err(StdioError::Ended(error.to_string())),
        _ => Ok(()),
    }
}

/// The lookup that returns the only client for every message.
struct StdioClient {
    service: Service,
    states: Arc<SealedStates>,
    waits: Arc<WaitingRequests>,
    client: tokio::sync::OnceCell<Arc<ProtocolClient>>,
}

impl StdioClient {
    /// Returns the only client, which is made on the first call with the name that it states.
    async fn get_client(&self, name: Option<(String, String)>) -> Arc<ProtocolClient> {
        let make = async || {
            let name = name.map_or_else(String::new, |(name, version)| format!("{name} {version}"));
            let name = name.chars().take(MAX_NAME).collect();
            let (service, states) = (self.service.clone(), Arc::clone(&self.states));
            let mut client = ProtocolClient::new(service, LOCAL.into(), states, name);
            client.alone = true;
            client.waits = Arc::clone(&self.waits);
            Arc::new(client)
        };
        Arc::clone(self.client.get_or_init(make).await)
    }
}

#[async_trait]
impl ClientLookup for StdioClient {
    /// Returns the only client, with the name that it has stated.
    async fn begin_session(
        &self,
        info: &InitializeRequestParams,
        _: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        let named = &info.client_info;
        Ok(self.get_client(Some((named.name.clone(), named.version.clone()))).await)
    }

    async fn for_message(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        Ok(self.get_client(cx.client_info().map(|named| (named.name, named.version))).await)
    }

    fn may_be(&self, _: &ProtocolClient, _: &RequestContext<RoleServer>) -> bool {
        true
    }
}
