//! `belljar agents update`.

use std::path::Path;

use belljar_agent::Host;
use belljar_definition::{Grantee, MAX_DEFINITION, Slug};
use belljar_sandbox::Digest;
use serde_json::json;

use super::difference::LibraryDifference;
use super::list::LibraryState;
use super::vetting::vet_library;
use super::{installed_name, raise_wall, report};
use crate::args::library::UpdateArgs;
use crate::args::server::TenantArg;
use crate::libraries::{
    CollectScope, CollectedSource, GatheredFile, InstalledLibrary, LibraryLock, LibraryShelf,
    SourceFetcher,
};
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_bounded};
use crate::setup::walls::WallRaiser;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};

pub(super) fn run(
    args: &UpdateArgs,
    of: &TenantArg,
    whose: &AgentOwner,
    fetcher: &SourceFetcher<'_>,
    walls: WallRaiser<'_>,
) -> Result<CommandExit, Failure> {
    let (places, out) = (&whose.places, fetcher.out);
    LibraryShelf::make_directory(places)?;
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let name = installed_name(&args.name, of, &lock)?;
    let Some(library) = lock.libraries.get(&name).cloned() else {
        return Err(Failure::new(format!("library `{name}` is gone")));
    };
    let source = library.source.clone();
    let gone = |failure: Failure| {
        failure.with_hint(format!("library `{name}` stays as it is; it came from {source}"))
    };
    let taken = source.prepare_source(fetcher, CollectScope::Agents).map_err(gone)?;
    let revision = taken.revision.clone();
    raise_wall(places, &taken, walls)?;

    let collected = taken.collect_files().map_err(gone)?;
    let host = whose.build_host(out)?;
    let old = vet_library(&host, places, &name, on_disk(&library, places));
    let new = vet_library(&host, places, &name, collected);
    if new.agents.is_empty() {
        let remove = of.format_command(&format!("belljar agents remove {name}"));
        return Err(Failure::usage(format!("there is no agent in {source} any more"))
            .with_hint(format!("library `{name}` stays as it is; `{remove}` takes it away")));
    }
    let mut difference = LibraryDifference::compare_versions(&old, &new);
    // A lost file that has its agreed content again is not new.
    difference.added.retain(|agent| !is_agreed(&library, &agent.file));
    let whole =
        LibraryState::for_library(&library, &places.libraries_directory().join(&library.directory))
            == LibraryState::WHOLE;
    let moved = !new.agents.iter().all(|agent| is_agreed(&library, &agent.file));
    let nothing = difference.is_empty() && whole && !moved;

    if args.json {
        let apply = args.yes && !nothing;
        if apply {
            put_library(places, &name, &library, revision.clone(), &new.install_files())?;
        }
        out.print_json(&json!({
            "library": name.as_str(),
            "source": source,
            "from_revision": library.revision,
            "revision": revision,
            "restored": !whole,
            "applied": apply,
            "changes": difference.to_json(),
        }))?;
        return Ok(CommandExit::Completed);
    }
    if let (Some(from), Some(to)) = (&library.revision, &revision)
        && from != to
    {
        let word = if library.source.kind_word() == "git" { "commit" } else { "SHA-256" };
        out.print_line(format_args!("{word} {from} -> {to}"));
    }
    if nothing {
        if library.revision != revision {
            open_unchanged(places, &name, &library)?.note_revision(&name, revision)?;
        }
        out.print_line(format_args!("nothing changed in library `{name}`"));
        return Ok(CommandExit::Completed);
    }
    difference.print_difference(out);
    if !whole {
        out.print_line("files that were changed or removed here are put right");
    }
    if difference.is_empty() && moved {
        out.print_line("files were moved; no agent changed");
    }
    report::left_out(&new, out);
    if !difference.added.is_empty() {
        warn_of_grants(&host, &name, out);
    }
    out.print_line("");
    report::print_suspicions(difference.new_texts(), out);
    out.print_line("");
    if !ask_agreement("apply this update?", args.yes, "changed", out)? {
        return Ok(CommandExit::Cancelled);
    }
    put_library(places, &name, &library, revision, &new.install_files())?;
    let word = out.paint(TextStyle::Green, "updated");
    out.print_line(format_args!("{word} library `{name}`: {}", report::count_statuses(&new)));
    Ok(CommandExit::Completed)
}

/// New agents of a library get the library's grants at once.
fn warn_of_grants(host: &Host, name: &Slug, out: &TerminalOutput) {
    let is_whole = |to: &&Grantee| matches!(to, Grantee::Library(library) if library.as_str() == name.as_str());
    if let Some(whole) = host.settings.grantees().find(is_whole) {
        out.print_warning(format_args!(
            "`belljar.toml` grants rights to each agent of this library by `{whole}`, and the new \
             ones will have them too"
        ));
    }
}

/// Opens the libraries for a change of this one, which has to be as it was when the difference was shown.
fn open_unchanged(
    places: &HomePaths,
    name: &Slug,
    before: &InstalledLibrary,
) -> Result<LibraryShelf, Failure> {
    LibraryShelf::open_unchanged(places, &format!("library `{name}`"), |lock| {
        lock.libraries.get(name) == Some(before)
    })
}

fn put_library(
    places: &HomePaths,
    name: &Slug,
    before: &InstalledLibrary,
    revision: Option<String>,
    files: &[GatheredFile],
) -> Result<(), Failure> {
    let source = before.source.clone();
    open_unchanged(places, name, before)?.install_library(name, files, |directory, files| {
        InstalledLibrary { directory, source, revision, files }
    })
}

/// Whether a file of the source has the same content as the installed file, which a person agreed to.
fn is_agreed(library: &InstalledLibrary, file: &GatheredFile) -> bool {
    let digest = library.files.get(Path::new(&file.path));
    digest.is_some_and(|digest| *digest == Digest::hash_bytes(&file.bytes))
}

/// The installed files, without those that were changed or removed since a person agreed to them.
fn on_disk(library: &InstalledLibrary, places: &HomePaths) -> CollectedSource {
    let dir = places.libraries_directory().join(&library.directory);
    let mut collected = CollectedSource::default();
    for (below, digest) in &library.files {
        let Ok(bytes) = read_bounded(&dir.join(below), MAX_DEFINITION as u64) else { continue };
        if Digest::hash_bytes(&bytes) == *digest {
            let path = below.to_string_lossy().into_owned();
            collected.files.push(GatheredFile { path, bytes });
        }
    }
    collected
}
