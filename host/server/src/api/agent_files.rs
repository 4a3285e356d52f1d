//! Files that would be agents but are not: unreadable files and drafts.

use std::path::Path;

use belljar_agent::Host;
use belljar_catalogue::{API_LIBRARY, NAME_TAKEN, list_drafts};
use belljar_definition::{
    AgentContext, AgentDefinition, AgentScope, CatalogItem as _, Diagnostic, SkipReason,
};
use belljar_policy::ShownText;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::agent_text::DiagnosticBody;
use crate::api::scope::{InScope, scope_word};

/// The most broken files and the most drafts in one answer: an author with more fixes the first ones
/// first.
const MAX_FILES: usize = 200;

/// Most findings reported about one file: the first ones, because an author fixes these first.
const MAX_FINDINGS: usize = 5;

/// The most characters of a file's name in an answer.
const MAX_NAME: usize = 200;

/// A file that cannot be understood as an agent, or whose name is taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BrokenBody {
    /// The name that its file gives it.
    slug: String,
    /// `home`, `workspace`, or `library/NAME`.
    scope: String,
    /// The file, below the folder of agents of its scope.
    file: String,
    /// Findings about it, the first five.
    diagnostics: Vec<DiagnosticBody>,
}

/// An agent that waits in the home until the operator takes it into use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftBody {
    /// Its name.
    slug: String,
    /// Its purpose; absent where it cannot be understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// `ready to promote`, or `cannot be promoted`.
    status: &'static str,
    /// The first five obstacles.
    reasons: Vec<String>,
    /// The command that takes it into use, where nothing stands in the way; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Lists the files in a scope that cannot be used as agents: broken files, and drafts. `admin` is true
/// if the caller may see the operator's commands. Reads files, so callers run this on a thread for
/// blocking work.
pub(crate) fn find_unused(
    host: &Host,
    wanted: &InScope,
    admin: bool,
) -> (Vec<BrokenBody>, Vec<DraftBody>) {
    let catalog = host.library.catalog();
    let mut broken = Vec::new();
    for skipped in catalog.skipped_files() {
        // A stored agent with an unreadable text appears in the list of agents, not among the broken
        // files.
        let is_kept = matches!(&skipped.scope, AgentScope::Library(name) if name == API_LIBRARY);
        let scope = scope_word(&skipped.scope);
        if is_kept || !wanted.includes_scope(&scope) {
            continue;
        }
        let diagnostics = match &skipped.reason {
            SkipReason::Invalid(found) => found.clone(),
            SkipReason::Duplicate(first) => {
                vec![duplicate_name(&skipped.path, &path_in_scope(host, &skipped.scope, first))]
            }
            SkipReason::Quarantined | SkipReason::NotAnAgent(_) => continue,
        };
        if broken.len() >= MAX_FILES {
            break;
        }
        let name = AgentDefinition::name_of_path(&skipped.path).unwrap_or_default();
        broken.push(BrokenBody {
            slug: ShownText::clip_line(&name, MAX_NAME).to_string(),
            scope,
            file: path_in_scope(host, &skipped.scope, &skipped.path),
            diagnostics: diagnostics
                .iter()
                .take(MAX_FINDINGS)
                .map(DiagnosticBody::from_diagnostic)
                .collect(),
        });
    }
    (broken, home_drafts(host, wanted, admin))
}

/// Lists the drafts in the operator's home: agent files that wait until the operator promotes them.
fn home_drafts(host: &Host, wanted: &InScope, admin: bool) -> Vec<DraftBody> {
    let root = host.library.roots().iter().find(|root| root.scope == AgentScope::Home);
    let home = root.and_then(|root| root.dir.parent());
    let Some(home) = home.filter(|_| wanted.includes_scope(&scope_word(&AgentScope::Home))) else {
        return Vec::new();
    };
    let context = AgentContext { known: host.tools.known_tools(), shapes: host.settings.shapes };
    let found = list_drafts::<AgentDefinition>(&host.library, home, context);
    let draft = |draft: belljar_catalogue::Draft| {
        let ready = draft.is_ready();
        let errors = draft
            .findings
            .iter()
            .map(without_path)
            .map(|found| DiagnosticBody::from_diagnostic(&found));
        let reasons = errors.filter(DiagnosticBody::is_error).take(MAX_FINDINGS);
        let promote =
            || host.for_its_tenant(&format!("belljar drafts promote agents/{}", draft.name));
        DraftBody {
            description: draft.entry.as_ref().map(|entry| entry.definition.description.clone()),
            status: if ready { "ready to promote" } else { "cannot be promoted" },
            reasons: reasons.map(|found| found.to_line()).collect(),
            command: (ready && admin).then(promote),
            slug: ShownText::clip_line(&draft.name, MAX_NAME).to_string(),
        }
    };
    found.into_iter().take(MAX_FILES).map(draft).collect()
}

/// Removes the host's own paths from a finding about a file, because remote callers see the finding.
fn without_path(found: &Diagnostic) -> Diagnostic {
    let message = match found.code {
        NAME_TAKEN => "its name is taken by an agent that is in use".to_owned(),
        _ => found.message.clone(),
    };
    Diagnostic { message, ..found.clone() }
}

fn duplicate_name(path: &Path, first: &str) -> Diagnostic {
    let message = format!("its name is taken by `{first}`");
    let hint = Some("give it another `name`".to_owned());
    Diagnostic { hint, ..Diagnostic::for_file(path, NAME_TAKEN, message) }
}

/// A path relative to the folder of its scope, because a remote caller must not learn where that folder
/// is on the host.
fn path_in_scope(host: &Host, scope: &AgentScope, path: &Path) -> String {
    let roots = host.library.roots().iter().filter(|root| root.scope == *scope);
    let below = roots.filter_map(|root| path.strip_prefix(&root.dir).ok()).next();
    let name = || Path::new(path.file_name().unwrap_or_default());
    let path = below.unwrap_or_else(name);
    ShownText::clip_line(&path.to_string_lossy(), MAX_NAME).to_string()
}
