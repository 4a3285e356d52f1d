//! The plugin that a person names, and its source.

use std::path::Path;

use belljar_definition::Slug;
use belljar_definition::plugin::{EntrySource, MarketEntry, MarketManifest, PluginPath};
use belljar_policy::ShownText;

use crate::args::server::TenantArg;
use crate::libraries::{
    InstalledPlugin, KnownMarket, LibraryLock, LibrarySource, PluginKey, PluginSource, read_market,
};
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;

/// A plugin that is to be read from its source.
pub(super) struct WantedPlugin {
    pub(super) source: PluginSource,
    /// The marketplace that lists it.
    pub(super) listed: Option<ListedPlugin>,
}

/// A plugin of a marketplace.
pub(super) struct ListedPlugin {
    pub(super) market: MarketManifest,
    pub(super) entry: MarketEntry,
    /// The name that the marketplace has given it since, if a person named an old one.
    pub(super) renamed: Option<String>,
}

/// Whether a text names a place, not a plugin of a marketplace. The files of the current directory decide
/// nothing: `pilot` is never the folder `./pilot`.
fn is_place(text: &str) -> bool {
    text.starts_with(['.', '/', '~']) || text.contains(['/', ':'])
}

/// `PLUGIN@MARKET` for `MARKET/PLUGIN` of a marketplace that is known or has installed plugins: such a name
/// is no repository of GitHub.
fn read_listed_name(text: &str, lock: &LibraryLock) -> Option<String> {
    let (market, plugin) = text.split_once('/')?;
    if text.contains(':') || plugin.contains('/') {
        return None;
    }
    let slug = Slug::from_written(market)?;
    let mut installed = lock.plugins.keys().filter_map(|key| key.market.as_ref());
    let is_market = lock.markets.contains_key(&slug) || installed.any(|it| *it == slug);
    is_market.then(|| format!("{plugin}@{slug}"))
}

/// The plugin that a person wants to add or look at.
pub(super) fn find_wanted(
    text: &str,
    (folder, rev): (Option<&str>, Option<&str>),
    of: &TenantArg,
    lock: &LibraryLock,
    places: &HomePaths,
) -> Result<WantedPlugin, Failure> {
    let listed_name = read_listed_name(text, lock);
    let text = listed_name.as_deref().unwrap_or(text);
    if is_place(text) {
        let source = LibrarySource::from_typed(Path::new(text), rev)?;
        let folder = PluginPath::parse(folder.unwrap_or_default())
            .map_err(|why| Failure::usage(format!("`--folder` {why}")))?;
        let (source, folder) = source.below_folder(folder.as_str());
        let source = PluginSource { source, folder, sha: None };
        return Ok(WantedPlugin { source, listed: None });
    }
    if folder.is_some() || rev.is_some() {
        return Err(Failure::usage(
            "`--folder` and `--rev` are for a plugin that is named by its place",
        )
        .with_hint("the marketplace decides where its plugins are"));
    }
    let (known, listed) = find_listed(text, of, lock, places)?;
    let source = entry_source(&listed, known)?;
    Ok(WantedPlugin { source, listed: Some(listed) })
}

/// The plugin of a known marketplace with this name, `NAME` or `NAME@MARKET`.
fn find_listed<'a>(
    text: &str,
    of: &TenantArg,
    lock: &'a LibraryLock,
    places: &HomePaths,
) -> Result<(&'a KnownMarket, ListedPlugin), Failure> {
    let (name, market) = match text.split_once('@') {
        Some((name, market)) => (name, Some(known_market(market, of, lock)?)),
        None => (text, None),
    };
    if lock.markets.is_empty() {
        let add = of.format_command("belljar marketplaces add SOURCE");
        return Err(
            Failure::usage("no marketplace is known").with_hint(format!("`{add}` adds one"))
        );
    }
    let markets =
        lock.markets.iter().filter(|(slug, _)| market.as_ref().is_none_or(|it| it == *slug));
    let mut found: Vec<(&KnownMarket, ListedPlugin)> = Vec::new();
    let mut misses = Vec::new();
    for (slug, known) in markets {
        let read = read_market(known, places)
            .map_err(|failure| failure.with_hint(format!("it is marketplace `{slug}`")))?;
        match read.find_entry(name) {
            Ok((entry, renamed)) => {
                let entry = entry.clone();
                found.push((known, ListedPlugin { market: read, entry, renamed }));
            }
            Err(why) => misses.push(why),
        }
    }
    if found.len() > 1 {
        let names =
            found.iter().map(|(_, it)| format!("`{}@{}`", it.entry.manifest.slug, it.market.slug));
        let names = names.collect::<Vec<_>>().join(", ");
        let shown = ShownText::clip_line(name, 80);
        return Err(Failure::usage(format!("several marketplaces have a plugin `{shown}`"))
            .with_hint(format!("write one of {names}")));
    }
    found.pop().ok_or_else(|| Failure::usage(misses.join("; ")))
}

