//! The text of an agent, parsed by the same rules as a file, and checked against the grants of the tenant's
//! operator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_agent::{
    Host, ResolvedAgent, RunError, canonicalize_workspace, model_of, resolve_entry,
};
use belljar_definition::{
    API_LIBRARY, AgentId, AgentReadiness, AgentScope, CatalogEntry, Diagnostic, NotAnAgent,
    ParsedAgentFile, Severity, Slug, parse_agent_in,
};
use belljar_work::StopSignal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::grants::{readiness_reasons, tool_grants};
use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::routes::RequiredScope;

/// The result of parsing an agent's text that a caller sent.
pub(crate) struct AgentText {
    /// The agent's name; `None` if the text is no usable agent.
    pub(crate) slug: Option<Slug>,
    /// The parsed definition, with the rights that the operator's grants would leave to the agent;
    /// `None` if the text is no usable agent.
    pub(crate) definition: Option<DefinitionBody>,
    /// The system prompt; `None` if the text is no usable agent.
    pub(crate) body: Option<String>,
    pub(crate) diagnostics: Vec<DiagnosticBody>,
    /// The agent that would exist if the text were stored; used for a preview.
    pub(crate) agent: Option<Box<ResolvedAgent>>,
}

/// The definition of an agent, with what it is given. Its texts are its author's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DefinitionBody {
    /// Its name for people.
    name: String,
    /// The purpose of the agent.
    description: String,
    /// `user-facing` or `internal`.
    visibility: String,
    /// The program that it was written for.
    dialect: String,
    /// The model that it asks for; absent = the operator's choice.
    model: Option<String>,
    /// Why no model would answer for it, where none would: its turns fail until one is named that
    /// does.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_problem: Option<String>,
    /// `ready`, `ready with warnings` or `blocked`.
    status: String,
    /// Why it is not simply ready.
    reasons: Vec<String>,
    /// The command that unblocks it, for the operator's own terminal, where a grant would; for
    /// admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// The tools that it is given: `allow` or `ask`.
    tools: BTreeMap<String, String>,
    /// Its words about delegating; absent where it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagents: Option<SubagentsBody>,
}

/// The words of an agent about delegating. It narrows what is granted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubagentsBody {
    /// Whether it may delegate at all.
    enabled: Option<bool>,
    /// How many subagents may run at the same time.
    max_concurrent: Option<u32>,
    /// The agents that it may delegate to.
    allowed_agents: Option<Vec<String>>,
    /// The tools that its subagents may use.
    allowed_tools: Option<Vec<String>>,
}

/// A finding about a text. Foreign words in it are escaped.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiagnosticBody {
    /// The line, from 1; 0 = the text as a whole.
    line: u32,
    /// The column in characters, from 1; 0 = the line as a whole.
    column: u32,
    /// `error`, `warning` or `note`.
    severity: String,
    /// A stable word for programs.
    code: String,
    /// The fault.
    message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Parses `text` by the rules for an agent file named `slug.md`. Errors in the text are findings of the
/// result, not a [`Problem`].
pub(crate) async fn read_text(
    ctx: &HandlerContext,
    slug: &str,
    text: &str,
) -> Result<AgentText, Problem> {
    let (service, text) = (ctx.service.clone(), text.to_owned());
    let admin = ctx.caller.has_scope(RequiredScope::Admin);
    let path = PathBuf::from(format!("{slug}.md"));
    // Parsed on a thread, because a text of the largest size needs some milliseconds.
    let read = move |_: &StopSignal| {
        let host = service.current_host();
        let known = host.tools.known_tools();
        let parsed = parse_agent_in(&path, text.as_bytes(), &known, host.settings.shapes);
        // INV-486: the caller is the author of this agent, as in a home.
        match parsed.in_own_home() {
            ParsedAgentFile::Invalid { diagnostics } => Ok(AgentText::with_errors(&diagnostics)),
            ParsedAgentFile::NotAnAgent { reason } => {
                Ok(AgentText::with_errors(&[not_an_agent(&path, why_not(reason))]))
            }
            ParsedAgentFile::Agent { definition, diagnostics } => {
                let workspace = canonicalize_workspace(service.workspace())
                    .map_err(|error| error.to_string())?;
                let found = diagnostics.iter().map(DiagnosticBody::from_diagnostic).collect();
                let scope = AgentScope::Library(API_LIBRARY.to_owned());
                let id = AgentId { scope, slug: definition.slug.clone() };
                let entry = CatalogEntry { id, definition: *definition, diagnostics };
                let agent = resolve_entry(&host, &entry, &workspace);
                Ok(AgentText {
                    slug: Some(entry.id.slug),
                    definition: Some(DefinitionBody::with_command(&agent, &host, admin)),
                    body: Some(entry.definition.body),
                    diagnostics: found,
                    agent: Some(Box::new(agent)),
                })
            }
        }
    };
    let failed = |why: &dyn std::fmt::Display| Problem::bug(&format!("reading an agent: {why}"));
    let read: Result<_, String> = ctx.look_up(read).await?;
    read.map_err(|why| failed(&why))
}

