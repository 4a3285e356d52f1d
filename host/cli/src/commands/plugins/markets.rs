//! `belljar marketplaces`: lists of plugins that the operator added.

use std::path::Path;

use belljar_definition::Slug;
use belljar_definition::plugin::{
    EntrySource, MARKET_FILES, MarketManifest, PluginTree, RevisionPin,
};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use super::named::known_market;
use crate::args::server::TenantArg;
use crate::commands::libraries::raise_wall;
use crate::libraries::{
    CollectScope, GatheredFile, KnownMarket, LibraryLock, LibraryShelf, LibrarySource,
    SourceFetcher, is_reserved, read_market,
};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, format_quantity, plain_cell};

/// Findings about entries that are shown one by one.
const MAX_FINDINGS: usize = 5;

/// Adds a marketplace: its list is copied, and stays as it is until an update.
pub(super) fn add_market(
    path: &Path,
    rev: Option<&str>,
    of: &TenantArg,
    places: &HomePaths,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let source = LibrarySource::from_typed(path, rev)?;
    drop(LibraryShelf::open_locked(places)?);
    let read = read_list(&source, places, fetcher, walls)?;
    let slug = read.market.slug.clone();
    let mut shelf = LibraryShelf::open_locked(places)?;
    if is_reserved(slug.as_str()) {
        return Err(Failure::usage(format!(
            "`{slug}` is belljar's own word, and no marketplace's name"
        )));
    }
    // INV-638: a marketplace that takes the name of a known one gets neither its plugins nor their grants.
    if let Some(known) = shelf.lock.markets.get(&slug) {
        let update = of.format_command(&format!("belljar marketplaces update {slug}"));
        return Err(Failure::usage(format!(
            "there is a marketplace `{slug}` already, from {}",
            known.source
        ))
        .with_hint(format!("`{update}` reads it again")));
    }
    let strangers = shelf.lock.plugins.iter().find(|(key, plugin)| {
        key.market.as_ref() == Some(&slug) && plugin.source.origin() != source.origin()
    });
    if let Some((key, plugin)) = strangers {
        return Err(Failure::usage(format!(
            "plugin `{key}` is from another marketplace of that name, at {}",
            plugin.source
        ))
        .with_hint("remove it first"));
    }
    put_market(&mut shelf, &source, &read)?;
    print_list("added", &read.market, out);
    let search = of.format_command("belljar plugins search WORDS");
    out.note(format_args!("no plugin is installed by this; `{search}` finds some"));
    Ok(CommandExit::Completed)
}

/// A marketplace's list, as its source has it now.
struct ReadList {
    market: MarketManifest,
    file: GatheredFile,
    revision: Option<String>,
}

fn read_list(
    source: &LibrarySource,
    places: &HomePaths,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
) -> Result<ReadList, Failure> {
    let prepared = source.prepare_source(fetcher, CollectScope::Everything)?;
    let revision = prepared.revision.clone();
    raise_wall(places, &prepared, walls)?;
    let collected = prepared.collect_files()?;
    let found = MARKET_FILES
        .iter()
        .find_map(|path| collected.files.iter().find(|file| file.path == *path).cloned());
    let Some(file) = found else {
        return Err(Failure::usage(format!("there is no `{}` in {source}", MARKET_FILES[0]))
            .with_hint(
                "`belljar plugins add` takes a single plugin, `belljar agents add` agents",
            ));
    };
    let tree = PluginTree::from_files([(file.path.clone(), file.bytes.clone())]);
    let market = MarketManifest::read(&tree)
        .map_err(|found| Failure::from_diagnostics("the marketplace cannot be used", found))?;
    Ok(ReadList { market, file, revision })
}

fn put_market(
    shelf: &mut LibraryShelf,
    source: &LibrarySource,
    read: &ReadList,
) -> Result<(), Failure> {
    let slug = read.market.slug.clone();
    let path = "marketplace.json".to_owned();
    let kept = GatheredFile { path, bytes: read.file.bytes.clone() };
    shelf.install_files(&format!("market-{slug}"), &[kept], |lock, directory, files| {
        let (source, revision) = (source.clone(), read.revision.clone());
        lock.markets.insert(slug, KnownMarket { directory, source, revision, files });
    })
}

fn print_list(word: &str, market: &MarketManifest, out: &TerminalOutput) {
    let word = out.paint(TextStyle::Green, word);
    let number = format_quantity(market.entries.len() as u64, "plugin");
    let owner = match market.owner.as_str() {
        "" => String::new(),
        owner => format!(" of {}", ShownText::clip_line(owner, 80)),
    };
    out.print_line(format_args!("{word} marketplace `{}`{owner}: {number}", market.slug));
    let unusable: Vec<_> = market.entries.values().filter(|entry| entry.source.is_err()).collect();
    for entry in unusable.iter().take(MAX_FINDINGS) {
        if let Err(why) = &entry.source {
            out.print_line(format_args!("  `{}` cannot be added: {why}", entry.manifest.slug));
        }
    }
    for found in market.diagnostics.iter().take(MAX_FINDINGS) {
        out.print_line(format_args!("  {}", found.message));
    }
    let more = unusable.len().saturating_sub(MAX_FINDINGS)
        + market.diagnostics.len().saturating_sub(MAX_FINDINGS);
    if more > 0 {
        out.print_line(format_args!("  and {more} more entries that cannot be used"));
    }
}

