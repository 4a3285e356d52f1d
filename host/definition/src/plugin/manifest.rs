//! The manifest of a plugin: who it is, and where its parts are.

use std::collections::BTreeMap;
use std::path::Path;

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use super::fields::{self, MAX_ITEMS, ManifestFields, PathsField};
use super::format::{self, PluginFormat};
use super::parts::{self, PART_ROWS, PartKind, PathRule};
use super::path::PluginPath;
use super::tree::PluginTree;
use super::{agent_plugins, options};
use crate::Slug;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition};
use crate::plugin::options::ConfigOption;

/// The longest name of a plugin or a marketplace.
pub(super) const MAX_NAME: usize = 64;

/// What a manifest says about a plugin, with the entry of its marketplace.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginManifest {
    /// The format.
    pub format: PluginFormat,
    /// The name as written, for `PLUGIN:skill`.
    pub name: String,
    /// The name in ids: `library/MARKET/PLUGIN/agent`.
    pub slug: Slug,
    /// The version as written.
    pub version: Option<String>,
    /// The description; may be empty.
    pub description: String,
    /// The author's name as written.
    pub author: Option<String>,
    /// The licence as written.
    pub license: Option<String>,
    /// Words for a search.
    pub keywords: Vec<String>,
    /// Whether the author wants the plugin in use after its installation.
    pub default_enabled: bool,
    /// The settings that the plugin asks a person for.
    pub options: Vec<ConfigOption>,
    /// The plugins that this one needs.
    pub dependencies: Vec<PluginDependency>,
    /// The keys that have no meaning here, escaped.
    pub unknown_keys: Vec<String>,
    pub(super) places: BTreeMap<PartKind, PartPlaces>,
}

/// A plugin that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDependency {
    /// The name as written.
    pub name: String,
    /// The versions that do, as written.
    pub version: Option<String>,
    /// The marketplace; `None` = that of the plugin.
    pub market: Option<String>,
}

/// Where the parts of one kind are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PartPlaces {
    pub(super) paths: Vec<PluginPath>,
    /// Paths that the manifest names: a missing one is reported.
    pub(super) stated: Vec<PluginPath>,
    pub(super) inline: Vec<Map<String, Value>>,
}

/// A manifest with its findings. Without a manifest there is at least one error.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestReading {
    /// The manifest, unless it is unusable.
    pub manifest: Option<PluginManifest>,
    /// The findings.
    pub diagnostics: Vec<Diagnostic>,
}

impl PluginManifest {
    /// Reads the manifest of a plugin. `folder` is the name of its folder, for a plugin without a manifest.
    /// INV-631: an unusable manifest is an error, and nothing of its plugin is used.
    pub fn read(tree: &PluginTree, folder: &str) -> ManifestReading {
        let Some((path, format)) = format::find_manifest(tree) else {
            let mut findings = FileFindings::new(Path::new("plugin.json"));
            let at = FilePosition::default();
            findings.note(at, "no-manifest", "there is no manifest; the folder's name serves");
            let manifest = Self::named(folder, PluginFormat::ClaudeCode, &mut findings);
            let manifest = manifest.map(|it| it.with_default_places(&PluginFormat::ClaudeCode));
            return ManifestReading::from_findings(manifest, findings);
        };
        let mut findings = FileFindings::new(Path::new(path));
        let bytes = tree.read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        let manifest = fields::parse_object(bytes, &mut findings).and_then(|map| {
            let fields = ManifestFields::new(&text, map, &mut findings);
            match format {
                PluginFormat::AgentPlugins => agent_plugins::read_manifest(fields),
                _ => read_manifest(fields, format),
            }
        });
        ManifestReading::from_findings(manifest, findings)
    }

    /// A manifest with a name alone.
    pub(super) fn named(
        name: &str,
        format: PluginFormat,
        findings: &mut FileFindings<'_>,
    ) -> Option<Self> {
        let slug = match parse_name(name) {
            Ok(slug) => slug,
            Err(why) => {
                let shown = ShownText::clip_line(name, 80);
                let message = format!("`{shown}` is no name for a plugin: it {why}");
                let hint = "a name is letters and digits joined by `-`";
                findings.error_hint(FilePosition::default(), "bad-name", message, hint);
                return None;
            }
        };
        Some(Self {
            format,
            name: name.to_owned(),
            slug,
            version: None,
            description: String::new(),
            author: None,
            license: None,
            keywords: Vec::new(),
            default_enabled: true,
            options: Vec::new(),
            dependencies: Vec::new(),
            unknown_keys: Vec::new(),
            places: BTreeMap::new(),
        })
    }

