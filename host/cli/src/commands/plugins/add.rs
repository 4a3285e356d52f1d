//! `belljar plugins add`.

use belljar_definition::Slug;
use belljar_definition::plugin::MarketManifest;
use belljar_policy::ShownText;

use super::named::{self, ListedPlugin, WantedPlugin};
use super::report;
use super::vetting::{self, VettedPlugin};
use crate::args::plugins::PluginAddArgs;
use crate::args::server::TenantArg;
use crate::commands::libraries::raise_wall;
use crate::libraries::{
    ENTRY_FILE, GatheredFile, InstalledPlugin, LibraryLock, LibraryShelf, PluginKey, SourceFetcher,
    is_reserved,
};
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    args: &PluginAddArgs,
    of: &TenantArg,
    whose: &AgentOwner,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let places = &whose.places;
    // Made now, as it cannot be made behind the wall; a question that waits holds no lock.
    let lock = LibraryShelf::open_locked(places)?.lock;
    let place = (args.folder.as_deref(), args.rev.as_deref());
    let wanted = named::find_wanted(&args.plugin, place, of, &lock, places)?;
    let prepared = wanted.source.prepare(fetcher)?;
    let revision = prepared.prepared.revision.clone();
    raise_wall(places, &prepared.prepared, walls)?;

    let files = prepared.read_files()?;
    let host = whose.build_host(out)?;
    let listed = wanted.listed.as_ref();
    let market = listed.map(|it| (&it.market.slug, &it.entry));
    let vetted = vetting::vet_plugin(
        &host,
        places,
        (market.map(|it| it.0), market.map(|it| it.1)),
        &wanted.folder_name(),
        files,
    )?;
    require_free(&vetted.key, of, &lock)?;
    let missing = missing_plugins(&vetted, listed.map(|it| &it.market), of, &lock);
    if vetted.is_empty() {
        let what = if vetted.inventory.unserved.is_empty() { "" } else { " that belljar serves" };
        if !args.json {
            show(&vetted, &wanted, revision.as_deref(), &missing, out);
        }
        return Err(Failure::usage(format!("there is nothing in the plugin{what}")).with_hint(
            "a plugin has `agents/`, `skills/`, `commands/`, `hooks/hooks.json` or `.mcp.json`; \
             `belljar marketplaces add` takes a list of plugins",
        ));
    }
    if !args.json {
        show(&vetted, &wanted, revision.as_deref(), &missing, out);
    }
    report::warn_of_grants(&vetted.grantees, out);
    let install = match args.json {
        true => args.yes,
        false => ask_agreement("install this plugin?", args.yes, "changed", out)?,
    };
    if install {
        let mut shelf = LibraryShelf::open_locked(places)?;
        require_free(&vetted.key, of, &shelf.lock)?;
        put_plugin(
            &mut shelf,
            &vetted,
            &wanted,
            revision.clone(),
            vetted.manifest.default_enabled,
        )?;
    }
    if args.json {
        let json = report::to_json(&vetted, Some(&wanted), revision.as_deref(), &missing, install);
        out.print_json(&json)?;
        return Ok(CommandExit::Completed);
    }
    if !install {
        return Ok(CommandExit::Cancelled);
    }
    print_next(&vetted, of, out);
    Ok(CommandExit::Completed)
}

impl WantedPlugin {
    /// The name of the plugin's folder: its name where it has no manifest.
    pub(super) fn folder_name(&self) -> String {
        let folder = self.source.folder.rsplit('/').next().filter(|name| !name.is_empty());
        let name = folder
            .map(str::to_owned)
            .or_else(|| self.source.source.library_name().map(|slug| slug.to_string()));
        name.unwrap_or_default()
    }

    /// The source as text, with the folder.
    pub(super) fn describe(&self) -> String {
        match self.source.folder.as_str() {
            "" => self.source.source.to_string(),
            folder => format!("{} in `{}`", self.source.source, ShownText::clip_line(folder, 100)),
        }
    }
}

/// Prints the summary that a person agrees to.
pub(super) fn show(
    vetted: &VettedPlugin,
    wanted: &WantedPlugin,
    revision: Option<&str>,
    missing: &[String],
    out: &TerminalOutput,
) {
    if let Some(ListedPlugin { renamed: Some(now), .. }) = &wanted.listed {
        out.print_line(format_args!("it is called `{}` now", ShownText::clip_line(now, 80)));
    }
    report::print_head(vetted, &wanted.describe(), revision, out);
    report::print_parts(vetted, out);
    report::print_rights(vetted, out);
    report::print_outside(vetted, out);
    report::print_needs(vetted, missing, out);
    report::print_doubts(vetted, None, out);
}

