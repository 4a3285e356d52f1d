//! The beginning of a session: the negotiated revision and the list of tools.

use std::sync::Arc;
use std::time::Duration;

use belljar_sandbox::Outgoing;
use http::Uri;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::demands::Granted;
use crate::exchange::{Address, Aside, Fault};
use crate::limits::MAX_FRESH;
use crate::listing::Listing;
use crate::message::{Ids, notification, request};
use crate::pages::ToolPages;
use crate::revision::{Revision, client};
use crate::transport::Transport;

/// The server does not speak the revision of the request.
const UNSUPPORTED_REVISION: i64 = -32022;

/// A server that is to be spoken to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// The name in `belljar.toml`, for example `work` in `[mcp.work]`.
    pub(crate) name: &'a str,
    pub(crate) url: &'a Uri,
    /// The operator's setting of the protocol revision.
    pub(crate) pinned: Option<Revision>,
    pub(crate) ids: &'a Arc<Ids>,
    /// The operator's grants for requests of the server.
    pub(crate) granted: &'a Granted,
}

impl Opening<'_> {
    /// The server over HTTP, before a session has begun.
    pub(crate) fn http_transport(&self, revision: Revision) -> Transport {
        let version = Some(revision.header()).filter(|_| revision == Revision::Stateless);
        let (url, ids) = (self.url.clone(), Arc::clone(self.ids));
        Transport::Http(Address { url, session: None, version, revision, ids })
    }

    /// Finds out how the server is spoken to: the newest revision first.
    pub(crate) async fn begin(&self, gate: &Outgoing) -> Result<Transport, Fault> {
        if self.pinned != Some(Revision::Sessions) {
            match self.discover(gate).await {
                // A server that does not know `server/discover` may know `initialize`.
                Err(Fault::Status(_) | Fault::Rpc(_) | Fault::Broken(_))
                    if self.pinned.is_none() => {}
                found => return found,
            }
        }
        self.initialize(gate, self.http_transport(Revision::Sessions)).await
    }

    async fn discover(&self, gate: &Outgoing) -> Result<Transport, Fault> {
        let mut server = self.http_transport(Revision::Stateless);
        let own = Revision::Stateless.as_str();
        let mut again = true;
        loop {
            let (id, mut aside) = (server.ids().next(), Aside::default());
            let asked = self.request(Revision::Stateless, id, "server/discover", json!({}));
            match server.ask(gate, id, &asked, &mut aside).await {
                Ok(found) => {
                    let spoken = found.get("supportedVersions").and_then(Value::as_array);
                    let spoken = spoken.is_some_and(|all| all.contains(&Value::from(own)));
                    return match spoken {
                        true => Ok(server),
                        false => Err(Fault::Broken("it speaks no revision that is spoken here")),
                    };
                }
                Err(Fault::Rpc(error))
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

    /// Begins a session with a server.
    pub(crate) async fn initialize(
        &self,
        gate: &Outgoing,
        mut server: Transport,
    ) -> Result<Transport, Fault> {
        let params = json!({
            "protocolVersion": Revision::Sessions.as_str(),
            "capabilities": self.granted.capabilities(),
            "clientInfo": client(),
        });
        let (id, mut aside) = (server.ids().next(), Aside::default());
        let begun = server.ask(gate, id, &request(id, "initialize", &params), &mut aside).await?;
        let chosen = begun.get("protocolVersion").and_then(Value::as_str);
        let chosen = chosen.and_then(Revision::chosen);
        let chosen = chosen.ok_or(Fault::Broken("it speaks no revision that is spoken here"))?;
        if let Transport::Http(address) = &mut server {
            (address.session, address.version) = (aside.session, Some(chosen));
        }
        server.tell(gate, &notification("notifications/initialized", &json!({}))).await?;
        Ok(server)
    }

    /// A request, with the fields that the revision demands.
    pub(crate) fn request(
        &self,
        revision: Revision,
        id: u64,
        method: &str,
        params: Value,
    ) -> Value {
        request(id, method, &revision.parameters(params, &self.granted.capabilities()))
    }

    /// The listed tools, and for a stateless server the time until which the list is used.
    pub(crate) async fn listed(
        &self,
        gate: &Outgoing,
        server: &mut Transport,
    ) -> Result<(Listing, Option<Instant>), Fault> {
        let (mut pages, mut cursor) = (ToolPages::default(), None);
        let (revision, began) = (server.revision(), Instant::now());
        let mut fresh = MAX_FRESH;
        loop {
            let params = cursor.map_or(json!({}), |cursor: String| json!({"cursor": cursor}));
            let (id, mut aside) = (server.ids().next(), Aside::default());
            let asked = self.request(revision, id, "tools/list", params);
            let mut page = server.ask(gate, id, &asked, &mut aside).await?;
            if let Some(millis) = page.get("ttlMs").and_then(Value::as_u64) {
                fresh = fresh.min(Duration::from_millis(millis));
            }
            cursor = pages.take(&mut page)?;
            if cursor.is_none() {
                let checked = Listing::checked(self.name, pages).await?;
                let listing = Listing { revision, ..checked };
                let until = Some(began + fresh).filter(|_| revision == Revision::Stateless);
                return Ok((listing, until));
            }
        }
    }
}
