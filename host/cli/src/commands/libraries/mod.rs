//! `belljar agents add`, `update`, `remove` and `libraries`: other people's agents, vetted before
//! they are there.

mod add;
mod consent;
mod difference;
mod list;
mod remove;
mod report;
mod update;
mod vetting;

use belljar_definition::{LibraryName, Slug};
use belljar_policy::ShownText;

use crate::args::library::{AddArgs, LibraryCommand};
use crate::args::server::TenantArg;
use crate::libraries::{LibraryLock, PluginKey, PreparedSource, SourceFetcher};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;

pub(super) use difference::{agent_difference, line_difference};
pub(super) use list::LibraryState;
pub(super) use report::agent_json;
pub(super) use vetting::{SourceAgent, vet_agents};

pub(super) fn run(
    command: &LibraryCommand,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    match command {
        LibraryCommand::Add(args) => add_source(args, of, operator, walls, out),
        LibraryCommand::Update(args) => {
            let whose = AgentOwner::to_change(of, operator)?;
            let fetcher = SourceFetcher { out, places: operator, walled: !walls.is_off() };
            update::run(args, of, &whose, &fetcher, walls)
        }
        LibraryCommand::Remove { name } => {
            remove::run(name, of, &AgentOwner::to_change(of, operator)?.places, out)
        }
        LibraryCommand::Libraries { json } => {
            list::run(*json, of, &AgentOwner::for_tenant(of, operator)?.places, out)
        }
    }
}

/// `belljar add`, which is `belljar agents add`.
pub(super) fn add_source(
    args: &AddArgs,
    of: &TenantArg,
    operator: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = AgentOwner::to_change(of, operator)?;
    let fetcher = SourceFetcher { out, places: operator, walled: !walls.is_off() };
    add::run(args, of, &whose, &fetcher, walls)
}

/// Raises the OS sandbox around reading a source: the source is readable, the libraries are writable, and no
/// program is started any more. For a git repository, the names of commits were read before, and the objects
/// by git; of other sources not a byte.
pub(super) fn raise_wall(
    places: &HomePaths,
    taken: &PreparedSource,
    walls: WallRaiser<'_>,
) -> Result<(), Failure> {
    let through = WallGaps {
        read: taken.readable_paths(),
        write: vec![places.libraries_directory()],
        ..WallGaps::default()
    };
    walls.raise_for(places, &through).map(drop)
}

/// The name of an installed library or plugin, whose agents share a scope.
pub(super) fn installed_scope(
    name: &str,
    of: &TenantArg,
    lock: &LibraryLock,
) -> Result<LibraryName, Failure> {
    let plugin = lock.plugins.keys().map(PluginKey::library_name);
    let mut plugin = plugin.filter(|library| library.as_str() == name);
    match plugin.next() {
        Some(plugin) => Ok(plugin),
        None => installed_name(name, of, lock).map(LibraryName::from),
    }
}

/// The name of an installed library.
pub(super) fn installed_name(
    name: &str,
    of: &TenantArg,
    lock: &LibraryLock,
) -> Result<Slug, Failure> {
    let found = Slug::from_written(name).filter(|slug| lock.libraries.contains_key(slug));
    found.ok_or_else(|| {
        let names: Vec<&str> = lock.libraries.keys().map(Slug::as_str).collect();
        let hint = match names.as_slice() {
            [] => format!("none is; `{}` adds one", of.format_command("belljar agents add SOURCE")),
            names => format!("installed: `{}`", names.join("`, `")),
        };
        let name = ShownText::clip_line(name, 80);
        Failure::usage(format!("no library is called `{name}`")).with_hint(hint)
    })
}
