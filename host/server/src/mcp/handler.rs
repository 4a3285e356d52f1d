//! Answers the messages of MCP clients.
#![expect(deprecated, reason = "clients of 2025-11-25 ask for a level of the log")]

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest,
    CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::client::{ProtocolClient, refusal_error};
use super::logs::LogForwarder;
use super::watch::{self, WatchedResources};
use super::{agents, calls, prompts, resources, tasks};

/// The milliseconds for which a client may reuse a list.
const LIST_TTL_MS: u64 = 1_000;

/// The text in which this server describes itself to a model.
const INSTRUCTIONS: &str = "Tools run in a WebAssembly sandbox that sees a workspace as /workspace \
and nothing else of this machine. What they write there goes to an overlay: the person at this machine \
looks at it and applies it. Tools whose names begin with agent_ hand a whole task to an agent.";

/// Finds the client that sent a message.
#[async_trait]
pub(super) trait ClientLookup: Send + Sync + 'static {
    /// Begins an MCP session of this handler; returns its client.
    async fn begin_session(
        &self,
        info: &InitializeRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData>;

    /// Returns the client of a message outside of sessions.
    async fn for_message(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData>;

    /// Returns whether this client may have sent a message, by the message's key.
    fn may_be(&self, client: &ProtocolClient, cx: &RequestContext<RoleServer>) -> bool;
}

/// belljar's answers in one MCP session, or to one message outside of sessions.
pub struct McpHandler {
    clients: Arc<dyn ClientLookup>,
    /// The client that began the session.
    client: tokio::sync::OnceCell<Arc<ProtocolClient>>,
    logs: LogForwarder,
    watched: WatchedResources,
}

impl McpHandler {
    pub(super) fn new(clients: Arc<dyn ClientLookup>) -> Self {
        let client = tokio::sync::OnceCell::new();
        Self { clients, client, logs: LogForwarder::new(), watched: WatchedResources::default() }
    }

    /// INV-296: returns the client that began the session. Another caller who knows the session's id is
    /// refused.
    async fn find_client(
        &self,
        cx: &RequestContext<RoleServer>,
    ) -> Result<Arc<ProtocolClient>, ErrorData> {
        match self.client.get() {
            Some(client) if self.clients.may_be(client, cx) => Ok(Arc::clone(client)),
            Some(_) => Err(ErrorData::invalid_request("this session is another key's", None)),
            None => self.clients.for_message(cx).await,
        }
    }
}

/// The supported methods, to tell wrong parameters of a known method from an unknown method.
const METHODS: [&str; 17] = [
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

impl ServerHandler for McpHandler {
    /// The capabilities of this server, its name, and its description for a model.
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tasks()
            .build();
        let named = Implementation::new("belljar", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(can).with_server_info(named).with_instructions(INSTRUCTIONS)
    }

    /// Negotiates the revision, and begins the session of a client.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        cx.peer.set_peer_info(request.clone());
        let answer = self.negotiate_initialize(&request)?;
        let client = self.clients.begin_session(&request, &cx).await?;
        // A client that sends `initialize` twice keeps its identity.
        let _ = self.client.set(client);
        Ok(answer)
    }

    /// Sets the lowest level of log lines that the client gets.
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.logs.set_level(request.level);
        Ok(())
    }

    /// Lists the tools that the client may call, and the agents as tools.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.find_client(&cx).await?;
        let direct = client.direct_session().await.map_err(|error| refusal_error(&error))?;
        let own = direct.callable_tools().await.map_err(|error| refusal_error(&error))?;
        let mut tools: Vec<Tool> = own.iter().map(calls::to_tool).collect();
        tools.extend(agents::list_agents(&client).await.map_err(|error| refusal_error(&error))?);
        let list = ListToolsResult::with_all_items(tools);
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Calls an agent or a tool, and after a tool's call notifies the client of changed resources.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.find_client(&cx).await?;
        match agents::is_agent(&request.name) {
            true => agents::call_agent(&client, request, cx).await,
            false => {
                let before = client.touched.versions();
                let answer = calls::call_tool(&client, request, cx.clone(), &self.logs).await;
                self.watched.notify_changes(&client, &cx, before).await;
                answer
            }
        }
    }

    /// Returns the state of a task.
    async fn get_task(
        &self,
        request: GetTaskParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.find_client(&cx).await?;
        tasks::get_task(&client, &request.task_id).await
    }

    /// Passes the person's answers to a task.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.find_client(&cx).await?;
        tasks::update_task(&client, &request.task_id, &request.input_responses).await
    }

    /// Cancels a task.
    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.find_client(&cx).await?;
        tasks::cancel_task(&client, &request.task_id).await
    }

    /// Lists the skills as prompts.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let client = self.find_client(&cx).await?;
        let list = ListPromptsResult::with_all_items(prompts::list_prompts(&client).await);
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Returns a skill as a prompt.
    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let client = self.find_client(&cx).await?;
        Ok(prompts::get_prompt(&client, &request)?.into())
    }

    /// Lists the resources of the client's session.
    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.find_client(&cx).await?;
        let list = ListResourcesResult::with_all_items(resources::list_resources(&client).await?);
        Ok(list.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    /// Lists the patterns of resource URIs.
    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = ListResourceTemplatesResult::with_all_items(resources::resource_templates());
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Returns the contents of a resource.
    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.find_client(&cx).await?;
        let read = resources::read_resource(&client, request.uri).await?;
        Ok(read.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
    }

    /// Subscribes the session to changes of a resource.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.find_client(&cx).await?;
        self.watched.add_resource(&client, request.uri).await
    }

    /// Ends a subscription.
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.remove_resource(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(watch::accepted_filter(requested))
    }

    /// Refuses a request that the library could not parse: a known method with wrong parameters, or an
    /// unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if !METHODS.contains(&request.method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let found = match &request.params {
            None => "they are missing",
            Some(_) => "a field is missing or has another type",
        };
        let message = format!("the parameters of `{}` do not fit: {found}", request.method);
        Err(ErrorData::invalid_params(message, None))
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.find_client(cx.request_context()).await?;
        watch::notify_until_end(&client, &cx).await
    }
}