/// The name of a known marketplace.
pub(super) fn known_market(
    name: &str,
    of: &TenantArg,
    lock: &LibraryLock,
) -> Result<Slug, Failure> {
    let found = Slug::from_written(name).filter(|slug| lock.markets.contains_key(slug));
    found.ok_or_else(|| {
        let names: Vec<&str> = lock.markets.keys().map(Slug::as_str).collect();
        let hint = match names.as_slice() {
            [] => format!(
                "none is; `{}` adds one",
                of.format_command("belljar marketplaces add SOURCE")
            ),
            names => format!("known: `{}`", names.join("`, `")),
        };
        let name = ShownText::clip_line(name, 80);
        Failure::usage(format!("no marketplace is called `{name}`")).with_hint(hint)
    })
}

/// The source of a marketplace's plugin.
fn entry_source(listed: &ListedPlugin, known: &KnownMarket) -> Result<PluginSource, Failure> {
    let name = &listed.entry.manifest.slug;
    match &listed.entry.source {
        Err(why) => Err(Failure::usage(format!("plugin `{name}` cannot be added: {why}"))),
        Ok(EntrySource::Folder(path)) => {
            // The list was read at this commit, and its plugins are taken from there.
            let sha = known.revision.clone();
            let source = known.source.clone().at_commit(sha.as_deref());
            let (source, folder) = source.below_folder(path.as_str());
            Ok(PluginSource { source, folder, sha })
        }
        Ok(EntrySource::Git { url, folder, pin }) => {
            let rev = pin.revision().map(str::to_owned);
            let source = LibrarySource::Repository { url: url.clone(), rev, folder: None };
            let source = source.refuse_own_machine()?;
            let (source, folder) = source.below_folder(folder.as_str());
            Ok(PluginSource { source, folder, sha: pin.sha.clone() })
        }
        Ok(EntrySource::Npm { registry: Some(registry), .. }) => {
            let registry = ShownText::clip_line(registry, 200);
            Err(Failure::usage(format!("plugin `{name}` is in another registry: {registry}"))
                .with_hint("packages are taken from the registry of your npm configuration only"))
        }
        Ok(EntrySource::Npm { package, version, registry: None }) => {
            let (package, version) = (package.clone(), version.clone());
            let source = LibrarySource::Npm { package, version };
            Ok(PluginSource { source, folder: String::new(), sha: None })
        }
        Ok(EntrySource::Archive { url, sha256 }) => {
            let source = LibrarySource::Download { url: url.clone() }.refuse_own_machine()?;
            Ok(PluginSource { source, folder: String::new(), sha: sha256.clone() })
        }
    }
}

/// The key of an installed plugin: `NAME`, `NAME@MARKET` or `MARKET/NAME`.
pub(super) fn installed_key(
    text: &str,
    of: &TenantArg,
    lock: &LibraryLock,
) -> Result<PluginKey, Failure> {
    let (name, market) = match (text.split_once('@'), text.split_once('/')) {
        (Some((name, market)), _) => (name, Some(market)),
        (None, Some((market, name))) => (name, Some(market)),
        (None, None) => (text, None),
    };
    let slug = Slug::from_written(name);
    let is_meant = |key: &&PluginKey| {
        // An unfit name of a marketplace means none, not a plugin without one.
        let in_market = market.is_none_or(|market| {
            let market = Slug::from_written(market);
            market.is_some() && key.market == market
        });
        slug.as_ref() == Some(&key.plugin) && in_market
    };
    let found: Vec<&PluginKey> = lock.plugins.keys().filter(is_meant).collect();
    let shown = ShownText::clip_line(text, 160);
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let names: Vec<String> = lock.plugins.keys().map(|key| format!("`{key}`")).collect();
            let hint = match names.as_slice() {
                [] => format!(
                    "none is; `{}` adds one",
                    of.format_command("belljar plugins add PLUGIN")
                ),
                names => format!("installed: {}", names.join(", ")),
            };
            Err(Failure::usage(format!("no plugin is called `{shown}`")).with_hint(hint))
        }
        several => {
            let names: Vec<String> = several.iter().map(|key| format!("`{key}`")).collect();
            Err(Failure::usage(format!("several plugins are called `{shown}`"))
                .with_hint(format!("write one of {}", names.join(", "))))
        }
    }
}

/// The installed plugin of a key that was just found.
pub(super) fn installed_plugin(
    key: &PluginKey,
    lock: &LibraryLock,
) -> Result<InstalledPlugin, Failure> {
    let found = lock.plugins.get(key).cloned();
    found.ok_or_else(|| Failure::new(format!("plugin `{key}` is gone")))
}
