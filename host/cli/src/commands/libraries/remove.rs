//! `belljar agents remove`.

use belljar_definition::{Grantee, Scope};
use belljar_policy::ShownPath as _;

use super::installed;
use crate::args::server::TenantArg;
use crate::libraries::Shelf;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::host::settings;
use crate::term::out::{Out, Style};

pub(super) fn run(name: &str, of: &TenantArg, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let mut shelf = Shelf::open(places)?;
    let name = installed(name, of, &shelf.lock)?;
    shelf.remove(&name)?;
    out.line(format_args!("{} library `{name}`", out.paint(Style::Green, "removed")));
    // Without a valid `belljar.toml` there are no grants to mention.
    let Ok(settings) = settings(places) else { return Ok(Exit::Completed) };
    let scope = Scope::Library(name.to_string());
    let left: Vec<&Grantee> = settings.grantees().filter(|to| to.is_of(&scope)).collect();
    let whole = left.iter().find(|to| matches!(to, Grantee::Library(_)));
    let whom = match (whole, left.len()) {
        (_, 0) => return Ok(Exit::Completed),
        (Some(whole), _) => format!("each of its agents, by `{whole}`"),
        (None, count) => format!("{count} of its agents"),
    };
    out.warning(format_args!(
        "`{}` still grants rights to {whom}; a library of that name would have them again",
        places.config().shown()
    ));
    out.note(format_args!(
        "to take them back: `{}`",
        of.command(&format!("belljar revoke --library {name}"))
    ));
    Ok(Exit::Completed)
}
