//! A marketplace: a list of plugins with their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use super::entry::{self, EntrySource};
use super::fields::{self, ManifestFields};
use super::format::PluginFormat;
use super::manifest::{self, Entry, ManifestReading, PluginManifest};
use super::path::PluginPath;
use super::tree::PluginTree;
use crate::Slug;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition};

/// Where marketplaces are described, in order of preference.
pub const MARKET_FILES: &[&str] = &[
    ".claude-plugin/marketplace.json",
    "marketplace.json",
    ".plugin/marketplace.json",
    ".github/plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
    ".cursor-plugin/marketplace.json",
];

/// The most entries of a marketplace. The largest public one has some 300.
const MAX_ENTRIES: usize = 5_000;

/// A marketplace.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketManifest {
    /// The name as written.
    pub name: String,
    /// The name in ids: `library/MARKET/PLUGIN/agent`.
    pub slug: Slug,
    /// The owner's name; may be empty.
    pub owner: String,
    /// The description; may be empty.
    pub description: String,
    /// The usable entries by slug.
    pub entries: BTreeMap<Slug, MarketEntry>,
    /// New names of plugins; `None` = withdrawn.
    pub renames: BTreeMap<String, Option<String>>,
    /// The marketplaces from which dependencies may come besides.
    pub allowed_markets: BTreeSet<String>,
    /// The findings: entries that cannot be used, each with its reason.
    pub diagnostics: Vec<Diagnostic>,
}

/// A plugin in a marketplace.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketEntry {
    /// The keys of the entry: they complete the plugin's own manifest, or replace it.
    pub manifest: PluginManifest,
    /// The source, or the reason why it cannot be used.
    pub source: Result<EntrySource, String>,
    /// The category; may be empty.
    pub category: String,
    /// Words for a search.
    pub tags: Vec<String>,
    /// Whether the plugin's own manifest decides. `false` = the entry alone describes the plugin.
    pub strict: bool,
    /// The entry as JSON.
    text: String,
}

