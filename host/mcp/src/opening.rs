//! The beginning of a session: negotiating the revision, and listing the tools.

use std::sync::Arc;
use std::time::Duration;

use belljar_sandbox::OutgoingGate;
use http::Uri;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::demands::ServerGrants;
use crate::exchange::{ExchangeContext, ExchangeFault, SessionAddress};
use crate::limits::MAX_FRESH;
use crate::listing::ToolListing;
use crate::message::{RequestIds, format_notification, format_request};
use crate::pages::ToolPages;
use crate::revision::{ProtocolRevision, client_info};
use crate::transport::Transport;

/// The error code of a server that does not support the revision of the request.
const UNSUPPORTED_REVISION: i64 = -32022;

/// What is needed to begin a session with a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerOpening<'a> {
    /// The name in `belljar.toml`, for example `work` in `[mcp.work]`.
    pub(crate) name: &'a str,
    pub(crate) url: &'a Uri,
    /// The revision that the operator's settings require; `None` = any.
    pub(crate) pinned: Option<ProtocolRevision>,
    pub(crate) ids: &'a Arc<RequestIds>,
    /// The server's requests that the operator grants.
    pub(crate) granted: &'a ServerGrants,
}

impl ServerOpening<'_> {
    /// The transport to a server over HTTP, before a session has begun.
    pub(crate) fn http_transport(&self, revision: ProtocolRevision) -> Transport {
        let version =
            Some(revision.header_value()).filter(|_| revision == ProtocolRevision::Stateless);
        let (url, ids) = (self.url.clone(), Arc::clone(self.ids));
        Transport::Http(SessionAddress { url, session: None, version, revision, ids })
    }

    /// Finds out which revision the server uses, beginning with the newest.
    pub(crate) async fn negotiate_revision(
        &self,
        gate: &OutgoingGate,
    ) -> Result<Transport, ExchangeFault> {
        if self.pinned != Some(ProtocolRevision::Sessions) {
            match self.discover_server(gate).await {
                // A server that does not know `server/discover` may know `initialize`.
                Err(
                    ExchangeFault::Status(_) | ExchangeFault::Rpc(_) | ExchangeFault::Broken(_),
                ) if self.pinned.is_none() => {}
                found => return found,
            }
        }
        self.initialize_session(gate, self.http_transport(ProtocolRevision::Sessions)).await
    }

    /// Asks a server with `server/discover` whether it supports the stateless revision; repeats the request
    /// once if the server answers that it does not support the revision but lists it.
    async fn discover_server(&self, gate: &OutgoingGate) -> Result<Transport, ExchangeFault> {
        let mut server = self.http_transport(ProtocolRevision::Stateless);
        let own = ProtocolRevision::Stateless.as_str();
        let mut again = true;
        loop {
            let (id, mut aside) = (server.request_ids().next_id(), ExchangeContext::default());
            let asked =
                self.build_request(ProtocolRevision::Stateless, id, "server/discover", json!({}));
            match server.send_request(gate, id, &asked, &mut aside).await {
                Ok(found) => {
                    let spoken = found.get("supportedVersions").and_then(Value::as_array);
                    let spoken = spoken.is_some_and(|all| all.contains(&Value::from(own)));
                    return match spoken {
                        true => Ok(server),
                        false => {
                            Err(ExchangeFault::Broken("it speaks no revision that is spoken here"))
                        }
                    };
                }
                Err(ExchangeFault::Rpc(error))
                    if again
                        && error.code == UNSUPPORTED_REVISION
                        && error.supported.iter().any(|name| name == own) =>
                {
                    again = false;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Begins a session with `initialize`.
    pub(crate) async fn initialize_session(
        &self,
        gate: &OutgoingGate,
        mut server: Transport,
    ) -> Result<Transport, ExchangeFault> {
        let params = json!({
            "protocolVersion": ProtocolRevision::Sessions.as_str(),
            "capabilities": self.granted.announced_capabilities(),
            "clientInfo": client_info(),
        });
        let (id, mut aside) = (server.request_ids().next_id(), ExchangeContext::default());
        let begun = server
            .send_request(gate, id, &format_request(id, "initialize", &params), &mut aside)
            .await?;
        let chosen = begun.get("protocolVersion").and_then(Value::as_str);
        let chosen = chosen.and_then(ProtocolRevision::supported_header);
        let chosen =
            chosen.ok_or(ExchangeFault::Broken("it speaks no revision that is spoken here"))?;
        if let Transport::Http(address) = &mut server {
            (address.session, address.version) = (aside.session, Some(chosen));
        }
        server
            .send_message(gate, &format_notification("notifications/initialized", &json!({})))
            .await?;
        Ok(server)
    }

    /// A request with the fields that the revision requires.
    pub(crate) fn build_request(
        &self,
        revision: ProtocolRevision,
        id: u64,
        method: &str,
        params: Value,
    ) -> Value {
        format_request(
            id,
            method,
            &revision.add_parameters(params, &self.granted.announced_capabilities()),
        )
    }

    /// Lists the tools. For a stateless server, also returns until when the list may be used.
    pub(crate) async fn list_tools(
        &self,
        gate: &OutgoingGate,
        server: &mut Transport,
    ) -> Result<(ToolListing, Option<Instant>), ExchangeFault> {
        let (mut pages, mut cursor) = (ToolPages::default(), None);
        let (revision, began) = (server.revision(), Instant::now());
        let mut fresh = MAX_FRESH;
        loop {
            let params = cursor.map_or(json!({}), |cursor: String| json!({"cursor": cursor}));
            let (id, mut aside) = (server.request_ids().next_id(), ExchangeContext::default());
            let asked = self.build_request(revision, id, "tools/list", params);
            let mut page = server.send_request(gate, id, &asked, &mut aside).await?;
            if let Some(millis) = page.get("ttlMs").and_then(Value::as_u64) {
                fresh = fresh.min(Duration::from_millis(millis));
            }
            cursor = pages.take_page(&mut page)?;
            if cursor.is_none() {
                let checked = ToolListing::check_pages(self.name, pages).await?;
                let listing = ToolListing { revision, ..checked };
                let until = Some(began + fresh).filter(|_| revision == ProtocolRevision::Stateless);
                return Ok((listing, until));
            }
        }
    }
}
