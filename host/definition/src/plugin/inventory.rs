//! What a plugin offers, and which of it belljar does not serve.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use belljar_policy::ShownText;
use serde_json::Value;
use strum::IntoEnumIterator as _;

use super::fields;
use super::format::PluginFormat;
use super::hooks::{self, PluginHook};
use super::manifest::{PartPlaces, PluginManifest};
use super::parts::PartKind;
use super::path::PluginPath;
use super::servers::{self, PluginServer};
use super::tree::PluginTree;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition};

/// How deep below its place a skill's folder is looked for: `skills/CATEGORY/NAME`.
const MAX_SKILL_DEPTH: usize = 3;

/// The parts of a plugin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginInventory {
    /// Files that may be agents.
    pub agents: Vec<PluginPart>,
    /// Skills, each by its `SKILL.md`.
    pub skills: Vec<PluginPart>,
    /// Commands.
    pub commands: Vec<PluginPart>,
    /// Hooks.
    pub hooks: Vec<PluginHook>,
    /// MCP servers.
    pub servers: Vec<PluginServer>,
    /// The kinds that are not served, with the names of their parts.
    pub unserved: BTreeMap<PartKind, Vec<String>>,
    /// Parts that cannot be read, each with its reason.
    pub diagnostics: Vec<Diagnostic>,
}

/// A part of a plugin that is a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginPart {
    /// The name in the plugin, for example `git:commit` of `commands/git/commit.md`.
    pub name: String,
    /// The path of the file below the plugin.
    pub path: String,
}

impl PluginInventory {
    /// Lists the parts of a plugin.
    pub fn list(tree: &PluginTree, manifest: &PluginManifest) -> Self {
        let mut inventory = Self::default();
        for kind in PartKind::iter() {
            let places = places_of(kind, tree, manifest);
            inventory.report_missing(kind, &places, tree);
            match kind {
                PartKind::Agents => inventory.agents = list_agents(&places, tree),
                PartKind::Skills => inventory.skills = list_skills(&places, tree, manifest),
                PartKind::Commands => inventory.commands = list_commands(&places, tree),
                PartKind::Hooks => inventory.read_hooks(&places, tree),
                PartKind::Servers => inventory.read_servers(&places, tree, manifest.format),
                other => {
                    let names = list_unserved(other, &places, tree);
                    if !names.is_empty() {
                        inventory.unserved.insert(other, names);
                    }
                }
            }
        }
        inventory
    }

    /// Whether there is nothing that belljar serves.
    pub fn is_empty(&self) -> bool {
        let Self { agents, skills, commands, hooks, servers, .. } = self;
        agents.is_empty()
            && skills.is_empty()
            && commands.is_empty()
            && hooks.is_empty()
            && servers.is_empty()
    }

    fn report_missing(&mut self, kind: PartKind, places: &PartPlaces, tree: &PluginTree) {
        for path in places.stated.iter().filter(|path| !tree.has_path(path)) {
            let message = format!("the manifest names {path} for its {kind}, and it is not there");
            let mut missing =
                Diagnostic::for_file(Path::new("plugin.json"), "missing-path", message);
            missing.severity = crate::Severity::Warning;
            self.diagnostics.push(missing);
        }
    }

    fn read_hooks(&mut self, places: &PartPlaces, tree: &PluginTree) {
        for (path, value) in self.read_documents(places, tree) {
            let mut findings = FileFindings::new(Path::new(&path));
            match value {
                Value::Object(map) => hooks::read_hooks(map, &mut self.hooks, &mut findings),
                _ => {
                    findings.warning(FilePosition::default(), "bad-hooks", "it is no object", None)
                }
            }
            self.diagnostics.extend(findings.into_diagnostics());
        }
        for inline in &places.inline {
            let mut findings = FileFindings::new(Path::new("plugin.json"));
            hooks::read_hooks(inline.clone(), &mut self.hooks, &mut findings);
            self.diagnostics.extend(findings.into_diagnostics());
        }
    }

    fn read_servers(&mut self, places: &PartPlaces, tree: &PluginTree, format: PluginFormat) {
        for (path, value) in self.read_documents(places, tree) {
            let mut findings = FileFindings::new(Path::new(&path));
            match value {
                Value::Object(map) => {
                    servers::read_servers(map, format, &mut self.servers, &mut findings);
                }
                _ => findings.warning(
                    FilePosition::default(),
                    "bad-servers",
                    "it is no object",
                    None,
                ),
            }
            self.diagnostics.extend(findings.into_diagnostics());
        }
        for inline in &places.inline {
            let mut findings = FileFindings::new(Path::new("plugin.json"));
            servers::read_servers(inline.clone(), format, &mut self.servers, &mut findings);
            self.diagnostics.extend(findings.into_diagnostics());
        }
    }

    /// The JSON documents at these places, parsed; a broken one is reported.
    fn read_documents(&mut self, places: &PartPlaces, tree: &PluginTree) -> Vec<(String, Value)> {
        let mut documents = Vec::new();
        for path in &places.paths {
            let files: Vec<&str> =
                tree.files_below(path).filter(|file| has_ending(file, &[".json"])).collect();
            for file in files {
                let mut findings = FileFindings::new(Path::new(file));
                let bytes = tree.read(file).unwrap_or_default();
                if let Some(value) = fields::parse_value(bytes, &mut findings) {
                    documents.push((file.to_owned(), value));
                }
                self.diagnostics.extend(findings.into_diagnostics());
            }
        }
        documents
    }
}