impl MarketManifest {
    /// Reads the marketplace that a tree describes.
    ///
    /// # Errors
    ///
    /// The findings, when there is no list or it has no usable name.
    pub fn read(tree: &PluginTree) -> Result<Self, Vec<Diagnostic>> {
        let found = MARKET_FILES.iter().find(|path| tree.has_file(path));
        let Some(path) = found else {
            let message = "there is no `.claude-plugin/marketplace.json`".to_owned();
            let here = Path::new(".claude-plugin/marketplace.json");
            return Err(vec![Diagnostic::for_file(here, "no-marketplace", message)]);
        };
        let mut findings = FileFindings::new(Path::new(path));
        let bytes = tree.read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes);
        let market = fields::parse_object(bytes, &mut findings)
            .and_then(|map| read_market(ManifestFields::new(&text, map, &mut findings), &text));
        let (failed, diagnostics) = (findings.has_errors(), findings.into_diagnostics());
        match market {
            Some(market) if !failed => Ok(Self { diagnostics, ..market }),
            Some(_) | None => Err(diagnostics),
        }
    }

    /// A marketplace with this entry alone, as JSON, to be kept beside the installed plugin.
    pub fn write_entry(&self, entry: &MarketEntry) -> String {
        let item: Value = serde_json::from_str(&entry.text).unwrap_or_default();
        serde_json::json!({ "name": self.name, "owner": { "name": self.owner }, "plugins": [item] })
            .to_string()
    }

    /// A marketplace with this entry alone.
    pub fn for_entry(slug: Slug, entry: &MarketEntry) -> Self {
        Self {
            name: slug.to_string(),
            owner: String::new(),
            description: String::new(),
            entries: BTreeMap::from([(entry.manifest.slug.clone(), entry.clone())]),
            renames: BTreeMap::new(),
            allowed_markets: BTreeSet::new(),
            diagnostics: Vec::new(),
            slug,
        }
    }

    /// The same marketplace without its entries.
    #[must_use]
    pub fn clone_head(&self) -> Self {
        Self {
            name: self.name.clone(),
            slug: self.slug.clone(),
            owner: self.owner.clone(),
            description: self.description.clone(),
            entries: BTreeMap::new(),
            renames: BTreeMap::new(),
            allowed_markets: BTreeSet::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Reads what [`MarketManifest::write_entry`] wrote.
    pub fn read_entry(bytes: &[u8]) -> Option<MarketEntry> {
        let file = MARKET_FILES.first().map(|path| ((*path).to_owned(), bytes.to_vec()));
        let market = Self::read(&PluginTree::from_files(file)).ok()?;
        market.entries.into_values().next()
    }

    /// The entry of this name, and the name that it was renamed to, if it was.
    ///
    /// # Errors
    ///
    /// Why there is none: unknown, or withdrawn.
    pub fn find_entry(&self, name: &str) -> Result<(&MarketEntry, Option<String>), String> {
        let shown = ShownText::clip_line(name, 80).to_string();
        let by_name =
            |name: &str| Slug::from_written(name).and_then(|slug| self.entries.get(&slug));
        if let Some(entry) = by_name(name) {
            return Ok((entry, None));
        }
        // INV-633: each rename is followed once, so a cycle of renames ends.
        let mut seen = BTreeSet::from([name.to_owned()]);
        let mut current = name.to_owned();
        while let Some(next) = self.renames.get(&current) {
            let Some(next) = next else {
                return Err(format!("`{shown}` was withdrawn from marketplace `{}`", self.slug));
            };
            if !seen.insert(next.clone()) {
                return Err(format!("`{shown}` was renamed in a circle"));
            }
            if let Some(entry) = by_name(next) {
                return Ok((entry, Some(next.clone())));
            }
            current.clone_from(next);
        }
        let names = self.entries.keys().map(Slug::as_str);
        let hint = crate::suggest::find_nearest(name, names);
        let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(format!("marketplace `{}` has no plugin `{shown}`{hint}", self.slug))
    }
}

impl MarketEntry {
    /// The manifest of the plugin in this tree, with the entry's keys: with `strict: false` the entry alone.
    pub fn read_manifest(&self, tree: &PluginTree) -> ManifestReading {
        if !self.strict {
            let own = PluginManifest::read(tree, &self.manifest.name);
            let states_parts = own.manifest.as_ref().is_some_and(|own| {
                own.places.values().any(|it| !it.stated.is_empty() || !it.inline.is_empty())
            });
            let states_here = !self.manifest.places.is_empty();
            let mut manifest = self.manifest.clone();
            let mut diagnostics = Vec::new();
            if states_parts && states_here {
                let message = "both the marketplace (`strict: false`) and the plugin's own manifest \
                               name its parts; the marketplace's count";
                let path = Path::new("plugin.json");
                let mut finding = Diagnostic::for_file(path, "two-manifests", message.to_owned());
                finding.severity = crate::Severity::Warning;
                diagnostics.push(finding);
            }
            if !states_here {
                manifest = manifest.with_default_places(&PluginFormat::ClaudeCode);
            }
            return ManifestReading { manifest: Some(manifest), diagnostics };
        }
        let mut reading = PluginManifest::read(tree, &self.manifest.name);
        reading.manifest = reading.manifest.map(|own| {
            let mut merged = own.merge_entry(&self.manifest);
            // The name in the marketplace is the one that a person chose.
            merged.name.clone_from(&self.manifest.name);
            merged.slug.clone_from(&self.manifest.slug);
            merged
        });
        reading
    }
}

fn read_market(mut fields: ManifestFields<'_, '_>, text: &str) -> Option<MarketManifest> {
    let name = fields.take_text("name").unwrap_or_default();
    let slug = match manifest::parse_name(&name) {
        Ok(slug) => slug,
        Err(why) => {
            fields.error("name", "bad-name", format!("the marketplace's `name` {why}"));
            return None;
        }
    };
    let owner = match fields.take("owner") {
        Some(Value::Object(owner)) => owner.get("name").and_then(Value::as_str).map(str::to_owned),
        Some(Value::String(owner)) => Some(owner),
        _ => None,
    };
    if owner.is_none() {
        fields.warning("owner", "no-owner", "it has no `owner` with a `name`".to_owned());
    }
    let metadata = fields.take_object("metadata").unwrap_or_default();
    let root = plugin_root(&mut fields, &metadata);
    let description = fields.take_text("description");
    let description = description
        .or_else(|| metadata.get("description").and_then(Value::as_str).map(str::to_owned))
        .unwrap_or_default();
    let renames = fields.take_object("renames").unwrap_or_default().into_iter();
    let renames = renames.map(|(old, new)| (old, new.as_str().map(str::to_owned))).collect();
    let allowed = fields.take_texts("allowCrossMarketplaceDependenciesOn");
    let entries = match fields.take("plugins") {
        Some(Value::Array(items)) => items,
        other => {
            let found = other.as_ref().map_or("missing", fields::name_type);
            fields.error("plugins", "bad-type", format!("`plugins` is {found}, not a list"));
            return None;
        }
    };
    if entries.len() > MAX_ENTRIES {
        let message =
            format!("it lists {} plugins, and at most {MAX_ENTRIES} are read", entries.len());
        fields.error("plugins", "too-many", message);
        return None;
    }
    let mut market = MarketManifest {
        name,
        slug,
        owner: owner.unwrap_or_default(),
        description,
        entries: BTreeMap::new(),
        renames,
        allowed_markets: allowed.into_iter().collect(),
        diagnostics: Vec::new(),
    };
    for item in entries {
        push_entry(item, text, &root, &mut market, fields.findings);
    }
    Some(market)
}

/// `metadata.pluginRoot`: the folder of the entries' relative paths.
fn plugin_root(fields: &mut ManifestFields<'_, '_>, metadata: &Map<String, Value>) -> PluginPath {
    let Some(written) = metadata.get("pluginRoot").and_then(Value::as_str) else {
        return PluginPath::default();
    };
    PluginPath::parse(written).unwrap_or_else(|why| {
        fields.error("pluginRoot", "bad-path", format!("`pluginRoot` {why}"));
        PluginPath::default()
    })
}

/// Adds one entry. A bad one is reported, and its siblings stay.
fn push_entry(
    item: Value,
    text: &str,
    root: &PluginPath,
    market: &mut MarketManifest,
    findings: &mut FileFindings<'_>,
) {
    let named = item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let whole = item.to_string();
    let shown = ShownText::clip_line(&named, 80).to_string();
    let at = text.find(&format!("\"name\": \"{named}\""));
    let at = at.map_or_else(FilePosition::default, |at| crate::diagnostic::place_of(text, at));
    let mut bad = |message: String| findings.warning(at, "bad-entry", message, None);
    let Value::Object(mut map) = item else {
        return bad("an item of `plugins` is no object, and is left out".to_owned());
    };
    let source = map.remove("source");
    let mut own = FileFindings::new(Path::new("entry"));
    map.remove("name");
    let mut fields = ManifestFields::new(text, map, &mut own);
    let Some(manifest) = PluginManifest::named(&named, PluginFormat::ClaudeCode, fields.findings)
    else {
        return bad(format!("entry `{shown}` is left out: its name is unfit"));
    };
    let strict = fields.take_flag("strict").unwrap_or(true);
    let tags = fields.take_texts("tags");
    let category = fields.take_text("category").unwrap_or_default();
    let withheld = fields.take_object("policy").is_some_and(|policy| {
        policy.get("installation").and_then(Value::as_str) == Some("NOT_AVAILABLE")
    });
    for known in ["relevance", "category"] {
        fields.take(known);
    }
    let manifest = manifest::read_keys(manifest, &mut fields, PluginFormat::ClaudeCode, Entry::Yes);
    if own.has_errors() {
        let why =
            own.into_diagnostics().into_iter().next().map(|it| it.message).unwrap_or_default();
        return bad(format!("entry `{shown}` is left out: {why}"));
    }
    let source = match withheld {
        true => Err("its marketplace says that it is not available".to_owned()),
        false => entry::read_source(source.as_ref(), root),
    };
    if market.entries.contains_key(&manifest.slug) {
        return bad(format!("entry `{shown}` is left out: another one has this name"));
    }
    let slug = manifest.slug.clone();
    market
        .entries
        .insert(slug, MarketEntry { manifest, source, category, tags, strict, text: whole });
}
