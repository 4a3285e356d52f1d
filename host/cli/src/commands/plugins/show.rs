//! `belljar plugins show`: an installed plugin, or one that could be.

use belljar_policy::ShownText;

use super::named;
use super::vetting::{self, VettedPlugin};
use super::{add, report};
use crate::args::server::TenantArg;
use crate::commands::libraries::raise_wall;
use crate::libraries::{
    InstalledPlugin, LibraryLock, LibraryShelf, PluginKey, SourceFetcher, read_installed,
};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    name: &str,
    json: bool,
    of: &TenantArg,
    whose: &AgentOwner,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let places = &whose.places;
    let lock = LibraryLock::read(&places.libraries_directory())?;
    if let Ok(key) = named::installed_key(name, of, &lock) {
        let installed = named::installed_plugin(&key, &lock)?;
        walls.raise_for(places, &WallGaps::default())?;
        return show_installed(&key, &installed, json, of, &lock, whose, out);
    }
    let lock = LibraryShelf::open_locked(places)?.lock;
    let wanted = named::find_wanted(name, (None, None), of, &lock, places)?;
    let prepared = wanted.source.prepare(fetcher)?;
    let revision = prepared.prepared.revision.clone();
    raise_wall(places, &prepared.prepared, walls)?;
    let files = prepared.read_files()?;
    let host = whose.build_host(out)?;
    let listed = wanted.listed.as_ref();
    let market = listed.map(|it| &it.market.slug);
    let entry = listed.map(|it| &it.entry);
    let vetted = vetting::vet_plugin(&host, places, (market, entry), &wanted.folder_name(), files)?;
    let missing = add::missing_plugins(&vetted, listed.map(|it| &it.market), of, &lock);
    if json {
        let json = report::to_json(&vetted, Some(&wanted), revision.as_deref(), &missing, false);
        out.print_json(&json)?;
        return Ok(CommandExit::Completed);
    }
    add::show(&vetted, &wanted, revision.as_deref(), &missing, out);
    report::warn_of_grants(&vetted.grantees, out);
    print_names(&vetted, out);
    Ok(CommandExit::Completed)
}

fn show_installed(
    key: &PluginKey,
    installed: &InstalledPlugin,
    json: bool,
    of: &TenantArg,
    lock: &LibraryLock,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let vetted = vet_installed(key, installed, whose, out)?;
    let missing = add::missing_plugins(&vetted, None, of, lock);
    if json {
        let json = report::to_json(&vetted, None, installed.revision.as_deref(), &missing, true);
        out.print_json(&json)?;
        return Ok(CommandExit::Completed);
    }
    report::print_head(&vetted, &installed.source.to_string(), installed.revision.as_deref(), out);
    if !installed.enabled {
        let enable = of.format_command(&format!("belljar plugins enable {key}"));
        out.print_line(format_args!("disabled: `{enable}` takes it into use"));
    }
    out.print_line(format_args!("content sha256:{}", installed.content_digest()));
    report::print_parts(&vetted, out);
    report::print_rights(&vetted, out);
    report::print_outside(&vetted, out);
    report::print_needs(&vetted, &missing, out);
    report::print_doubts(&vetted, None, out);
    report::warn_of_grants(&vetted.grantees, out);
    print_names(&vetted, out);
    Ok(CommandExit::Completed)
}

/// An installed plugin, parsed from its files.
pub(super) fn vet_installed(
    key: &PluginKey,
    installed: &InstalledPlugin,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<VettedPlugin, Failure> {
    let places = &whose.places;
    let (files, entry) = read_installed(installed, places);
    let host = whose.build_host(out)?;
    let market = key.market.as_ref();
    vetting::vet_plugin(&host, places, (market, entry.as_ref()), key.plugin.as_str(), files)
}

/// Prints the name by which each part is called.
fn print_names(vetted: &VettedPlugin, out: &TerminalOutput) {
    let name = ShownText::clip_line(&vetted.manifest.name, 80).to_string();
    let heading = |text: &str| out.print_line(out.paint(TextStyle::Bold, text));
    let line = |called: String, about: &str| {
        let about = ShownText::clip_line(about.trim(), 100);
        out.print_line(format_args!("  {}  {about}", ShownText::clip_line(&called, 120)));
    };
    if !vetted.agents.is_empty() {
        heading("agents");
        for agent in &vetted.agents {
            line(
                format!("{name}:{}", agent.resolved.id.slug),
                &agent.resolved.definition.description,
            );
        }
    }
    if !vetted.skills.is_empty() {
        heading("skills");
        vetted.skills.iter().for_each(|it| line(format!("{name}:{}", it.name), &it.description));
    }
    if !vetted.commands.is_empty() {
        heading("commands");
        vetted.commands.iter().for_each(|it| line(format!("/{name}:{}", it.name), &it.description));
    }
    if !vetted.inventory.servers.is_empty() {
        heading("tools of MCP servers");
        for server in &vetted.inventory.servers {
            line(format!("{}TOOL", server.tool_prefix(&vetted.manifest.name)), "");
        }
    }
}