/// INV-637: a plugin's name is taken once, and is none of belljar's own words.
fn require_free(key: &PluginKey, of: &TenantArg, lock: &LibraryLock) -> Result<(), Failure> {
    let first = key.market.as_ref().unwrap_or(&key.plugin);
    if is_reserved(first.as_str()) {
        return Err(Failure::usage(format!(
            "`{first}` is belljar's own word, and no plugin's name"
        )));
    }
    if lock.plugins.contains_key(key) {
        let update = of.format_command(&format!("belljar plugins update {key}"));
        return Err(Failure::usage(format!("there is a plugin `{key}` already"))
            .with_hint(format!("`{update}` takes it from its source again")));
    }
    if key.market.is_none() && lock.libraries.contains_key(&key.plugin) {
        let remove = of.format_command(&format!("belljar agents remove {key}"));
        return Err(Failure::usage(format!("there is a library `{key}` already"))
            .with_hint(format!("`{remove}` takes it away")));
    }
    Ok(())
}

/// The plugins that this one needs and that are not installed, each with the command that adds it. Nothing is
/// followed further, so plugins that need each other are no loop.
pub(super) fn missing_plugins(
    vetted: &VettedPlugin,
    market: Option<&MarketManifest>,
    of: &TenantArg,
    lock: &LibraryLock,
) -> Vec<String> {
    let mut missing = Vec::new();
    for needed in &vetted.manifest.dependencies {
        let Some(name) = Slug::from_name(&needed.name) else { continue };
        let own = vetted.key.market.as_ref();
        let from = needed.market.as_deref().and_then(Slug::from_name).or_else(|| own.cloned());
        let key = PluginKey { market: from.clone(), plugin: name.clone() };
        let version = needed
            .version
            .as_deref()
            .map_or(String::new(), |version| format!(" {}", ShownText::clip_line(version, 40)));
        if lock.plugins.contains_key(&key) {
            continue;
        }
        let elsewhere = from.as_ref() != own;
        let allowed = market.is_some_and(|market| {
            from.as_ref().is_some_and(|from| market.allowed_markets.contains(from.as_str()))
        });
        let doubt = match elsewhere && !allowed {
            true => ", from another marketplace than its own allows",
            false => "",
        };
        let typed = from.map_or_else(|| name.to_string(), |from| format!("{name}@{from}"));
        let add = of.format_command(&format!("belljar plugins add {typed}"));
        missing.push(format!("`{name}`{version}{doubt}: `{add}`"));
    }
    missing
}

/// Writes a plugin that a person agreed to.
pub(super) fn put_plugin(
    shelf: &mut LibraryShelf,
    vetted: &VettedPlugin,
    wanted: &WantedPlugin,
    revision: Option<String>,
    enabled: bool,
) -> Result<(), Failure> {
    let mut files = vetted.files.clone();
    if let Some(ListedPlugin { market, entry, .. }) = &wanted.listed {
        let bytes = market.write_entry(entry).into_bytes();
        files.push(GatheredFile { path: ENTRY_FILE.to_owned(), bytes });
    }
    let key = vetted.key.clone();
    let [agents, skills, commands] = vetted.part_paths();
    shelf.install_files(&key.to_string(), &files, |lock, directory, digests| {
        let installed = InstalledPlugin {
            directory,
            name: vetted.manifest.name.clone(),
            enabled,
            version: vetted.manifest.version.clone().filter(|version| version.len() <= 100),
            source: wanted.source.source.clone(),
            folder: wanted.source.folder.clone(),
            revision,
            files: digests,
            agents,
            skills,
            commands,
        };
        lock.plugins.insert(key.clone(), installed);
    })
}

/// Advice after an installation.
fn print_next(vetted: &VettedPlugin, of: &TenantArg, out: &TerminalOutput) {
    let (key, name) = (&vetted.key, &vetted.manifest.name);
    let word = out.paint(TextStyle::Green, "installed");
    let mut parts = Vec::new();
    if !vetted.agents.is_empty() {
        parts.push(format!("its agents go by `library/{key}/NAME` and `{name}:NAME`"));
    }
    if !vetted.skills.is_empty() {
        parts.push(format!("its skills by `{name}:SKILL`"));
    }
    if !vetted.commands.is_empty() {
        parts.push(format!("its commands by `/{name}:COMMAND`"));
    }
    let parts = if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) };
    out.print_line(format_args!("{word} plugin `{key}`{parts}"));
    if !vetted.manifest.default_enabled {
        let enable = of.format_command(&format!("belljar plugins enable {key}"));
        out.print_line(format_args!("its author leaves it off: `{enable}` takes it into use"));
    }
}