    /// The places of the kinds that the manifest does not mention.
    pub(super) fn with_default_places(mut self, format: &PluginFormat) -> Self {
        for row in PART_ROWS {
            self.places.entry(row.kind).or_insert_with(|| PartPlaces::defaults(row, *format));
        }
        self
    }

    pub(super) fn places_of(&self, kind: PartKind) -> PartPlaces {
        self.places.get(&kind).cloned().unwrap_or_default()
    }

    /// The same plugin with a marketplace's entry, which adds keys to the manifest.
    #[must_use]
    pub(super) fn merge_entry(mut self, entry: &Self) -> Self {
        let Self { version, description, author, license, keywords, options, .. } = entry;
        self.version = self.version.or_else(|| version.clone());
        if self.description.is_empty() {
            self.description.clone_from(description);
        }
        self.author = self.author.or_else(|| author.clone());
        self.license = self.license.or_else(|| license.clone());
        if self.keywords.is_empty() {
            self.keywords.clone_from(keywords);
        }
        if self.options.is_empty() {
            self.options.clone_from(options);
        }
        for needed in &entry.dependencies {
            if !self.dependencies.contains(needed) {
                self.dependencies.push(needed.clone());
            }
        }
        for (kind, places) in &entry.places {
            let own = self.places.entry(*kind).or_default();
            for path in &places.stated {
                if !own.paths.contains(path) {
                    own.paths.push(path.clone());
                }
                own.stated.push(path.clone());
            }
            own.inline.extend(places.inline.iter().cloned());
        }
        self
    }
}

impl PartPlaces {
    fn defaults(row: &parts::PartRow, format: PluginFormat) -> Self {
        let paths = parts::default_paths(row, format).iter();
        Self {
            paths: paths.filter_map(|path| PluginPath::parse(path).ok()).collect(),
            ..Self::default()
        }
    }
}

impl ManifestReading {
    pub(super) fn from_findings(
        manifest: Option<PluginManifest>,
        findings: FileFindings<'_>,
    ) -> Self {
        let manifest = manifest.filter(|_| !findings.has_errors());
        Self { manifest, diagnostics: findings.into_diagnostics() }
    }
}

/// The slug of a plugin's or marketplace's name. INV-632: only ASCII letters and digits with `.`, `_` and
/// `-`, so that no name looks like another one in another script, is a path, or has an `:` of its own.
///
/// # Errors
///
/// The reason, to stand behind "it".
pub(super) fn parse_name(name: &str) -> Result<Slug, &'static str> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err("is empty or longer than 64 characters");
    }
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(is_fit) {
        return Err("has other characters than letters, digits, `.`, `_` and `-`");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !name.ends_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Err("begins or ends with a sign");
    }
    Slug::from_name(name).ok_or("has no letter or digit")
}

/// Reads a manifest of Claude Code or of a program like it. A wrong type of a known key is an error; an
/// unknown key is a note.
fn read_manifest(
    mut fields: ManifestFields<'_, '_>,
    format: PluginFormat,
) -> Option<PluginManifest> {
    let Some(name) = fields.take_text("name") else {
        fields.error("name", "missing-name", "it has no `name`".to_owned());
        return None;
    };
    let manifest = PluginManifest::named(&name, format, fields.findings)?;
    let manifest = read_keys(manifest, &mut fields, format, Entry::No);
    Some(manifest.with_default_places(&format))
}

/// Whether the keys are those of a marketplace's entry: an entry has no default places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Yes,
    No,
}