/// The reason why a text is no agent, as a caller reads it: without hints that only the operator can
/// follow.
fn why_not(reason: NotAnAgent) -> &'static str {
    match reason {
        NotAnAgent::Wrapped => "its frontmatter stands in a code fence or after a heading",
        NotAnAgent::Empty
        | NotAnAgent::NoFrontmatter
        | NotAnAgent::Documentation
        | NotAnAgent::OtherDocument
        | NotAnAgent::OtherFile => reason.as_str(),
    }
}

fn not_an_agent(path: &Path, why: &str) -> Diagnostic {
    let message = format!("not an agent: {why}");
    let hint = Some("begin it with `---` and fields such as `name` and `description`".to_owned());
    Diagnostic { hint, ..Diagnostic::for_file(path, "not-an-agent", message) }
}

impl AgentText {
    fn with_errors(diagnostics: &[Diagnostic]) -> Self {
        let diagnostics = diagnostics.iter().map(DiagnosticBody::from_diagnostic).collect();
        Self { slug: None, definition: None, body: None, diagnostics, agent: None }
    }

    /// The answer to a caller whose text is no agent: a problem with the first error found in the text.
    pub(crate) fn to_problem(&self) -> Problem {
        let why = self.diagnostics.iter().find(|found| found.is_error());
        let why = why.map_or_else(|| "it is no agent".to_owned(), DiagnosticBody::to_line);
        Problem::new(ProblemKind::Agent, format!("the text cannot be used: {why}"))
            .with_hint("`POST /v1/agents/validate` says all that is wrong with it")
    }
}

impl DefinitionBody {
    /// Like [`Self::from_agent`], with the reason why no model would answer, and, if `admin` is true,
    /// with the operator's command that unblocks the agent.
    pub(crate) fn with_command(agent: &ResolvedAgent, host: &Host, admin: bool) -> Self {
        let blocked = matches!(agent.status, AgentReadiness::Blocked { .. });
        let hint = Some(&agent.hint).filter(|hint| admin && blocked && !hint.is_empty());
        let command = hint.map(|hint| host.for_its_tenant(hint));
        Self { command, model_problem: no_model(agent, host), ..Self::from_agent(agent) }
    }

    /// Copies the definition and the granted tools of an agent into the form of an answer.
    pub(crate) fn from_agent(agent: &ResolvedAgent) -> Self {
        let definition = &agent.definition;
        let subagents = definition.subagents.as_ref().map(|ask| SubagentsBody {
            enabled: ask.enabled,
            max_concurrent: ask.max_concurrent,
            allowed_agents: ask.allowed_agents.clone(),
            allowed_tools: ask
                .allowed_tools
                .as_ref()
                .map(|tools| tools.iter().map(ToString::to_string).collect()),
        });
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            visibility: definition.visibility.to_string(),
            dialect: definition.dialect.to_string(),
            model: definition.model.clone(),
            model_problem: None,
            status: agent.status.as_str().to_owned(),
            reasons: readiness_reasons(&agent.status).to_vec(),
            command: None,
            tools: tool_grants(agent),
            subagents,
        }
    }
}

/// The reason why no model would answer for an agent, in words for any caller; `None` if a model would
/// answer.
fn no_model(agent: &ResolvedAgent, host: &Host) -> Option<String> {
    match model_of(host, None, agent, None) {
        Ok(_) => None,
        Err(RunError::Setup { message, .. }) => Some(message),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns whether a hint can be followed only at the server's own machine, because the hint names a
/// command, an option or a file there.
fn is_for_the_operator(text: &str) -> bool {
    let option = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_lowercase());
    let names = ["`belljar ", "belljar.toml"];
    names.iter().any(|name| text.contains(name)) || text.split("`--").skip(1).any(option)
}

/// Replacements for hints that only the operator can follow: if a hint contains the first text, a
/// remote caller reads the second.
const INSTEAD: [(&str, &str); 3] = [
    ("`belljar tools list`", "`GET /v1/tools` shows all tools"),
    ("remove `host`", "remove `host`: the operator of this server grants directories"),
    ("lenient", "begin the file with `---`, or ask the operator to have such files read"),
];

/// A hint as a remote caller reads it: a hint with the operator's commands or files is replaced by an
/// entry of [`INSTEAD`].
fn for_callers(hint: &str) -> String {
    if !is_for_the_operator(hint) {
        return hint.to_owned();
    }
    let instead = INSTEAD.iter().find(|(part, _)| hint.contains(part));
    instead.map_or("ask the operator of this server", |(_, instead)| *instead).to_owned()
}

impl DiagnosticBody {
    /// Converts a finding for an answer, with a hint that a remote caller can follow.
    pub(crate) fn from_diagnostic(found: &Diagnostic) -> Self {
        Self {
            line: found.line,
            column: found.column,
            severity: found.severity.to_string(),
            code: found.code.to_owned(),
            message: found.message.clone(),
            hint: found.hint.as_deref().map(for_callers),
        }
    }

    /// Returns whether this finding makes the agent's text unusable.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error.to_string()
    }

    /// The finding in one line, for example `line 3: the name is missing`.
    pub(crate) fn to_line(&self) -> String {
        match self.line {
            0 => self.message.clone(),
            line => format!("line {line}: {}", self.message),
        }
    }
}
