//! The tools of a tenant: their names, parameters, and the rights that they request. The rights that an
//! agent has to them are in `grants`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use belljar_agent::{Host, builtin_tool_specs, resolve_direct};
use belljar_catalogue::{ComponentOrigin, ToolComponent};
use belljar_work::{OPERATOR, StopSignal, WorkKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::grants::find_agent;
use crate::api::turn::check_name;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};
use crate::mcp::MCP_IDENTITY;

/// All tools, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tools {
    tools: Vec<ToolBody>,
    /// Faults of tools that are left out.
    problems: Vec<String>,
}

/// A tool. Its texts are its author's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolBody {
    /// Its name.
    pub(crate) name: String,
    /// The component that offers it; absent where the host itself does.
    component: Option<String>,
    /// The MCP server that it is called at; absent where it is none's.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// `stock`, `home`, `host` or `mcp`.
    pub(crate) origin: &'static str,
    /// The description that a model reads.
    description: String,
    /// JSON Schema of its arguments.
    schema: Value,
    /// Whether it says that it only reads.
    pub(crate) read_only: bool,
    /// The requests of its manifest.
    asks: AsksBody,
    /// SHA-256, in hex, of its component, or of what was accepted of it; absent where the host itself
    /// offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The interfaces that its component imports, by name.
    imports: Vec<String>,
}

/// The requests of a manifest.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct AsksBody {
    /// `read` or `read-write`; absent = no files.
    mounts: Option<String>,
    /// Hosts.
    hosts: Vec<String>,
    /// Names of secrets.
    secrets: Vec<String>,
}

/// The query: with an agent, only the tools that it may use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsQuery {
    agent: Option<String>,
}

/// `GET /v1/tools`. A tool without a stored description is compiled first. Compiling goes on beyond the
/// call's time limit, so a later call finds the result.
pub(crate) async fn list_tools(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<ToolsQuery>,
) -> Result<JsonAnswer<Tools>, Problem> {
    let granted = match check_name("agent", query.agent)? {
        Some(name) => Some(granted_tools(&ctx, name).await?),
        None => None,
    };
    let described =
        tokio::spawn(async move { host_tools(&ctx.service.current_host()).await }).await;
    let mut described =
        described.map_err(|error| Problem::bug(&format!("listing tools failed: {error}")))?;
    if let Some(granted) = granted {
        described.tools.retain(|tool| granted.contains(&tool.name));
    }
    Ok(JsonAnswer(described))
}

/// The names of the tools that an agent may use. The name `mcp` stands for clients that call tools
/// directly over MCP.
async fn granted_tools(ctx: &HandlerContext, name: String) -> Result<BTreeSet<String>, Problem> {
    let agent = match name == MCP_IDENTITY {
        true => {
            let nobody = |_| Problem::not_found("agent", &name);
            let service = ctx.service.clone();
            let look = move |_: &StopSignal| {
                resolve_direct(&service.current_host(), MCP_IDENTITY, service.workspace())
            };
            ctx.look_up(look).await?.map_err(nobody)?
        }
        false => find_agent(ctx, name).await?,
    };
    Ok(agent.rights.offered_tools().map(|(tool, _)| tool.to_string()).collect())
}

/// Lists the tools of all components, with a problem for each component that cannot be described, and the
/// tools of the tenant's MCP servers.
async fn host_tools(host: &Host) -> Tools {
    let mut tools = Vec::new();
    let mut problems: Vec<String> =
        host.tools.problems().iter().map(|found| found.message.clone()).collect();
    for component in host.tools.components() {
        let infos = match component.describe_tools(&host.sandbox).await {
            Ok(infos) => infos,
            Err(error) => {
                problems.push(format!("tool `{}` is left out: {error}", component.name));
                continue;
            }
        };
        for info in infos.iter() {
            let owner = host.tools.find_component(info.name.as_str());
            // Another component provides the tool of this name.
            if owner.is_none_or(|owner| owner.name != component.name) {
                continue;
            }
            tools.push(ToolBody {
                name: info.name.to_string(),
                component: Some(component.name.to_string()),
                server: None,
                origin: match component.origin {
                    ComponentOrigin::Stock => "stock",
                    ComponentOrigin::Home => "home",
                },
                description: info.description.clone(),
                schema: info.schema.clone(),
                read_only: info.hints.read_only,
                asks: AsksBody::from_component(component),
                digest: Some(component.wasm.digest().to_string()),
                imports: component_imports(component).await,
            });
        }
    }
    tools.extend(builtin_tool_specs().into_iter().map(|spec| ToolBody {
        name: spec.name,
        component: None,
        server: None,
        origin: "host",
        description: spec.description,
        schema: spec.schema,
        read_only: false,
        asks: AsksBody::default(),
        digest: None,
        imports: Vec::new(),
    }));
    tools.extend(server_tools(host));
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Tools { tools, problems }
}

/// The tools of the tenant's MCP servers, as accepted by the operator. No server is asked.
fn server_tools(host: &Host) -> impl Iterator<Item = ToolBody> {
    let servers = host.tools.servers().iter();
    servers.flat_map(|server| {
        server.tools().iter().map(|(name, tool)| ToolBody {
            name: name.to_string(),
            component: None,
            server: Some(server.name().to_owned()),
            origin: "mcp",
            description: tool.description.clone(),
            schema: tool.schema.clone(),
            read_only: false,
            asks: AsksBody::default(),
            digest: Some(tool.digest().to_string()),
            imports: Vec::new(),
        })
    })
}

/// The descriptions of all tools, sorted by name.
pub(crate) async fn describe_tools(ctx: &HandlerContext) -> Result<Vec<ToolBody>, Problem> {
    let host = ctx.service.current_host();
    let described = tokio::spawn(async move { host_tools(&host).await }).await;
    let described = described.map_err(|error| Problem::bug(&format!("listing tools: {error}")))?;
    Ok(described.tools)
}

/// The limit on reading a component's imports. The time is generous, because components are the
/// operator's own and each is read once.
const IMPORTS: WorkKind =
    WorkKind { name: "looking at a component", time: Duration::from_secs(120) };

/// The imports of a component, for example `wasi:http/outgoing-handler`. The first call reads the whole
/// file, on a thread.
async fn component_imports(component: &Arc<ToolComponent>) -> Vec<String> {
    let component = Arc::clone(component);
    let look = move |_: &StopSignal| component.imported_interfaces().to_vec();
    belljar_work::run_job(&IMPORTS, OPERATOR, look).await.unwrap_or_default()
}

impl AsksBody {
    /// The rights that a component's manifest requests.
    fn from_component(component: &ToolComponent) -> Self {
        let ask = &component.manifest.ask;
        Self {
            mounts: ask.mounts.map(|access| access.to_string()),
            hosts: ask.hosts.iter().map(ToString::to_string).collect(),
            secrets: ask.secrets.iter().map(ToString::to_string).collect(),
        }
    }
}
