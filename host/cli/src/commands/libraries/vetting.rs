//! The agents of a source as if installed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use belljar_agent::{Host, ResolvedAgent, resolve_entry};
use belljar_definition::suspicion::{Suspicion, suspicions};
use belljar_definition::{AgentContext, Catalog, Content, Scope, SkipReason, Slug, SourceFile};
use belljar_policy::Shown;

use crate::libraries::{Collected, GatheredFile, LeftOutFile};
use crate::setup::home::Places;

/// A source, checked as the library `name`.
pub(super) struct Vetted {
    pub(super) name: Slug,
    /// In the order of their paths.
    pub(super) agents: Vec<Agent>,
    /// Files meant as agents that cannot be used.
    pub(super) left_out: Vec<LeftOutFile>,
    /// How many more of them there are.
    pub(super) unnamed: usize,
    /// Files without frontmatter: documentation.
    pub(super) documents: Vec<String>,
    /// Folders of other kinds than agents.
    pub(super) folders: BTreeSet<String>,
}

pub(super) struct Agent {
    pub(super) file: GatheredFile,
    /// The agent under the present grants.
    pub(super) resolved: ResolvedAgent,
    pub(super) suspicions: Vec<Suspicion>,
}

/// Parses what was collected, as the catalogue will.
pub(super) fn vet(host: &Host, places: &Places, name: &Slug, collected: Collected) -> Vetted {
    let Collected { files, mut left_out, unnamed, folders } = collected;
    let source = |file: &GatheredFile| SourceFile {
        scope: Scope::Library(name.to_string()),
        root: PathBuf::new(),
        path: PathBuf::from(&file.path),
        content: Content::Bytes(file.bytes.clone()),
    };
    // Parsed as after an installation.
    let context = AgentContext { known: host.tools.known(), shapes: host.settings.shapes };
    let catalog: Catalog = Catalog::of(files.iter().map(source).collect(), &context, false);
    let mut documents = Vec::new();
    for skipped in catalog.skipped() {
        let path = Shown::new(&skipped.path.to_string_lossy()).to_string();
        let why = match &skipped.reason {
            SkipReason::NotAnAgent(_) => {
                documents.push(path);
                continue;
            }
            SkipReason::Quarantined => "it lies in a folder of drafts".to_owned(),
            SkipReason::Duplicate(first) => {
                let first = first.to_string_lossy();
                format!("its name is that of `{}`", Shown::new(&first))
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
        let suspicions = suspicions(&text, &entry.definition);
        agents.push(Agent { file, resolved, suspicions });
    }
    Vetted { name: name.clone(), agents, left_out, unnamed, documents, folders }
}

impl Vetted {
    /// The files to install.
    pub(super) fn files(&self) -> Vec<GatheredFile> {
        self.agents.iter().map(|agent| agent.file.clone()).collect()
    }

    /// How many agents have something suspicious.
    pub(super) fn suspicious(&self) -> usize {
        self.agents.iter().filter(|agent| !agent.suspicions.is_empty()).count()
    }

    /// Agents of this library with grants in `belljar.toml`: of an earlier library, or in advance.
    pub(super) fn granted(&self, host: &Host) -> Vec<String> {
        let scope = Scope::Library(self.name.to_string());
        let named = host.settings.grantees().filter(|grantee| grantee.is_of(&scope));
        named.map(ToString::to_string).collect()
    }
}
