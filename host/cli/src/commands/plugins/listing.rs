//! `belljar plugins list`, `search`, `remove`, `enable` and `disable`.

use belljar_definition::Grantee;
use belljar_definition::plugin::{MarketEntry, MarketManifest};
use belljar_policy::{ShownPath as _, ShownText};
use serde_json::{Value, json};

use super::named;
use crate::args::server::TenantArg;
use crate::libraries::{LibraryLock, LibraryShelf, PluginKey, read_installed, read_market};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host::read_settings;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Characters of a description in a list.
const MAX_DESCRIPTION: usize = 80;

/// Plugins that a search shows.
const MAX_FOUND: usize = 20;

/// Lists the installed plugins.
pub(super) fn list_plugins(
    json: bool,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let states: Vec<(&PluginKey, &'static str)> = lock
        .plugins
        .iter()
        .map(|(key, plugin)| {
            let whole = read_installed(plugin, places).0.left_out.is_empty();
            let state = match (whole, plugin.enabled) {
                (false, _) => "changed on disk",
                (true, true) => "ok",
                (true, false) => "disabled",
            };
            (key, state)
        })
        .collect();
    let changed = states.iter().any(|(_, state)| *state == "changed on disk");
    let exit = if changed { CommandExit::Usage } else { CommandExit::Completed };
    if json {
        let rows = lock.plugins.iter().zip(&states).map(|((key, plugin), (_, state))| {
            json!({
                "plugin": key.to_string(),
                "name": plugin.name,
                "version": plugin.version,
                "enabled": plugin.enabled,
                "state": state,
                "source": plugin.source,
                "folder": plugin.folder,
                "revision": plugin.revision,
                "digest": plugin.content_digest(),
                "agents": plugin.agents,
                "skills": plugin.skills,
                "commands": plugin.commands,
                "files": plugin.files.len(),
                "directory": places.libraries_directory().join(&plugin.directory),
            })
        });
        out.print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(exit);
    }
    if lock.plugins.is_empty() {
        let add = of.format_command("belljar plugins add PLUGIN");
        out.note(format_args!("no plugin is installed; `{add}` adds one"));
        return Ok(exit);
    }
    let headings =
        ["plugin", "version", "state", ">agents", ">skills", ">commands", "revision", "source"];
    let mut table = TextTable::new(out, &headings);
    for ((key, plugin), (_, state)) in lock.plugins.iter().zip(&states) {
        let style = match *state {
            "ok" => TextStyle::Green,
            "disabled" => TextStyle::Dim,
            _ => TextStyle::Red,
        };
        table.push_row([
            plain_cell(key),
            plain_cell(ShownText::clip_line(plugin.version.as_deref().unwrap_or("-"), 20)),
            styled_cell(style, *state),
            plain_cell(plugin.agents.len()),
            plain_cell(plugin.skills.len()),
            plain_cell(plugin.commands.len()),
            plain_cell(ShownText::clip_line(plugin.revision.as_deref().unwrap_or("-"), 12)),
            plain_cell(&plugin.source),
        ]);
    }
    table.print_to(out);
    for (key, _) in states.iter().filter(|(_, state)| *state == "changed on disk") {
        out.print_warning(format_args!(
            "plugin `{key}` is not as it was installed, and those files are not used; `{}` puts it \
             right",
            of.format_command(&format!("belljar plugins update {key}"))
        ));
    }
    Ok(exit)
}

/// Finds plugins of the known marketplaces.
pub(super) fn search_plugins(
    words: &[String],
    json: bool,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut found: Vec<(usize, MarketManifest, MarketEntry)> = Vec::new();
    for (slug, known) in &lock.markets {
        let market = match read_market(known, places) {
            Ok(market) => market,
            Err(failure) => {
                out.print_warning(format_args!("marketplace `{slug}`: {}", failure.message));
                continue;
            }
        };
        for entry in market.entries.values() {
            if let Some(score) = score_entry(entry, &words) {
                found.push((score, market.clone_head(), entry.clone()));
            }
        }
    }
    found.sort_by(|a, b| {
        let name = |it: &(usize, MarketManifest, MarketEntry)| it.2.manifest.slug.clone();
        (b.0, name(a)).cmp(&(a.0, name(b)))
    });
    if json {
        let rows = found.iter().map(|(_, market, entry)| {
            let manifest = &entry.manifest;
            json!({
                "plugin": format!("{}@{}", manifest.slug, market.slug),
                "description": manifest.description,
                "category": entry.category,
                "tags": entry.tags,
                "version": manifest.version,
                "source": entry.source.as_ref().ok().map(ToString::to_string),
                "cannot_be_added": entry.source.as_ref().err(),
            })
        });
        out.print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(CommandExit::Completed);
    }
    if lock.markets.is_empty() {
        let add = of.format_command("belljar marketplaces add SOURCE");
        out.note(format_args!("no marketplace is known; `{add}` adds one"));
        return Ok(CommandExit::Completed);
    }
    if found.is_empty() {
        out.note("no plugin of the known marketplaces has these words");
        return Ok(CommandExit::Completed);
    }
    let mut table =
        TextTable::new(out, &["plugin", "source", "description"]).with_cut(MAX_DESCRIPTION);
    for (_, market, entry) in found.iter().take(MAX_FOUND) {
        let source = match &entry.source {
            Ok(source) => ShownText::clip_line(&source.to_string(), 60).to_string(),
            Err(why) => ShownText::clip_line(why, 60).to_string(),
        };
        table.push_row([
            plain_cell(format_args!("{}@{}", entry.manifest.slug, market.slug)),
            plain_cell(source),
            plain_cell(ShownText::new(entry.manifest.description.trim())),
        ]);
    }
    table.print_to(out);
    if found.len() > MAX_FOUND {
        out.note(format_args!("and {} more; more words find fewer", found.len() - MAX_FOUND));
    }
    Ok(CommandExit::Completed)
}

/// How well an entry fits: a word in the name counts most. `None` = a word is nowhere.
fn score_entry(entry: &MarketEntry, words: &[String]) -> Option<usize> {
    let manifest = &entry.manifest;
    let (name, description) = (manifest.name.to_lowercase(), manifest.description.to_lowercase());
    let labels = [entry.tags.join(" "), manifest.keywords.join(" "), entry.category.clone()];
    let labels = labels.join(" ").to_lowercase();
    words.iter().try_fold(0, |score, word| {
        let own = [(&name, 8), (&labels, 4), (&description, 1)];
        let fits: usize = own.iter().filter(|(text, _)| text.contains(word)).map(|it| it.1).sum();
        (fits > 0).then_some(score + fits)
    })
}

/// Removes a plugin.
pub(super) fn remove_plugin(
    name: &str,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut shelf = LibraryShelf::open_locked(places)?;
    let key = named::installed_key(name, of, &shelf.lock)?;
    shelf.change_lock(|lock| drop(lock.plugins.remove(&key)))?;
    out.print_line(format_args!("{} plugin `{key}`", out.paint(TextStyle::Green, "removed")));
    // Without a valid `belljar.toml` there are no grants to mention.
    let Ok(settings) = read_settings(places) else { return Ok(CommandExit::Completed) };
    let scope = key.library_name().into_scope();
    let left: Vec<&Grantee> = settings.grantees().filter(|to| to.is_of(&scope)).collect();
    if !left.is_empty() {
        out.print_warning(format_args!(
            "`{}` still grants rights to {} of its agents; a plugin of that name would have them again",
            places.config_path().to_shown(),
            left.len()
        ));
        out.note(format_args!(
            "to take them back: `{}`",
            of.format_command(&format!("belljar revoke --library {key}"))
        ));
    }
    Ok(CommandExit::Completed)
}

/// Takes a plugin into use or out of use.
pub(super) fn switch_plugin(
    name: &str,
    enabled: bool,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut shelf = LibraryShelf::open_locked(places)?;
    let key = named::installed_key(name, of, &shelf.lock)?;
    let word = if enabled { "enabled" } else { "disabled" };
    if shelf.lock.plugins.get(&key).is_some_and(|plugin| plugin.enabled == enabled) {
        out.print_line(format_args!("plugin `{key}` is {word} already"));
        return Ok(CommandExit::Completed);
    }
    shelf.change_lock(|lock| {
        if let Some(plugin) = lock.plugins.get_mut(&key) {
            plugin.enabled = enabled;
        }
    })?;
    out.print_line(format_args!("{} plugin `{key}`", out.paint(TextStyle::Green, word)));
    Ok(CommandExit::Completed)
}
