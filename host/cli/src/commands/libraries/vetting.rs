//! The agents of a source as if installed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use belljar_agent::{Host, ResolvedAgent, resolve_entry};
use belljar_definition::suspicion::{Suspicion, find_suspicions};
use belljar_definition::{
    AgentContext, AgentScope, Catalog, NotAnAgent, ScannedContent, SkipReason, Slug, SourceFile,
};
use belljar_policy::ShownText;

use crate::libraries::{CollectedSource, GatheredFile, LeftOutFile};
use crate::setup::home::HomePaths;

/// A source, checked as the library `name`.
pub(super) struct VettedSource {
    pub(super) name: Slug,
    /// In the order of their paths.
    pub(super) agents: Vec<SourceAgent>,
    /// Files meant as agents that cannot be used.
    pub(super) left_out: Vec<LeftOutFile>,
    /// How many more of them there are.
    pub(super) unnamed: usize,
    /// Files without frontmatter: documentation.
    pub(super) documents: Vec<String>,
    /// Folders of other kinds than agents.
    pub(super) folders: BTreeSet<String>,
}

/// An agent of a source, as if installed.
pub(in crate::commands) struct SourceAgent {
    pub(in crate::commands) file: GatheredFile,
    /// The agent under the present grants.
    pub(in crate::commands) resolved: ResolvedAgent,
    pub(in crate::commands) suspicions: Vec<Suspicion>,
}

/// Parses what was collected, as the catalogue will.
pub(super) fn vet_library(
    host: &Host,
    places: &HomePaths,
    name: &Slug,
    collected: CollectedSource,
) -> VettedSource {
    let CollectedSource { files, mut left_out, unnamed, folders } = collected;
    let scope = AgentScope::Library(name.to_string());
    let (agents, documents) = vet_agents(host, places, &scope, files, &mut left_out);
    VettedSource { name: name.clone(), agents, left_out, unnamed, documents, folders }
}

/// Parses files as agents of this scope: the agents, and the files without frontmatter. Those that cannot be
/// used are added to `left_out`.
pub(in crate::commands) fn vet_agents(
    host: &Host,
    places: &HomePaths,
    scope: &AgentScope,
    files: Vec<GatheredFile>,
    left_out: &mut Vec<LeftOutFile>,
) -> (Vec<SourceAgent>, Vec<String>) {
    let source = |file: &GatheredFile| SourceFile {
        scope: scope.clone(),
        root: PathBuf::new(),
        path: PathBuf::from(&file.path),
        content: ScannedContent::Bytes(file.bytes.clone()),
    };
    // Parsed as after an installation.
    let context = AgentContext { known: host.tools.known_tools(), shapes: host.settings.shapes };
    let catalog: Catalog = Catalog::from_files(files.iter().map(source).collect(), &context, false);
    let mut documents = Vec::new();
    for skipped in catalog.skipped_files() {
        let path = ShownText::new(&skipped.path.to_string_lossy()).to_string();
        let why = match &skipped.reason {
            SkipReason::NotAnAgent(NotAnAgent::OtherFile) => continue,
            SkipReason::NotAnAgent(_) => {
                documents.push(path);
                continue;
            }
            SkipReason::Quarantined => "it lies in a folder of drafts".to_owned(),
            SkipReason::Duplicate(first) => {
                let first = first.to_string_lossy();
                format!("its name is that of `{}`", ShownText::new(&first))
            }
            SkipReason::Invalid(found) => found.first().map_or_else(String::new, |found| {
                format!("line {}: {}", found.line, found.message)
            }),
        };
        left_out.push(LeftOutFile { path, why });
    }
    let mut agents = Vec::new();
    for file in files {
        let path = PathBuf::from(&file.path);
        let Some(entry) = catalog.agents().iter().find(|entry| entry.definition.path == path)
        else {
            continue;
        };
        let resolved = resolve_entry(host, entry, &places.workspace);
        // Parsed already, so the text is UTF-8.
        let text = String::from_utf8_lossy(&file.bytes);
        let suspicions = find_suspicions(&text, &entry.definition);
        agents.push(SourceAgent { file, resolved, suspicions });
    }
    (agents, documents)
}

impl VettedSource {
    /// The files to install.
    pub(super) fn install_files(&self) -> Vec<GatheredFile> {
        self.agents.iter().map(|agent| agent.file.clone()).collect()
    }

    /// How many agents have something suspicious.
    pub(super) fn count_suspicious(&self) -> usize {
        self.agents.iter().filter(|agent| !agent.suspicions.is_empty()).count()
    }

    /// Agents of this library with grants in `belljar.toml`: of an earlier library, or in advance.
    pub(super) fn granted_agents(&self, host: &Host) -> Vec<String> {
        let scope = AgentScope::Library(self.name.to_string());
        let named = host.settings.grantees().filter(|grantee| grantee.is_of(&scope));
        named.map(ToString::to_string).collect()
    }
}
