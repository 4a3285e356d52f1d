//! Prepares an agent's first model call: the tools, the state for calls, and the first request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use belljar_definition::ToolsAs;
use belljar_model::{ChatMessage, ChatRequest, Sampling, ToolCall, ToolResult, ToolSpec};
use belljar_policy::{PeersAsk, ToolName};
use belljar_sandbox::{PeerTool, ToolHints};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::current_jar::CurrentJar;
use crate::agent_loop::images;
use crate::agent_loop::job::AgentJob;
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::library::{load_called_tools, offer_finders, plan_library};
use crate::agent_loop::machine::AgentLoop;
use crate::brought::BroughtError;
use crate::finding::catalogue::EntryKind;
use crate::finding::plan::LibraryPlan;
use crate::limits::MAX_TOOLS;
use crate::outcome::RunError;
use crate::prompt::blocks;
use crate::prompt::frame::{self, FORK_PLACEHOLDER};
use crate::prompt::skills;
use crate::prompt::stubs::StubLanguage;
use crate::rights::decide::{self, DecisionReasons, OfferConditions};
use crate::rights::delegates::DelegateSet;
use crate::subagent::small::cut_with_mark;
use crate::tools::alias::ToolAliases;
use crate::tools::builtin::spec::builtin_spec;
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::caller::CallerTools;
use crate::tools::dispatch::{Dispatcher, ToolProvider};
use crate::tools::executor::CallMeans;
use crate::tools::hooks::state::HookState;
use crate::tools::in_use::SkillNarrowing;
use crate::tools::remote::RemoteTools;
use belljar_catalogue::ToolOffer;

/// Makes the loop and the call means of an agent. This is the first and third place of the allowlist: only
/// permitted tools are advertised, and the jar gets only the components of permitted tools.
pub(crate) async fn prepare_agent(
    job: &AgentJob,
    ledger: &Ledger,
    stop: &CancellationToken,
) -> Result<(AgentLoop, CallMeans), RunError> {
    let host = &job.shared.host;
    let offer = host.tools.offer_tools(&host.sandbox, &job.rights).await;
    let ToolOffer { mut specs, jar_tools, repeatable, replayable, remote, warnings, mut left_out } =
        offer;
    for warning in warnings {
        job.record_warning(ledger, warning);
    }
    let mut advertised: BTreeMap<_, _> =
        specs.iter().map(|(name, _)| (name.clone(), ToolProvider::Jar)).collect();
    let delegates = find_delegates(job);
    let listed = delegates.listed_agents();
    let means = OfferConditions {
        delegates: !listed.is_empty(),
        skills: decide::has_skills(&host.skills),
        ..OfferConditions::for_agent(&job.agent.definition, &job.rights, job.depth)
    };
    let has = |tool: &BuiltinTool| !job.direct && job.rights.has_tool(tool.name());
    for tool in BuiltinTool::ALL.into_iter().filter(has) {
        let Ok(permit) = job.rights.tool(tool.name()) else { continue };
        match decide::left_out(tool, means) {
            Some(why) => drop(left_out.insert(permit.tool().clone(), why.to_owned())),
            None => {
                specs.push((permit.tool().clone(), builtin_spec(tool)));
                advertised.insert(permit.tool().clone(), ToolProvider::Builtin(tool));
            }
        }
    }
    let given: Vec<BuiltinTool> =
        advertised.keys().filter_map(|name| BuiltinTool::from_name(name.as_str())).collect();
    let mut library = plan_library(job, &delegates, &listed, &given, &specs, &remote);
    // A deferred tool may be called at once; only its specification is not in the request yet.
    let waits = |name: &ToolName| {
        remote.contains_key(name) && library.defers(EntryKind::Tool) && !library.lists_tool(name)
    };
    let (waiting, kept): (Vec<_>, Vec<_>) = specs.into_iter().partition(|(name, _)| waits(name));
    let mut specs = kept;
    for (name, _) in specs.drain(specs.len().min(MAX_TOOLS)..) {
        advertised.remove(&name);
        job.record_warning(
            ledger,
            format!("tool `{name}` is left out: more than {MAX_TOOLS} tools"),
        );
        left_out.insert(name, format!("the agent has more than {MAX_TOOLS} tools"));
    }
    let mut specs: Vec<ToolSpec> = specs.into_iter().map(|(_, spec)| spec).collect();
    library.tools = waiting.into_iter().map(|(name, spec)| (name.to_string(), spec)).collect();
    let aliases = ToolAliases::put_up(&job.agent.definition, &mut specs);
    let hints: BTreeMap<ToolName, ToolHints> =
        jar_tools.iter().flat_map(|it| it.tools.clone()).collect();
    let calls_others = jar_tools.iter().any(|it| it.ask.peers != PeersAsk::None);
    let shown: Vec<ToolSpec> = match calls_others {
        true => specs.iter().chain(library.tools.values()).cloned().collect(),
        false => Vec::new(),
    };
    let code = in_code(job, ledger, &mut specs, &aliases);
    let caller = |message| RunError::Caller { message, images: false };
    let schemas = job.brought.compile_schemas(&host.owner_of("schemas")).await;
    let schemas = schemas.map_err(|error| match error {
        BroughtError::Unfit(unfit) => caller(unfit.to_string()),
        BroughtError::Work(error) => RunError::from(&error),
    })?;
    let tools = &host.tools;
    let callers =
        CallerTools::from_input(&job.brought, &schemas, tools, &advertised, &mut specs, &aliases);
    let callers = callers.map_err(caller)?;
    let finders = offer_finders(&library, &given, &mut specs);
    load_called_tools(job, &mut library, &mut specs);
    let jar = CurrentJar::new(jar_tools, stop.clone());
    jar.open_jar(job).await?;
    let request = match &job.fork {
        Some(parent) => fork_request(parent, &job.first),
        None => {
            let system = build_system_prompt(job, ledger, &listed, &given, &aliases, &library);
            first_request(job, system, specs)
        }
    };
    images::check_images(&request, &*job.model.model)
        .map_err(|message| RunError::Caller { message, images: true })?;
    let reasons = DecisionReasons {
        definition: Some(Arc::clone(&job.agent.definition)),
        tools: Some(Arc::clone(&host.tools)),
        left_out,
        for_overlays: Arc::clone(&job.agent.for_overlays),
    };
    let dispatcher = Dispatcher::new(job.rights.clone(), advertised, aliases);
    let dispatcher = dispatcher.with_reasons(reasons).with_caller_tools(callers);
    let mut dispatcher = dispatcher.with_finders(finders);
    if !job.direct {
        dispatcher = dispatcher.with_narrowing(SkillNarrowing {
            skills: Arc::clone(&host.skills),
            tools: Arc::clone(&host.tools),
            grants: job.agent.grants.clone(),
        });
        // INV-653: a skill that a person called narrows the rights from the first step on.
        job.brought.skills.iter().for_each(|name| dispatcher.use_skill(name));
    }
    let dispatcher = match &code {
        Some(code) => dispatcher.with_code_tool(code),
        None => dispatcher,
    };
    let peers = list_peer_tools(shown, &dispatcher, &hints);
    let form = job.brought.form.as_ref().and_then(|form| schemas.get(form));
    let machine = AgentLoop::new(request, dispatcher).with_past(job.history.len()).held_to(form);
    let machine = machine.with_deferred(library.tools.clone());
    let means = CallMeans {
        jar,
        remote: RemoteTools::for_tools(remote),
        peers,
        repeatable,
        replayable,
        slots: Arc::new(Semaphore::new(delegates.max_concurrent())),
        delegates,
        background: Arc::default(),
        hooked: HookState::default(),
        narrowed: Mutex::default(),
        library,
        todos: Mutex::default(),
    };
    Ok((machine, means))
}

