//! `belljar agents add`.

use belljar_definition::Slug;
use belljar_policy::Shown;

use super::vetting::{Vetted, vet};
use super::{report, wall};
use crate::args::library::AddArgs;
use crate::args::server::TenantArg;
use crate::libraries::{Installed, Lock, Shelf, Source, is_reserved};
use crate::setup::agreed::agreed;
use crate::setup::exit::{Exit, Failure};
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};

pub(super) fn run(
    args: &AddArgs,
    of: &TenantArg,
    whose: &Whose,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let places = &whose.places;
    let source = Source::of(&args.source, args.rev.as_deref())?;
    let name = name(args, &source)?;
    let mut shelf = Shelf::open(places)?;
    is_free(&name, of, &shelf.lock)?;
    let taken = source.take()?;
    let revision = taken.revision().map(str::to_owned);
    wall(places, &taken, walls)?;

    let collected = taken.collect()?;
    let host = whose.host(out)?;
    let vetted = vet(&host, places, &name, collected);
    if vetted.agents.is_empty() {
        match args.json {
            true => out.json(&report::json(&vetted, &source, revision.as_deref(), false))?,
            false => report::left_out(&vetted, out),
        }
        let hint = match vetted.left_out.is_empty() {
            true => "an agent is a `.md` file with `description` between two lines `---`",
            false => "`belljar agents check FILE` shows what is wrong with a file",
        };
        return Err(Failure::usage(format!("there is no agent in {source}")).hint(hint));
    }
    if !args.json {
        show(&vetted, &source, revision.as_deref(), out);
    }
    let granted = vetted.granted(&host);
    if !granted.is_empty() {
        out.warning(format_args!(
            "`belljar.toml` grants rights to agents of this name already, and they will have \
             them: `{}`",
            granted.join("`, `")
        ));
    }
    report::models(&vetted.agents, &host, out);
    let install = if args.json {
        args.yes
    } else {
        agreed("install these agents?", args.yes, "changed", out)?
    };
    if install {
        let with = |directory, files| Installed {
            directory,
            source: source.clone(),
            revision: revision.clone(),
            files,
        };
        shelf.install(&name, &vetted.files(), with)?;
    }
    if args.json {
        out.json(&report::json(&vetted, &source, revision.as_deref(), install))?;
        return Ok(Exit::Completed);
    }
    if !install {
        return Ok(Exit::Cancelled);
    }
    let word = out.paint(Style::Green, "installed");
    out.line(format_args!("{word} {}; they go by `library/{name}/NAME`", report::count(&vetted)));
    next_step(&vetted, of, out);
    Ok(Exit::Completed)
}

/// The library's name: what was asked for, or the last part of the source's path.
fn name(args: &AddArgs, source: &Source) -> Result<Slug, Failure> {
    let Some(given) = &args.name else {
        return source.name().ok_or_else(|| {
            Failure::usage("the source's path gives no name").hint("choose one with `--name NAME`")
        });
    };
    Slug::exact(given).ok_or_else(|| {
        let given = Shown::clipped(given, 80);
        Failure::usage(format!("`{given}` is no name for a library"))
            .hint("a name is lower-case letters and digits joined by `-`")
    })
}

fn is_free(name: &Slug, of: &TenantArg, lock: &Lock) -> Result<(), Failure> {
    if is_reserved(name.as_str()) {
        return Err(Failure::usage(format!(
            "`{name}` is belljar's own word, and no library's name"
        ))
        .hint("choose another with `--name NAME`"));
    }
    match lock.libraries.get(name) {
        None => Ok(()),
        Some(there) => Err(Failure::usage(format!(
            "there is a library `{name}` already, from {}",
            there.source
        ))
        .hint(format!(
            "`{}` takes it from there again; `--name NAME` gives this one another name",
            of.command(&format!("belljar agents update {name}"))
        ))),
    }
}

fn show(vetted: &Vetted, source: &Source, revision: Option<&str>, out: &Out) {
    let name = out.paint(Style::Bold, &vetted.name);
    out.line(format_args!("library {name} from {source}"));
    if let Some(revision) = revision {
        out.line(format_args!("commit {revision}; what is not committed is left out"));
    }
    out.line("");
    report::agents(&vetted.agents, out);
    report::left_out(vetted, out);
    out.line("");
    report::suspicions(&vetted.agents, out);
    out.line("");
    out.line(report::count(vetted));
}

/// Advice about blocked agents; said once, with the first one for an example.
fn next_step(vetted: &Vetted, of: &TenantArg, out: &Out) {
    let blocked = vetted.agents.iter().filter(|agent| !agent.resolved.status.is_ready());
    let number = blocked.clone().count();
    if number == 0 {
        return;
    }
    out.line(format_args!(
        "{number} are blocked: `{}` says what each is missing",
        of.command(&format!("belljar agents show library/{}/NAME", vetted.name))
    ));
    let mut commands = blocked.map(|agent| &agent.resolved.hint).filter(|hint| !hint.is_empty());
    if let Some(command) = commands.next() {
        out.line(format_args!("to give one what it asks for: `{}`", Shown::new(command)));
        if commands.next().is_some() {
            out.line(format_args!(
                "to give it to all of them: `{}`",
                of.command(&format!("belljar grant --library {}", vetted.name))
            ));
        }
    }
}
