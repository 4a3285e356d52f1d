//! `belljar agents remove`.

use belljar_definition::{AgentScope, Grantee};
use belljar_policy::ShownPath as _;

use super::installed_name;
use crate::args::server::TenantArg;
use crate::libraries::LibraryShelf;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::host::read_settings;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    name: &str,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut shelf = LibraryShelf::open_locked(places)?;
    let name = installed_name(name, of, &shelf.lock)?;
    shelf.remove_library(&name)?;
    out.print_line(format_args!("{} library `{name}`", out.paint(TextStyle::Green, "removed")));
    // Without a valid `belljar.toml` there are no grants to mention.
    let Ok(settings) = read_settings(places) else { return Ok(CommandExit::Completed) };
    let scope = AgentScope::Library(name.to_string());
    let left: Vec<&Grantee> = settings.grantees().filter(|to| to.is_of(&scope)).collect();
    let whole = left.iter().find(|to| matches!(to, Grantee::Library(_)));
    let whom = match (whole, left.len()) {
        (_, 0) => return Ok(CommandExit::Completed),
        (Some(whole), _) => format!("each of its agents, by `{whole}`"),
        (None, count) => format!("{count} of its agents"),
    };
    out.print_warning(format_args!(
        "`{}` still grants rights to {whom}; a library of that name would have them again",
        places.config_path().to_shown()
    ));
    out.note(format_args!(
        "to take them back: `{}`",
        of.format_command(&format!("belljar revoke --library {name}"))
    ));
    Ok(CommandExit::Completed)
}
