//! Files in the `drafts/` folder of a home, unused until a person activates them, and the obstacles.

use std::path::{Path, PathBuf};

use belljar_definition::{
    AgentDefinition, AgentScope, CatalogEntry, CatalogItem, Diagnostic, Severity, SkipReason, Slug,
};
use belljar_policy::ShownText;

use crate::library::{Library, LibraryRoot};
use crate::scan::DRAFTS;

/// A draft: a file that no run uses yet.
#[derive(Debug)]
pub struct Draft<D = AgentDefinition> {
    /// The name, if any, for example `scout`.
    pub name: String,
    /// The file that was read.
    pub file: PathBuf,
    /// The definition; `None` = unparsable.
    pub entry: Option<CatalogEntry<D>>,
    /// The findings about the file. Only errors prevent its activation.
    pub findings: Vec<Diagnostic>,
}

impl<D> Draft<D> {
    /// Whether the draft can be activated.
    pub fn is_ready(&self) -> bool {
        self.findings.iter().all(|found| found.severity < Severity::Error)
    }
}

/// The drafts of one kind in a home, checked like other files, and for names that active files already have.
/// Activates nothing.
pub fn list_drafts<D>(live: &Library<D>, home: &Path, context: D::Context) -> Vec<Draft<D>>
where
    D: CatalogItem + PartialEq + Clone,
{
    let dir = home.join(DRAFTS).join(D::KIND.folder);
    let root = LibraryRoot { scope: AgentScope::Home, dir, pinned: None, source: None };
    let waiting = Library::<D>::from_roots(vec![root], Vec::new(), context, false);
    let catalog = waiting.catalog();
    let mut drafts = Vec::new();
    for entry in catalog.entries() {
        let mut findings = entry.diagnostics.clone();
        findings.extend(find_name_clash(live, entry));
        let file = entry.definition.path().to_path_buf();
        let name = entry.id.slug.to_string();
        drafts.push(Draft { name, file, entry: Some(entry.clone()), findings });
    }
    for skipped in catalog.skipped_files() {
        let findings = match &skipped.reason {
            SkipReason::Invalid(found) => found.clone(),
            SkipReason::Duplicate(_) => {
                let own = catalog.diagnostics().filter(|found| found.path == skipped.path);
                own.cloned().collect()
            }
            SkipReason::Quarantined | SkipReason::NotAnAgent(_) => continue,
        };
        let name = D::name_of_path(&skipped.path).unwrap_or_default();
        let name = Slug::from_name(&name).map_or(name, |slug| slug.to_string());
        drafts.push(Draft { name, file: skipped.path.clone(), entry: None, findings });
    }
    drafts
}

/// Why a draft cannot have its name: an active file has it, belljar itself, or an unparsable file in the
/// home.
fn find_name_clash<D: CatalogItem + PartialEq>(
    live: &Library<D>,
    draft: &CatalogEntry<D>,
) -> Option<Diagnostic> {
    let catalog = live.catalog();
    let used = catalog.get(&draft.id).map(|entry| entry.definition.path().to_path_buf());
    let broken = || {
        let same = |path: &Path| {
            D::name_of_path(path).and_then(|name| Slug::from_name(&name)).as_ref()
                == Some(&draft.id.slug)
        };
        let skipped = catalog.skipped_files().iter().find(|skipped| {
            skipped.scope == AgentScope::Home
                && matches!(skipped.reason, SkipReason::Invalid(_))
                && same(&skipped.path)
        });
        skipped.map(|skipped| skipped.path.clone())
    };
    let path = used.or_else(broken)?;
    let other = path.to_string_lossy();
    let message = format!("the name `{}` is taken by `{}`", draft.id.slug, ShownText::new(&other));
    let hint = Some("give the draft another `name`".to_owned());
    Some(Diagnostic { hint, ..Diagnostic::for_file(draft.definition.path(), NAME_TAKEN, message) })
}

/// The code of the finding that a draft's name is already used. The message names the present owner.
pub const NAME_TAKEN: &str = "name-taken";
