//! A plugin as if installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use belljar_agent::Host;
use belljar_definition::plugin::{
    ManifestReading, MarketEntry, PluginInventory, PluginManifest, PluginPart,
};
use belljar_definition::suspicion::{Suspicion, suspicions_of_text};
use belljar_definition::{
    CatalogItem as _, Diagnostic, FileRead, Grantee, Severity, SkillDefinition, Slug,
};
use belljar_policy::ShownText;

use crate::commands::libraries::{SourceAgent, vet_agents};
use crate::libraries::{GatheredFile, LeftOutFile, PluginFiles, PluginKey, is_file_of_skill};
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;

/// A plugin, parsed and checked.
pub(super) struct VettedPlugin {
    pub(super) key: PluginKey,
    pub(super) manifest: PluginManifest,
    pub(super) inventory: PluginInventory,
    /// Its agents under the present grants.
    pub(super) agents: Vec<SourceAgent>,
    /// Who of it has grants in `belljar.toml`: of an earlier plugin, or in advance.
    pub(super) grantees: Vec<Grantee>,
    /// Its skills that can be read.
    pub(super) skills: Vec<PluginText>,
    /// Its commands.
    pub(super) commands: Vec<PluginText>,
    /// Other texts in the folders of skills, which a model reads as well, if something in them is suspicious.
    pub(super) suspects: Vec<SuspectFile>,
    /// Files that are not taken, and parts that cannot be used.
    pub(super) left_out: Vec<LeftOutFile>,
    /// Findings about its manifest and its parts.
    pub(super) findings: Vec<Diagnostic>,
    pub(super) files: Vec<GatheredFile>,
}

/// A text of a plugin that reaches a model: a skill or a command.
pub(super) struct PluginText {
    /// The name in the plugin.
    pub(super) name: String,
    pub(super) path: String,
    pub(super) description: String,
    /// The whole file.
    pub(super) text: String,
    pub(super) suspicions: Vec<Suspicion>,
}

/// A file of a skill's folder with something suspicious.
pub(super) struct SuspectFile {
    pub(super) path: String,
    pub(super) suspicions: Vec<Suspicion>,
}

/// Parses a plugin's files. `market` is the marketplace that lists it, and `folder` the name of its folder.
pub(super) fn vet_plugin(
    host: &Host,
    places: &HomePaths,
    (market, entry): (Option<&Slug>, Option<&MarketEntry>),
    folder: &str,
    files: PluginFiles,
) -> Result<VettedPlugin, Failure> {
    let tree = files.to_tree();
    let reading = match entry {
        Some(entry) => entry.read_manifest(&tree),
        None => PluginManifest::read(&tree, folder),
    };
    let ManifestReading { manifest, diagnostics } = reading;
    let Some(manifest) = manifest else {
        let message = "the plugin cannot be used: its manifest is wrong";
        return Err(
            Failure::from_diagnostics(message, diagnostics).with_hint("nothing of it is installed")
        );
    };
    let inventory = PluginInventory::list(&tree, &manifest);
    let key = PluginKey { market: market.cloned(), plugin: manifest.slug.clone() };
    let PluginFiles { files, mut left_out } = files;
    let picked = |parts: &[PluginPart]| -> Vec<GatheredFile> {
        let is_part = |file: &&GatheredFile| parts.iter().any(|part| part.path == file.path);
        files.iter().filter(is_part).cloned().collect()
    };
    let scope = key.library_name().into_scope();
    let grantees = host.settings.grantees().filter(|it| it.is_of(&scope)).cloned().collect();
    let (agents, documents) =
        vet_agents(host, places, &scope, picked(&inventory.agents), &mut left_out);
    for path in documents {
        left_out
            .push(LeftOutFile { path, why: "it is no agent, for lack of frontmatter".to_owned() });
    }
    let mut skills = Vec::new();
    for part in &inventory.skills {
        let Some(bytes) = tree.read(&part.path) else { continue };
        match read_skill(part, bytes) {
            Ok(skill) => skills.push(skill),
            Err(why) => {
                let path = ShownText::new(&part.path).to_string();
                left_out.push(LeftOutFile { path, why });
            }
        }
    }
    let commands = inventory.commands.iter();
    let commands: Vec<PluginText> = commands
        .filter_map(|part| {
            Some(read_text(part, part.name.clone(), String::new(), tree.read(&part.path)?))
        })
        .collect();
    let own = agents.iter().map(|agent| agent.file.path.as_str());
    let own = own.chain(skills.iter().chain(&commands).map(|text| text.path.as_str()));
    let parts: BTreeSet<&str> = own.collect();
    let suspects = find_suspects(&files, &skills, &parts);
    let notable = |found: &Diagnostic| found.severity != Severity::Note;
    let findings = diagnostics.into_iter().chain(inventory.diagnostics.clone()).filter(notable);
    let findings = findings.collect();
    Ok(VettedPlugin {
        key,
        manifest,
        inventory,
        agents,
        grantees,
        skills,
        commands,
        suspects,
        left_out,
        findings,
        files,
    })
}

