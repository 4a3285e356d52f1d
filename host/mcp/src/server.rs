//! An MCP server in the operator's settings, with its accepted tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{HostRule, RequestTarget, SecretName, ToolName};
use http::Uri;

use crate::accepted::AcceptedTools;
use crate::auth::{KeepTokens, ServerTokens, SharedTokens};
use crate::demands::ServerGrants;
use crate::listing::ListedTool;
use crate::program::ServerProgram;
use crate::revision::ProtocolRevision;

/// A server whose tools may be granted to agents.
#[derive(Debug)]
pub struct Server {
    pub(crate) name: String,
    pub(crate) url: Uri,
    pub(crate) host: HostRule,
    pub(crate) secrets: BTreeSet<SecretName>,
    pub(crate) timeout: Option<Duration>,
    /// The revision that the operator's settings require; `None` = any.
    pub(crate) pinned: Option<ProtocolRevision>,
    /// The revision that the server used when its tools were accepted.
    pub(crate) revision: ProtocolRevision,
    pub(crate) login: LoginSetting,
    pub(crate) granted: ServerGrants,
    pub(crate) held: SharedTokens,
    tools: BTreeMap<ToolName, ListedTool>,
    withheld: Option<String>,
    /// The program, if the server is one.
    pub(crate) program: Option<ServerProgram>,
}

/// The operator's settings for requesting tokens for a server.
#[derive(Debug, Clone, Default)]
pub struct LoginSetting {
    /// The only issuer whose tokens are used; `None` = the issuer that the server names.
    pub issuer: Option<String>,
    /// The client id of this program at the issuer; `None` = it is registered when needed.
    pub client_id: Option<String>,
    /// The name of the secret that belongs to the client id.
    pub client_secret: Option<SecretName>,
    /// The address of a document that serves as client id, for example `https://example.com/client.json`.
    pub client_metadata_url: Option<String>,
    /// True if the client's secret is sufficient for a token, without a person.
    pub is_service: bool,
    /// The scopes to request, for example `calendar.read`; empty = those that the server names.
    pub scopes: Vec<String>,
}

/// The error of a server whose configured address is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{name}`: its `url` is no address of HTTP")]
pub struct ServerError {
    name: String,
}

impl Server {
    /// A server without accepted tools. Only `host` is ever reached, and a secret is added only to requests
    /// to the host that it is bound to.
    ///
    /// # Errors
    /// When the address is invalid.
    pub fn new(
        name: &str,
        url: &str,
        host: HostRule,
        secrets: BTreeSet<SecretName>,
        timeout: Option<Duration>,
    ) -> Result<Self, ServerError> {
        let name = name.to_owned();
        let url = url.parse::<Uri>().ok().filter(|url| url.authority().is_some());
        let Some(url) = url else { return Err(ServerError { name }) };
        let withheld =
            Some(format!("not accepted yet: `belljar mcp review {name}` shows its tools"));
        Ok(Self {
            name,
            url,
            host,
            secrets,
            timeout,
            pinned: None,
            revision: ProtocolRevision::default(),
            login: LoginSetting::default(),
            granted: ServerGrants::default(),
            held: SharedTokens::default(),
            tools: BTreeMap::new(),
            withheld,
            program: None,
        })
    }

    /// Requires this revision; `None` = any that the server supports.
    #[must_use]
    pub fn spoken_to(self, revision: Option<ProtocolRevision>) -> Self {
        Self { pinned: revision, ..self }
    }

    /// Sets how tokens for the server are requested.
    #[must_use]
    pub fn with_login(self, login: LoginSetting) -> Self {
        Self { login, ..self }
    }

    /// Sets which requests the server may make during a call.
    #[must_use]
    pub fn with_grants(self, granted: ServerGrants) -> Self {
        Self { granted, ..self }
    }

    /// Which requests the server may make during a call.
    pub fn request_grants(&self) -> &ServerGrants {
        &self.granted
    }

    /// Sets a person's token, and a store for renewed tokens.
    #[must_use]
    pub fn with_tokens(
        self,
        tokens: Option<ServerTokens>,
        keep: Option<Arc<dyn KeepTokens>>,
    ) -> Self {
        Self { held: SharedTokens::from_stored(tokens, keep), ..self }
    }

    /// The present token for requests to the server, if there is one.
    pub fn current_tokens(&self) -> Option<Arc<ServerTokens>> {
        self.held.current_tokens()
    }

    /// The server's address for the gate.
    pub(crate) fn target(&self) -> Option<RequestTarget> {
        RequestTarget::parse(&self.url.to_string()).ok()
    }

    /// Adds accepted tools. If they were accepted at another address, none of them is offered.
    #[must_use]
    pub fn with_accepted(mut self, url: &str, accepted: AcceptedTools) -> Self {
        if accepted.url != url {
            self.withheld = Some(format!(
                "its tools were accepted at another address; `belljar mcp review {}` shows what they \
                 are here",
                self.name
            ));
            return self;
        }
        self.revision = accepted.revision;
        let named = accepted.tools.into_iter();
        let named = named.filter_map(|tool| Some((tool.own_name(&self.name).ok()?, tool)));
        self.tools = named.collect();
        self.withheld = None;
        self
    }

    /// Makes the server a program, and adds accepted tools. Requests then go to the program and not to the
    /// address.
    #[must_use]
    pub fn with_program(self, program: ServerProgram, accepted: Option<AcceptedTools>) -> Self {
        let Some(mut accepted) = accepted else { return Self { program: Some(program), ..self } };
        let url = self.url.to_string();
        let (program, same) = program.with_accepted(&accepted.url);
        if same {
            accepted.url.clone_from(&url);
            return Self { program: Some(program), ..self.with_accepted(&url, accepted) };
        }
        let withheld = format!(
            "its tools were accepted of another command; `belljar mcp review {}` shows what they are here",
            self.name
        );
        Self { program: Some(program), withheld: Some(withheld), ..self }
    }

    /// The program, if the server is one.
    pub fn program(&self) -> Option<&ServerProgram> {
        self.program.as_ref()
    }

    /// The server's name in `belljar.toml`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The accepted tools, by their names in agents and grants.
    pub fn tools(&self) -> &BTreeMap<ToolName, ListedTool> {
        &self.tools
    }

    /// The reason why none of the server's tools is offered; `None` if they are.
    pub fn withheld_reason(&self) -> Option<&str> {
        self.withheld.as_deref()
    }
}
