//! `belljar agents add`.

use belljar_definition::Slug;
use belljar_policy::ShownText;

use super::consent::print_source;
use super::vetting::{VettedSource, vet_library};
use super::{raise_wall, report};
use crate::args::library::AddArgs;
use crate::args::server::TenantArg;
use crate::libraries::{
    CollectScope, InstalledLibrary, LibraryLock, LibraryShelf, LibrarySource, SourceFetcher,
    is_reserved,
};
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    args: &AddArgs,
    of: &TenantArg,
    whose: &AgentOwner,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
) -> Result<CommandExit, Failure> {
    let (places, out) = (&whose.places, fetcher.out);
    let source = LibrarySource::from_typed(&args.source, args.rev.as_deref())?;
    let name = library_name(args, &source)?;
    LibraryShelf::make_directory(places)?;
    is_free(&name, of, &LibraryLock::read(&places.libraries_directory())?)?;
    let taken = source.prepare_source(fetcher, CollectScope::Agents)?;
    let (revision, about) = (taken.revision.clone(), taken.describe_revision());
    raise_wall(places, &taken, walls)?;

    let collected = taken.collect_files()?;
    let host = whose.build_host(out)?;
    let vetted = vet_library(&host, places, &name, collected);
    if vetted.agents.is_empty() {
        match args.json {
            true => {
                out.print_json(&report::library_json(&vetted, &source, revision.as_deref(), false))?
            }
            false => report::left_out(&vetted, out),
        }
        let hint = match vetted.left_out.is_empty() {
            true => "an agent is a `.md` file with `description` between two lines `---`",
            false => "`belljar agents check FILE` shows what is wrong with a file",
        };
        return Err(Failure::usage(format!("there is no agent in {source}")).with_hint(hint));
    }
    if !args.json {
        show_library(&vetted, &source, about.as_deref(), args.details, out);
    }
    let granted = vetted.granted_agents(&host);
    if !granted.is_empty() {
        out.print_warning(format_args!(
            "`belljar.toml` grants rights to agents of this name already, and they will have \
             them: `{}`",
            granted.join("`, `")
        ));
    }
    report::print_models(&vetted.agents, &host, out);
    let install = if args.json {
        args.yes
    } else {
        ask_agreement("install these agents?", args.yes, "changed", out)?
    };
    if install {
        // Not held while a person reads; what another one has installed meanwhile is kept.
        let mut shelf = LibraryShelf::open_locked(places)?;
        is_free(&name, of, &shelf.lock)?;
        let with = |directory, files| InstalledLibrary {
            directory,
            source: source.clone(),
            revision: revision.clone(),
            files,
        };
        shelf.install_library(&name, &vetted.install_files(), with)?;
    }
    if args.json {
        out.print_json(&report::library_json(&vetted, &source, revision.as_deref(), install))?;
        return Ok(CommandExit::Completed);
    }
    if !install {
        return Ok(CommandExit::Cancelled);
    }
    let word = out.paint(TextStyle::Green, "installed");
    out.print_line(format_args!(
        "{word} {}; they go by `library/{name}/NAME`",
        report::count_statuses(&vetted)
    ));
    next_step(&vetted, of, out);
    Ok(CommandExit::Completed)
}

/// The library's name: what was asked for, or the last part of the source's path.
fn library_name(args: &AddArgs, source: &LibrarySource) -> Result<Slug, Failure> {
    let Some(given) = &args.name else {
        return source.library_name().ok_or_else(|| {
            Failure::usage("the source gives no name").with_hint("choose one with `--name NAME`")
        });
    };
    Slug::from_exact(given).ok_or_else(|| {
        let given = ShownText::clip_line(given, 80);
        Failure::usage(format!("`{given}` is no name for a library"))
            .with_hint("a name is lower-case letters and digits joined by `-`")
    })
}

fn is_free(name: &Slug, of: &TenantArg, lock: &LibraryLock) -> Result<(), Failure> {
    if is_reserved(name.as_str()) {
        return Err(Failure::usage(format!(
            "`{name}` is belljar's own word, and no library's name"
        ))
        .with_hint("choose another with `--name NAME`"));
    }
    if lock.plugins.keys().any(|key| key.market.is_none() && key.plugin == *name) {
        return Err(Failure::usage(format!("there is a plugin `{name}` already"))
            .with_hint("`--name NAME` gives this library another name"));
    }
    match lock.libraries.get(name) {
        None => Ok(()),
        Some(there) => Err(Failure::usage(format!(
            "there is a library `{name}` already, from {}",
            there.source
        ))
        .with_hint(format!(
            "`{}` takes it from there again; `--name NAME` gives this one another name",
            of.format_command(&format!("belljar agents update {name}"))
        ))),
    }
}

fn show_library(
    vetted: &VettedSource,
    source: &LibrarySource,
    about: Option<&str>,
    details: bool,
    out: &TerminalOutput,
) {
    let name = out.paint(TextStyle::Bold, &vetted.name);
    out.print_line(format_args!("library {name} from {source}"));
    if let Some(about) = about {
        out.print_line(about);
    }
    print_source(vetted, details, out);
}

/// Advice about blocked agents; said once, with the first one for an example.
fn next_step(vetted: &VettedSource, of: &TenantArg, out: &TerminalOutput) {
    let blocked = vetted.agents.iter().filter(|agent| !agent.resolved.status.is_ready());
    let number = blocked.clone().count();
    if number == 0 {
        return;
    }
    out.print_line(format_args!(
        "{number} are blocked: `{}` says what each is missing",
        of.format_command(&format!("belljar agents show library/{}/NAME", vetted.name))
    ));
    let mut commands = blocked.map(|agent| &agent.resolved.hint).filter(|hint| !hint.is_empty());
    if let Some(command) = commands.next() {
        out.print_line(format_args!("to give one what it asks for: `{}`", ShownText::new(command)));
        if commands.next().is_some() {
            out.print_line(format_args!(
                "to give it to all of them: `{}`",
                of.format_command(&format!("belljar grant --library {}", vetted.name))
            ));
        }
    }
}