fn read_skill(part: &PluginPart, bytes: &[u8]) -> Result<PluginText, String> {
    match SkillDefinition::read_file(Path::new(&part.path), bytes, &()) {
        FileRead::Item { item, .. } => {
            let name = item.slug.to_string();
            Ok(read_text(part, name, item.description, bytes))
        }
        FileRead::Invalid { diagnostics } => {
            let first = diagnostics.iter().find(|found| found.severity == Severity::Error);
            Err(first.map_or_else(String::new, |it| format!("line {}: {}", it.line, it.message)))
        }
        FileRead::Other { .. } => Err("it is no skill, for lack of frontmatter".to_owned()),
    }
}

/// The suspicious texts in the folders of skills, beside the files of parts.
fn find_suspects(
    files: &[GatheredFile],
    skills: &[PluginText],
    parts: &BTreeSet<&str>,
) -> Vec<SuspectFile> {
    let belongs = |path: &str| {
        let mut skills = skills.iter().map(|skill| Path::new(&skill.path));
        skills.any(|skill| is_file_of_skill(Path::new(path), skill))
    };
    let mut suspects = Vec::new();
    for file in files.iter().filter(|file| !parts.contains(file.path.as_str())) {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        if belongs(&file.path) {
            let suspicions = suspicions_of_text(text);
            suspects.push(SuspectFile { path: file.path.clone(), suspicions });
        }
    }
    suspects.retain(|file| !file.suspicions.is_empty());
    suspects
}

fn read_text(part: &PluginPart, name: String, description: String, bytes: &[u8]) -> PluginText {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let suspicions = suspicions_of_text(&text);
    PluginText { name, path: part.path.clone(), description, text, suspicions }
}

impl VettedPlugin {
    /// The paths of the agents, the skills and the commands that can be used.
    pub(super) fn part_paths(&self) -> [Vec<PathBuf>; 3] {
        let texts = |texts: &[PluginText]| texts.iter().map(|it| PathBuf::from(&it.path)).collect();
        let agents = self.agents.iter().map(|agent| PathBuf::from(&agent.file.path)).collect();
        [agents, texts(&self.skills), texts(&self.commands)]
    }

    /// The grantees among the agents that an earlier version does not have.
    pub(super) fn list_new_grantees(&self, old: &Self) -> Vec<Grantee> {
        let is_new = |agent: &&SourceAgent| {
            old.agents.iter().all(|was| was.resolved.id != agent.resolved.id)
        };
        let added: Vec<&SourceAgent> = self.agents.iter().filter(is_new).collect();
        let gets = |to: &&Grantee| added.iter().any(|agent| to.covers_agent(&agent.resolved.id));
        self.grantees.iter().filter(gets).cloned().collect()
    }

    /// Whether there is nothing that belljar serves.
    pub(super) fn is_empty(&self) -> bool {
        self.agents.is_empty()
            && self.skills.is_empty()
            && self.commands.is_empty()
            && self.inventory.hooks.is_empty()
            && self.inventory.servers.is_empty()
    }

    /// All suspicions with their files.
    pub(super) fn suspicions(&self) -> impl Iterator<Item = (&str, &Suspicion)> {
        let agents = self
            .agents
            .iter()
            .flat_map(|agent| agent.suspicions.iter().map(|it| (agent.file.path.as_str(), it)));
        let texts = self.skills.iter().chain(&self.commands);
        let texts = texts.map(|text| (text.path.as_str(), &text.suspicions));
        let others = self.suspects.iter().map(|file| (file.path.as_str(), &file.suspicions));
        let texts = texts.chain(others);
        agents.chain(texts.flat_map(|(path, list)| list.iter().map(move |it| (path, it))))
    }

    /// The paths of files that an earlier version does not have with this content.
    pub(super) fn changed_paths(&self, old: &Self) -> BTreeSet<&str> {
        let before: BTreeMap<&str, &[u8]> =
            old.files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice())).collect();
        let files = self.files.iter();
        let changed = files.filter(|it| before.get(it.path.as_str()) != Some(&it.bytes.as_slice()));
        changed.map(|file| file.path.as_str()).collect()
    }
}
