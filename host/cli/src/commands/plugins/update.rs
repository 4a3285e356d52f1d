//! `belljar plugins update`.

use belljar_definition::plugin::MarketManifest;
use serde_json::json;

use super::add::{missing_plugins, put_plugin};
use super::difference::PluginDifference;
use super::named::{self, ListedPlugin, WantedPlugin};
use super::report;
use super::vetting;
use crate::args::server::TenantArg;
use crate::commands::libraries::raise_wall;
use crate::libraries::{
    InstalledPlugin, LibraryLock, LibraryShelf, PluginKey, PluginSource, SourceFetcher,
    read_installed,
};
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    name: &str,
    (yes, json): (bool, bool),
    of: &TenantArg,
    whose: &AgentOwner,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let places = &whose.places;
    let lock = LibraryShelf::open_locked(places)?.lock;
    let key = named::installed_key(name, of, &lock)?;
    let installed = named::installed_plugin(&key, &lock)?;
    let wanted = wanted_again(&key, &installed, of, &lock, places)?;
    let stays = |failure: Failure| {
        failure
            .with_hint(format!("plugin `{key}` stays as it is; it came from {}", installed.source))
    };
    let prepared = wanted.source.prepare(fetcher).map_err(stays)?;
    let revision = prepared.prepared.revision.clone();
    raise_wall(places, &prepared.prepared, walls)?;

    let files = prepared.read_files().map_err(stays)?;
    let host = whose.build_host(out)?;
    let (old_files, old_entry) = read_installed(&installed, places);
    let whole = old_files.left_out.is_empty();
    let market = key.market.as_ref();
    let folder = wanted.folder_name();
    let old = vetting::vet_plugin(&host, places, (market, old_entry.as_ref()), &folder, old_files)?;
    let entry = wanted.listed.as_ref().map(|it| &it.entry);
    let new = vetting::vet_plugin(&host, places, (market, entry), &folder, files).map_err(stays)?;
    if new.key != key {
        return Err(stays(Failure::usage(format!("the plugin calls itself `{}` now", new.key))));
    }
    let mut difference = PluginDifference::compare(&old, &new);
    let (from, to) = (&installed.source, &wanted.source.source);
    difference.note_source(from, to);
    let granted = new.list_new_grantees(&old);
    let nothing = difference.lines.is_empty() && whole;
    let apply = || {
        let mut shelf = LibraryShelf::open_unchanged(places, &format!("plugin `{key}`"), |now| {
            let market_of =
                |lock: &LibraryLock| market.and_then(|it| lock.markets.get(it)).cloned();
            now.plugins.get(&key) == Some(&installed) && market_of(now) == market_of(&lock)
        })?;
        put_plugin(&mut shelf, &new, &wanted, revision.clone(), installed.enabled)
    };
    if json {
        if yes && !nothing {
            apply()?;
        }
        out.print_json(&json!({
            "plugin": key.to_string(),
            "from_source": from,
            "source": to,
            "from_version": old.manifest.version,
            "version": new.manifest.version,
            "from_revision": installed.revision,
            "revision": revision,
            "restored": !whole,
            "applied": yes && !nothing,
            "differences": difference.lines,
            "newly_granted": granted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
        return Ok(CommandExit::Completed);
    }
    if nothing {
        out.print_line(format_args!("nothing changed in plugin `{key}`"));
        return Ok(CommandExit::Completed);
    }
    let missing = missing_plugins(&new, wanted.listed.as_ref().map(|it| &it.market), of, &lock);
    report::print_head(&new, &wanted.describe(), revision.as_deref(), out);
    difference.print_to(out);
    if !whole {
        out.print_line("files that were changed or removed here are put right");
    }
    report::print_needs(&new, &missing, out);
    report::print_doubts(&new, Some(&old), out);
    report::warn_of_grants(&granted, out);
    if !ask_agreement("apply this update?", yes, "changed", out)? {
        return Ok(CommandExit::Cancelled);
    }
    apply()?;
    out.print_line(format_args!("{} plugin `{key}`", out.paint(TextStyle::Green, "updated")));
    Ok(CommandExit::Completed)
}

/// The source from which an installed plugin is updated: the one that its marketplace lists now. Without a
/// marketplace, or if it was forgotten, the source of the installation.
fn wanted_again(
    key: &PluginKey,
    installed: &InstalledPlugin,
    of: &TenantArg,
    lock: &LibraryLock,
    places: &HomePaths,
) -> Result<WantedPlugin, Failure> {
    let known = key.market.as_ref().filter(|market| lock.markets.contains_key(*market));
    if let Some(market) = known {
        let name = format!("{}@{market}", key.plugin);
        return named::find_wanted(&name, (None, None), of, lock, places);
    }
    let source = PluginSource {
        source: installed.source.clone(),
        folder: installed.folder.clone(),
        sha: None,
    };
    // Of a marketplace that was forgotten, the entry as it was.
    let listed = match (&key.market, read_installed(installed, places).1) {
        (Some(market), Some(entry)) => {
            let market = MarketManifest::for_entry(market.clone(), &entry);
            Some(ListedPlugin { market, entry, renamed: None })
        }
        _ => None,
    };
    Ok(WantedPlugin { source, listed })
}
