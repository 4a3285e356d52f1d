//! The document in which an MCP client reads how callers of `/mcp` authenticate.

use axum::extract::{Request, State};
use serde::Serialize;

use super::metadata::{DOOR, base_address};
use crate::app::App;
use crate::http::respond::JsonAnswer;

/// The sources of credentials for `/mcp`: keys that the operator makes, and issuers that the operator
/// trusts.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// `GET /.well-known/oauth-protected-resource/mcp`: returns that document, which needs no key.
pub(crate) async fn read_metadata(
    State(app): State<App>,
    request: Request,
) -> JsonAnswer<ResourceMetadata> {
    JsonAnswer(ResourceMetadata {
        resource: format!("{}{DOOR}", base_address(request.headers())),
        authorization_servers: app.gatekeeper().issuer_addresses().await,
        bearer_methods_supported: ["header"],
        resource_name: "belljar",
    })
}