/// The request of the first step.
fn first_request(job: &AgentJob, system: Vec<String>, tools: Vec<ToolSpec>) -> ChatRequest {
    ChatRequest {
        system,
        messages: first_messages(job),
        tools,
        choice: job.brought.choice.clone(),
        max_output_tokens: job.brought.max_output_tokens,
        temperature: job.brought.temperature,
        effort: job.brought.effort,
        sampling: job.brought.sampling.clone(),
        foreign: false,
    }
}

/// The messages before the first answer: the history, then the person's message or the caller's results.
fn first_messages(job: &AgentJob) -> Vec<ChatMessage> {
    let mut messages = job.history.clone();
    let answered = matches!(messages.last(), Some(ChatMessage::Tool { .. }));
    let images = job.brought.images.clone();
    match job.first.as_str() {
        first if !first.trim().is_empty() || !images.is_empty() => {
            messages.push(ChatMessage::User { text: first.to_owned(), images });
        }
        _ if answered => {}
        _ => messages.push(ChatMessage::from_user(frame::GO_ON)),
    }
    messages
}

/// If the agent is configured to call tools from code, describes the tools as functions of the code tool.
/// Returns the code tool's name if the model sees no other tool but `use_skill`. INV-653: a skill is in use only
/// after a call of the model's own.
fn in_code(
    job: &AgentJob,
    ledger: &Ledger,
    specs: &mut Vec<ToolSpec>,
    aliases: &ToolAliases,
) -> Option<ToolName> {
    let definition = &job.agent.definition;
    let said = job.shared.host.settings.tools_as(&job.agent.id, definition.visibility);
    let form = said.or(definition.tools_as).unwrap_or_default();
    if form == ToolsAs::Calls {
        return None;
    }
    let has = |language: &StubLanguage| specs.iter().any(|spec| spec.name == language.tool());
    let Some(language) = StubLanguage::ALL.into_iter().find(has) else {
        let names =
            StubLanguage::ALL.map(|language| format!("`{}`", language.tool())).join(" nor ");
        job.record_warning(
            ledger,
            format!("tools are shown as calls: the agent has neither {names}"),
        );
        return None;
    };
    let runs_code = |spec: &ToolSpec| StubLanguage::ALL.iter().any(|it| it.tool() == spec.name);
    let loads_skills = |spec: &ToolSpec| {
        let own = aliases.find_alias(&spec.name).map_or(spec.name.as_str(), |alias| alias.tool);
        own == BuiltinTool::Skill.name()
    };
    let callable = specs.iter().filter(|spec| !runs_code(spec) && !loads_skills(spec));
    let interface = language.render_interface(callable);
    let tool = specs.iter_mut().find(|spec| spec.name == language.tool())?;
    tool.description.push_str(&interface);
    if form == ToolsAs::Both {
        return None;
    }
    specs.retain(|spec| spec.name == language.tool() || loads_skills(spec));
    ToolName::new(language.tool()).ok()
}