/// Reads all keys but the name.
pub(super) fn read_keys(
    mut manifest: PluginManifest,
    fields: &mut ManifestFields<'_, '_>,
    format: PluginFormat,
    entry: Entry,
) -> PluginManifest {
    manifest.version = fields.take_text("version");
    manifest.description = fields.take_text("description").unwrap_or_default();
    manifest.author = read_author(fields);
    manifest.license = fields.take_text("license");
    manifest.keywords = fields.take_texts("keywords");
    manifest.default_enabled = fields.take_flag("defaultEnabled").unwrap_or(true);
    manifest.options = options::read_options(fields);
    manifest.dependencies = read_dependencies(fields);
    for row in PART_ROWS.iter().filter(|row| !row.key.is_empty()) {
        let Some(PathsField { paths, inline }) = fields.take_paths(row.key, row.inline) else {
            continue;
        };
        let defaults = match (row.rule, entry) {
            (PathRule::Add, Entry::No) => PartPlaces::defaults(row, format).paths,
            (PathRule::Add, Entry::Yes) | (PathRule::Replace, _) => Vec::new(),
        };
        let mut all = defaults;
        all.extend(paths.iter().filter(|path| !all.contains(path)).cloned().collect::<Vec<_>>());
        // An object in the place of hooks or servers replaces no file.
        manifest.places.insert(row.kind, PartPlaces { paths: all, stated: paths, inline });
    }
    read_other_programs_keys(&mut manifest, fields);
    for known in
        ["$schema", "displayName", "homepage", "repository", "metadata", "interface", "logo"]
    {
        fields.take(known);
    }
    manifest.unknown_keys = fields.unread_keys();
    manifest
}

/// Keys that mean something in one program only.
fn read_other_programs_keys(manifest: &mut PluginManifest, fields: &mut ManifestFields<'_, '_>) {
    // The texts that Gemini joins to every session; a list of names, or one.
    if let Some(PathsField { paths, .. }) = fields.take_paths("contextFileName", false) {
        let places = PartPlaces { stated: paths.clone(), paths, ..PartPlaces::default() };
        manifest.places.insert(PartKind::Contexts, places);
    }
    if let Some(Value::Array(channels)) = fields.take("channels") {
        let inline = channels.into_iter().filter_map(|it| match it {
            Value::Object(map) => Some(map),
            _ => None,
        });
        let places = manifest.places.entry(PartKind::Apps).or_default();
        places.inline.extend(inline.take(MAX_ITEMS));
    }
}

fn read_author(fields: &mut ManifestFields<'_, '_>) -> Option<String> {
    match fields.take("author")? {
        Value::String(name) => Some(name),
        Value::Object(map) => match map.get("name") {
            Some(Value::String(name)) => Some(name.clone()),
            None => None,
            Some(other) => {
                fields.report_type("author", other, "a name or an object with a `name`");
                None
            }
        },
        other => {
            fields.report_type("author", &other, "a name or an object with a `name`");
            None
        }
    }
}

/// A list of names and objects, or an object of names with versions.
fn read_dependencies(fields: &mut ManifestFields<'_, '_>) -> Vec<PluginDependency> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let from_item = |item: &Value| match item {
        Value::String(name) => {
            // `name@market`, as people type it.
            let (name, market) = match name.split_once('@') {
                Some((name, market)) => (name.to_owned(), Some(market.to_owned())),
                None => (name.clone(), None),
            };
            Some(PluginDependency { name, version: None, market })
        }
        Value::Object(map) => Some(PluginDependency {
            name: text(map.get("name"))?,
            version: text(map.get("version")),
            market: text(map.get("marketplace")),
        }),
        _ => None,
    };
    let found: Vec<Option<PluginDependency>> = match fields.take("dependencies") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items.iter().take(MAX_ITEMS).map(from_item).collect(),
        Some(Value::Object(map)) => map
            .iter()
            .take(MAX_ITEMS)
            .map(|(name, version)| {
                let (name, version) = (name.clone(), Some(version.as_str()?.to_owned()));
                Some(PluginDependency { name, version, market: None })
            })
            .collect(),
        Some(other) => {
            fields.report_type("dependencies", &other, "a list");
            return Vec::new();
        }
    };
    if found.iter().any(|it| it.as_ref().is_none_or(|it| parse_name(&it.name).is_err())) {
        let message = "`dependencies` has an item that names no plugin".to_owned();
        fields.error("dependencies", "bad-dependency", message);
    }
    found.into_iter().flatten().collect()
}
