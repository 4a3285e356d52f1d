//! `belljar agents add`, `update`, `remove` and `libraries`: other people's agents, vetted before
//! they are there.

mod add;
mod difference;
mod list;
mod remove;
mod report;
mod update;
mod vetting;

use belljar_definition::Slug;
use belljar_policy::Shown;

use crate::args::library::LibraryCommand;
use crate::args::server::TenantArg;
use crate::libraries::{Lock, Taken};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::Whose;
use crate::term::out::Out;

pub(super) use list::State;

pub(super) fn run(
    command: &LibraryCommand,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    // Before the wall goes up, whose gaps depend on these places.
    let whose = match command {
        LibraryCommand::Libraries { .. } => Whose::named(of, operator)?,
        LibraryCommand::Add(_) | LibraryCommand::Update(_) | LibraryCommand::Remove { .. } => {
            Whose::to_change(of, operator)?
        }
    };
    match command {
        LibraryCommand::Add(args) => add::run(args, of, &whose, walls, out),
        LibraryCommand::Update(args) => update::run(args, of, &whose, walls, out),
        LibraryCommand::Remove { name } => remove::run(name, of, &whose.places, out),
        LibraryCommand::Libraries { json } => list::run(*json, of, &whose.places, out),
    }
}

/// Raises the OS sandbox around reading a source: the source is readable, the libraries are writable, and no
/// program is started any more. For a git repository, the names of commits were read before, and the objects
/// by git; of other sources not a byte.
fn wall(places: &Places, taken: &Taken, walls: Walls<'_>) -> Result<(), Failure> {
    let through =
        Through { read: taken.reads(), write: vec![places.libraries()], ..Through::default() };
    walls.up(places, &through).map(drop)
}

/// The name of an installed library.
pub(super) fn installed(name: &str, of: &TenantArg, lock: &Lock) -> Result<Slug, Failure> {
    let found = Slug::written(name).filter(|slug| lock.libraries.contains_key(slug));
    found.ok_or_else(|| {
        let names: Vec<&str> = lock.libraries.keys().map(Slug::as_str).collect();
        let hint = match names.as_slice() {
            [] => format!("none is; `{}` adds one", of.command("belljar agents add SOURCE")),
            names => format!("installed: `{}`", names.join("`, `")),
        };
        let name = Shown::clipped(name, 80);
        Failure::usage(format!("no library is called `{name}`")).hint(hint)
    })
}
