//! The MCP door's document about its tokens.

use axum::extract::{Request, State};
use serde::Serialize;

use super::metadata::{DOOR, base_address};
use crate::app::App;
use crate::http::respond::JsonAnswer;

/// The sources of keys and tokens for this door: the operator makes keys, and may trust issuers.
#[derive(Debug, Serialize)]
pub(crate) struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// `GET /.well-known/oauth-protected-resource/mcp`.
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
