//! `GET /v1/libraries`: installed libraries, whether they are unchanged, and findings for a person.

use belljar_agent::{ResolveError, VettedAgent, VettedLibrary, vetted_libraries};
use belljar_definition::suspicion::RULES;
use belljar_work::StopSignal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::agents::row_bytes;
use crate::api::scope::name_of;
use crate::app::HandlerContext;
use crate::http::page::PAGE_BYTES;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, QueryOf};
use crate::routes::RequiredScope;

/// The query of `GET /v1/libraries`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LibrariesQuery {
    after: Option<String>,
}

/// The installed libraries, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Libraries {
    libraries: Vec<LibraryBody>,
    /// The signs that are looked for.
    rules: Vec<RuleBody>,
    /// The value to send as `after` for the next ones; absent where there are none. A page ends
    /// behind 2 MiB; one library may be larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A library.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryBody {
    name: String,
    /// Where it came from. Foreign text.
    source: String,
    /// The id of the library's git commit; absent for a directory or an archive.
    revision: Option<String>,
    /// `ok`, or how its files are not what was agreed to: those are not used.
    state: &'static str,
    agents: Vec<LibraryAgentBody>,
    /// Its files that are no agents now.
    left_out: Vec<LeftOutBody>,
}

/// An agent of a library. Its texts are its author's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryAgentBody {
    /// The agent, as requests name it.
    agent: String,
    slug: String,
    /// `ready`, `ready with warnings` or `blocked`.
    status: String,
    /// Why it is not simply ready.
    reasons: Vec<String>,
    /// The command that unblocks it, where it is blocked and a grant would; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Its file, below the library's directory.
    file: String,
    /// The digest of the file that was agreed to: SHA-256, in hex.
    digest: String,
    /// The requests of its file.
    asks: Vec<String>,
    /// The rights that it gets.
    gets: Vec<String>,
    /// The requests that it does not get.
    missing: Vec<String>,
    /// The signs that a person should look at.
    suspicions: Vec<SuspicionBody>,
}

/// A sign in an agent's file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuspicionBody {
    /// The name of the rule.
    rule: String,
    /// The line, from 1.
    line: u32,
    /// The text; escaped.
    found: String,
}

/// A file that is no agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeftOutBody {
    path: String,
    why: String,
}

/// A rule by which signs are found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleBody {
    name: String,
    why: String,
}

/// `GET /v1/libraries`: lists the installed libraries with their agents and findings.
pub(crate) async fn list_libraries(
    ctx: HandlerContext,
    QueryOf(query): QueryOf<LibrariesQuery>,
) -> Result<JsonAnswer<Libraries>, Problem> {
    let (service, admin) = (ctx.service.clone(), ctx.caller.has_scope(RequiredScope::Admin));
    let look = move |stop: &StopSignal| {
        let host = service.current_host();
        let vetted = vetted_libraries(&host, service.workspace(), stop)?;
        let (mut libraries, mut bytes, mut next) = (Vec::new(), 0, None);
        let behind =
            |one: &VettedLibrary| query.after.as_ref().is_none_or(|after| one.name > *after);
        for one in vetted.into_iter().filter(behind) {
            if bytes >= PAGE_BYTES {
                next = libraries.last().map(|last: &LibraryBody| last.name.clone());
                break;
            }
            let command = |agent: &VettedAgent| {
                let hint = &agent.agent.hint;
                Some(host.for_its_tenant(hint)).filter(|_| admin && !hint.is_empty())
            };
            let library = LibraryBody::from_vetted(one, command);
            bytes = bytes.saturating_add(row_bytes(&library));
            libraries.push(library);
        }
        Ok::<_, ResolveError>((libraries, next))
    };
    let found = ctx.look_up(look).await?;
    let (libraries, next) =
        found.map_err(|error| Problem::from_resolve_error("listing libraries", &error))?;
    let rule = |rule: &belljar_definition::suspicion::SuspicionRule| RuleBody {
        name: rule.name.to_string(),
        why: rule.why.to_string(),
    };
    Ok(JsonAnswer(Libraries { libraries, rules: RULES.iter().map(rule).collect(), next }))
}

impl LibraryBody {
    /// Converts a checked library to an answer; `command` returns the operator's command that would
    /// grant an agent its missing rights.
    fn from_vetted(
        vetted: VettedLibrary,
        command: impl Fn(&VettedAgent) -> Option<String>,
    ) -> Self {
        let VettedLibrary { name, source, revision, state, agents, left_out } = vetted;
        let agent = |one: &VettedAgent| LibraryAgentBody {
            agent: name_of(&one.agent.id),
            slug: one.agent.id.slug.to_string(),
            status: one.agent.status.as_str().to_owned(),
            reasons: one.agent.status_reasons().to_vec(),
            command: command(one),
            file: one.file.clone(),
            digest: one.digest.clone(),
            asks: one.agent.list_requests(),
            gets: one.agent.list_rights(),
            missing: one.agent.list_denials(),
            suspicions: one
                .suspicions
                .iter()
                .map(|it| SuspicionBody {
                    rule: it.rule.name.to_string(),
                    line: it.line,
                    found: it.found.clone(),
                })
                .collect(),
        };
        let left_out = left_out.into_iter().map(|(path, why)| LeftOutBody { path, why });
        Self {
            name,
            source,
            revision,
            state: state.as_str(),
            agents: agents.iter().map(agent).collect(),
            left_out: left_out.collect(),
        }
    }
}