/// The tools that code of a tool may call, under the names the model knows.
fn list_peer_tools(
    specs: Vec<ToolSpec>,
    dispatcher: &Dispatcher,
    hints: &BTreeMap<ToolName, ToolHints>,
) -> Arc<[PeerTool]> {
    let peer = |spec: ToolSpec| {
        let own = dispatcher.own_name(&spec.name);
        let tool = ToolName::new(own).ok().filter(|_| dispatcher.offers_tool(own))?;
        // Entering a worktree closes the jar in which the outer call runs. INV-653: a skill that code loaded would
        // narrow nothing.
        if [BuiltinTool::Worktree, BuiltinTool::Skill].iter().any(|tool| tool.name() == own) {
            return None;
        }
        let hints = hints.get(&tool).copied().unwrap_or_default();
        let ToolSpec { name, description, schema } = spec;
        Some(PeerTool { name, tool, description, schema: schema.to_string(), hints })
    };
    specs.into_iter().filter_map(peer).collect()
}

/// The agents open to delegation by this agent; none if the agent's depth forbids delegation.
fn find_delegates(job: &AgentJob) -> DelegateSet {
    let granted = |tool: BuiltinTool| job.rights.has_tool(tool.name());
    if !job.depth.can_delegate()
        || !BuiltinTool::ALL.into_iter().any(|t| t.is_delegation() && granted(t))
    {
        return DelegateSet::none();
    }
    let (host, agent) = (&job.shared.host, &job.agent);
    let said = host.settings.delegation(&agent.id, agent.definition.visibility);
    DelegateSet::from_listing(
        host.delegate_listing(&job.shared.workspace),
        &said,
        &agent.definition,
        &agent.id.scope,
    )
}

/// The system blocks of the request: the agent's instructions, whole or cut for a small model, then the
/// host's blocks.
fn build_system_prompt(
    job: &AgentJob,
    ledger: &Ledger,
    listed: &[blocks::ListedAgent],
    given: &[BuiltinTool],
    aliases: &ToolAliases,
    library: &LibraryPlan,
) -> Vec<String> {
    let definition = &job.agent.definition;
    let body = match job.instructions {
        Some(limit) => cut_with_mark(&definition.body, limit).into_owned(),
        None => definition.body.clone(),
    };
    let mut system = vec![body];
    if job.depth.is_child() {
        let findings = definition.emit_structured_findings;
        system.push(frame::child_contract(job.depth.can_delegate(), findings));
    }
    system.extend(blocks::subagents_block(listed, given, aliases, library));
    let skill = aliases.alias_names(BuiltinTool::Skill.name()).first().copied();
    let skill = skill.unwrap_or(BuiltinTool::Skill.name());
    if given.contains(&BuiltinTool::Skill) {
        match library.defers(EntryKind::Skill) {
            true => system.push(skills::short_index_block(library, skill)),
            false => system.extend(skills::index_block(&job.shared.host.skills, skill)),
        }
    }
    // This block is last, so all blocks before it are equal for every child of the agent and a provider
    // can cache them.
    system.extend(job.known.clone());
    if !job.depth.is_child() {
        let shared = &job.shared;
        let (text, warning) = blocks::agents_md(&shared.workspace, shared.host.home.as_deref());
        system.extend(text);
        if let Some(warning) = warning {
            job.record_warning(ledger, warning);
        }
    }
    system
}

/// The first request of a fork: the parent's request byte for byte, each open call answered with the same
/// placeholder, and the task at the end. The tools stay for the provider's cache; a fork's calls of denied
/// tools are refused.
fn fork_request(parent: &ChatRequest, first: &str) -> ChatRequest {
    // A forced choice of tool and stop words are for the parent's answer only.
    let sampling = Sampling { stop: Vec::new(), ..parent.sampling.clone() };
    let mut request = ChatRequest { choice: None, sampling, ..parent.clone() };
    if let Some(ChatMessage::Assistant { calls, .. }) = request.messages.last() {
        let placeholder = |call: &ToolCall| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: FORK_PLACEHOLDER.to_owned(),
            is_error: false,
        };
        let results: Vec<_> = calls.iter().map(placeholder).collect();
        if !results.is_empty() {
            request.messages.push(ChatMessage::Tool { results });
        }
    }
    request.messages.push(ChatMessage::from_user(first));
    request
}
