//! A server as the operator configured it, and what was accepted of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use belljar_policy::{HostRule, SecretName, ToolName};
use http::Uri;

use crate::accepted::Accepted;
use crate::listing::ListedTool;

/// A server whose tools may be granted.
#[derive(Debug)]
pub struct Server {
    pub(crate) name: String,
    pub(crate) url: Uri,
    pub(crate) host: HostRule,
    pub(crate) secrets: BTreeSet<SecretName>,
    pub(crate) timeout: Option<Duration>,
    tools: BTreeMap<ToolName, ListedTool>,
    withheld: Option<String>,
}

/// Why there is no such server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{name}`: its `url` is no address of HTTP")]
pub struct ServerError {
    name: String,
}

impl Server {
    /// A server of which nothing is accepted yet. Only `host` is ever reached for it, and these
    /// secrets are joined to requests where they are bound to it.
    ///
    /// # Errors
    ///
    /// When the address is none.
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
        let withheld = Some(format!("`belljar mcp review {name}` has not accepted its tools yet"));
        Ok(Self { name, url, host, secrets, timeout, tools: BTreeMap::new(), withheld })
    }

    /// The same with the tools that were accepted. Of a server at another address none was.
    #[must_use]
    pub fn with(mut self, url: &str, accepted: Accepted) -> Self {
        if accepted.url != url {
            self.withheld = Some(format!(
                "its tools were accepted at another address; `belljar mcp review {}` shows what they \
                 are here",
                self.name
            ));
            return self;
        }
        let named = accepted.tools.into_iter();
        let named = named.filter_map(|tool| Some((tool.own_name(&self.name).ok()?, tool)));
        self.tools = named.collect();
        self.withheld = None;
        self
    }

    /// Its name in `belljar.toml`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tools that were accepted, by the names that agents have for them.
    pub fn tools(&self) -> &BTreeMap<ToolName, ListedTool> {
        &self.tools
    }

    /// Why none of its tools can be had, where that is so.
    pub fn withheld(&self) -> Option<&str> {
        self.withheld.as_deref()
    }
}