fn places_of(kind: PartKind, tree: &PluginTree, manifest: &PluginManifest) -> PartPlaces {
    let mut places = manifest.places_of(kind);
    let is_gemini = manifest.format == PluginFormat::Gemini;
    if kind == PartKind::Contexts && is_gemini && places.paths.is_empty() {
        let file = PluginPath::parse("GEMINI.md").ok().filter(|path| tree.has_path(path));
        places.paths.extend(file);
    }
    places
}

/// Markdown files at or below these places.
fn list_agents(places: &PartPlaces, tree: &PluginTree) -> Vec<PluginPart> {
    let mut found = BTreeSet::new();
    for path in &places.paths {
        for file in tree.files_below(path).filter(|file| has_ending(file, &[".md"])) {
            let stem = file_stem(file);
            let name = stem.strip_suffix(".agent").unwrap_or(stem).to_owned();
            found.insert(PluginPart { path: file.to_owned(), name });
        }
    }
    found.into_iter().collect()
}

/// Folders with a `SKILL.md` at or below these places, not those inside another skill.
fn list_skills(
    places: &PartPlaces,
    tree: &PluginTree,
    manifest: &PluginManifest,
) -> Vec<PluginPart> {
    let deepest = match manifest.format {
        PluginFormat::AgentPlugins => 1,
        _ => MAX_SKILL_DEPTH,
    };
    let mut found = BTreeSet::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for path in &places.paths {
        for file in tree.files_below(path).filter(|file| is_skill_file(file)) {
            let below = path.below(file).unwrap_or(file);
            let depth = below.matches('/').count();
            // A manifest may also name the file itself.
            if depth > deepest || depth == 0 && manifest.format == PluginFormat::AgentPlugins {
                continue;
            }
            folders.insert(file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned());
        }
    }
    // A plugin that is one skill.
    if folders.is_empty() && manifest.format != PluginFormat::AgentPlugins {
        folders.extend(tree.has_file("SKILL.md").then(String::new));
    }
    for folder in &folders {
        let is_inside = |other: &&String| {
            *other != folder && (other.is_empty() || folder.starts_with(&format!("{other}/")))
        };
        if folders.iter().any(|other| is_inside(&other)) {
            continue;
        }
        let name = match folder.as_str() {
            "" => manifest.name.clone(),
            folder => file_name(folder).to_owned(),
        };
        let path = PluginPath::parse(folder).unwrap_or_default();
        let file = tree.files_below(&path).find(|file| {
            is_skill_file(file) && path.below(file).is_some_and(|below| !below.contains('/'))
        });
        found.extend(file.map(|file| PluginPart { name, path: file.to_owned() }));
    }
    found.into_iter().collect()
}

/// Markdown and TOML files at or below these places; folders are parts of a command's name.
fn list_commands(places: &PartPlaces, tree: &PluginTree) -> Vec<PluginPart> {
    let mut found = BTreeSet::new();
    for path in &places.paths {
        for file in tree.files_below(path).filter(|file| has_ending(file, &[".md", ".toml"])) {
            let below =
                path.below(file).filter(|below| !below.is_empty()).unwrap_or(file_name(file));
            if is_skill_file(file) || file_stem(file).eq_ignore_ascii_case("readme") {
                continue;
            }
            let stem = below.rsplit_once('.').map_or(below, |(stem, _)| stem);
            found.insert(PluginPart { name: stem.replace('/', ":"), path: file.to_owned() });
        }
    }
    found.into_iter().collect()
}

/// The names of parts that belljar does not serve.
fn list_unserved(kind: PartKind, places: &PartPlaces, tree: &PluginTree) -> Vec<String> {
    let mut names = BTreeSet::new();
    for path in &places.paths {
        for file in tree.files_below(path) {
            match kind {
                PartKind::Rules if !has_ending(file, &[".mdc", ".md"]) => {}
                PartKind::LspServers | PartKind::Monitors | PartKind::Settings | PartKind::Apps => {
                    names.extend(list_keys(tree.read(file).unwrap_or_default(), file));
                }
                _ => {
                    let below = path.below(file).filter(|below| !below.is_empty());
                    names.insert(below.unwrap_or(file_name(file)).to_owned());
                }
            }
        }
    }
    for map in &places.inline {
        match map.get("name").or_else(|| map.get("server")).and_then(Value::as_str) {
            Some(name) => drop(names.insert(name.to_owned())),
            None => names.extend(map.keys().cloned()),
        }
    }
    names.into_iter().map(|name| ShownText::clip_line(&name, 80).to_string()).collect()
}

/// The names in a JSON document: its keys, or the names of its items. The file's own name if there are none.
fn list_keys(bytes: &[u8], file: &str) -> Vec<String> {
    let mut findings = FileFindings::new(Path::new(file));
    let names = match fields::parse_value(bytes, &mut findings) {
        Some(Value::Object(map)) => map.keys().filter(|key| *key != "$schema").cloned().collect(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| item.get("name").and_then(Value::as_str).map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    if names.is_empty() { vec![file_name(file).to_owned()] } else { names }
}

fn is_skill_file(path: &str) -> bool {
    file_name(path).eq_ignore_ascii_case("SKILL.md")
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn file_stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    let path = path.to_ascii_lowercase();
    endings.iter().any(|ending| path.ends_with(ending))
}