/// Lists the known marketplaces.
pub(super) fn list_markets(
    json: bool,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let rows: Vec<(&Slug, &KnownMarket, Result<MarketManifest, Failure>)> = lock
        .markets
        .iter()
        .map(|(slug, known)| (slug, known, read_market(known, places)))
        .collect();
    let whole = rows.iter().all(|(_, _, read)| read.is_ok());
    let exit = if whole { CommandExit::Completed } else { CommandExit::Usage };
    if json {
        let rows = rows.iter().map(|(slug, known, read)| {
            json!({
                "marketplace": slug.as_str(),
                "source": known.source,
                "revision": known.revision,
                "plugins": read.as_ref().map_or(0, |market| market.entries.len()),
                "usable": read.is_ok(),
            })
        });
        out.print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(exit);
    }
    if rows.is_empty() {
        let add = of.format_command("belljar marketplaces add SOURCE");
        out.note(format_args!("no marketplace is known; `{add}` adds one"));
        return Ok(exit);
    }
    let mut table = TextTable::new(out, &["marketplace", ">plugins", "revision", "source"]);
    for (slug, known, read) in &rows {
        let number = match read {
            Ok(market) => market.entries.len().to_string(),
            Err(_) => "changed on disk".to_owned(),
        };
        table.push_row([
            plain_cell(slug),
            plain_cell(number),
            plain_cell(ShownText::clip_line(known.revision.as_deref().unwrap_or("-"), 12)),
            plain_cell(&known.source),
        ]);
    }
    table.print_to(out);
    Ok(exit)
}

/// Reads a marketplace's list again, and says what it lists more and less.
pub(super) fn update_market(
    name: &str,
    of: &TenantArg,
    places: &HomePaths,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let lock = LibraryShelf::open_locked(places)?.lock;
    let slug = known_market(name, of, &lock)?;
    let Some(known) = lock.markets.get(&slug) else {
        return Err(Failure::new(format!("marketplace `{slug}` is gone")));
    };
    let before = read_market(known, places).ok();
    let read = read_list(&known.source, places, fetcher, walls)?;
    if read.market.slug != slug {
        return Err(Failure::usage(format!(
            "the marketplace calls itself `{}` now",
            read.market.slug
        ))
        .with_hint("remove it and add it again, if that is what you want"));
    }
    let mut shelf =
        LibraryShelf::open_unchanged(places, &format!("marketplace `{slug}`"), |now| {
            now.markets.get(&slug) == Some(known)
        })?;
    put_market(&mut shelf, &known.source, &read)?;
    print_list("updated", &read.market, out);
    let old = before.map(|market| market.entries).unwrap_or_default();
    let names =
        |slugs: Vec<&Slug>| slugs.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    let added: Vec<&Slug> =
        read.market.entries.keys().filter(|it| !old.contains_key(*it)).collect();
    let gone: Vec<&Slug> = old.keys().filter(|it| !read.market.entries.contains_key(*it)).collect();
    if !added.is_empty() {
        out.print_line(format_args!("+ {}", ShownText::clip_line(&names(added), 300)));
    }
    if !gone.is_empty() {
        out.print_line(format_args!("- {}", ShownText::clip_line(&names(gone), 300)));
    }
    // A plugin that is taken from elsewhere is another one.
    let moved = read.market.entries.iter().filter(|(slug, entry)| {
        old.get(*slug).is_some_and(|was| place_of(&was.source) != place_of(&entry.source))
    });
    let moved: Vec<&Slug> = moved.map(|(slug, _)| slug).collect();
    if !moved.is_empty() {
        let moved = names(moved);
        out.print_line(format_args!("~ other source: {}", ShownText::clip_line(&moved, 300)));
    }
    Ok(CommandExit::Completed)
}

/// The place of an entry's plugin without its version; `None` = it has no usable source.
fn place_of<E>(source: &Result<EntrySource, E>) -> Option<EntrySource> {
    Some(match source.as_ref().ok()?.clone() {
        EntrySource::Git { url, folder, pin: _ } => {
            EntrySource::Git { url, folder, pin: RevisionPin::default() }
        }
        EntrySource::Npm { package, version: _, registry } => {
            EntrySource::Npm { package, version: None, registry }
        }
        EntrySource::Archive { url, sha256: _ } => EntrySource::Archive { url, sha256: None },
        folder @ EntrySource::Folder(_) => folder,
    })
}

/// Forgets a marketplace.
pub(super) fn remove_market(
    name: &str,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut shelf = LibraryShelf::open_locked(places)?;
    let slug = known_market(name, of, &shelf.lock)?;
    shelf.change_lock(|lock| drop(lock.markets.remove(&slug)))?;
    out.print_line(format_args!("{} marketplace `{slug}`", out.paint(TextStyle::Green, "removed")));
    let left = shelf.lock.plugins.keys().filter(|key| key.market.as_ref() == Some(&slug)).count();
    if left > 0 {
        out.note(format_args!("{} of it stay installed", format_quantity(left as u64, "plugin")));
    }
    Ok(CommandExit::Completed)
}
