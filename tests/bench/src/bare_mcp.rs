//! The cost of an MCP server by itself: `rmcp` as its examples start it, with one tool that reads a file of
//! its directory. No jar, no rights, no receipt.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};

/// The argument on which this program is that server.
pub(crate) const NAME: &str = "bare-mcp";

struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let path = request.arguments.as_ref().and_then(|arguments| arguments.get("path")?.as_str());
        let path = path.ok_or_else(|| ErrorData::invalid_params("no path", None))?;
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Serves the client of the standard streams until it leaves.
pub(crate) async fn serve() -> anyhow::Result<()> {
    Bare.serve(stdio()).await?.waiting().await?;
    Ok(())
}
