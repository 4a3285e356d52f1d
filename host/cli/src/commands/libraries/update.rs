//! `belljar agents update`.

use std::path::Path;

use belljar_agent::Host;
use belljar_definition::{Grantee, MAX_DEFINITION, Slug};
use belljar_sandbox::Digest;
use serde_json::json;

use super::difference::Difference;
use super::list::State;
use super::vetting::vet;
use super::{installed, report, wall};
use crate::args::library::UpdateArgs;
use crate::args::server::TenantArg;
use crate::libraries::{Collected, GatheredFile, Installed, Shelf};
use crate::setup::agreed::agreed;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, read_bounded};
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};

pub(super) fn run(
    args: &UpdateArgs,
    of: &TenantArg,
    whose: &Whose,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let places = &whose.places;
    let mut shelf = Shelf::open(places)?;
    let name = installed(&args.name, of, &shelf.lock)?;
    let Some(library) = shelf.lock.libraries.get(&name).cloned() else {
        return Err(Failure::new(format!("library `{name}` is gone")));
    };
    let source = library.source.clone();
    let gone = |failure: Failure| {
        failure.hint(format!("library `{name}` stays as it is; it came from {source}"))
    };
    let taken = source.take().map_err(gone)?;
    let revision = taken.revision().map(str::to_owned);
    wall(places, &taken, walls)?;

    let collected = taken.collect().map_err(gone)?;
    let host = whose.host(out)?;
    let old = vet(&host, places, &name, on_disk(&library, places));
    let new = vet(&host, places, &name, collected);
    if new.agents.is_empty() {
        let remove = of.command(&format!("belljar agents remove {name}"));
        return Err(Failure::usage(format!("there is no agent in {source} any more"))
            .hint(format!("library `{name}` stays as it is; `{remove}` takes it away")));
    }
    let mut difference = Difference::of(&old, &new);
    // A lost file that has its agreed content again is not new.
    difference.added.retain(|agent| !is_agreed(&library, &agent.file));
    let whole = State::of(&library, &shelf.dir().join(&library.directory)) == State::WHOLE;
    let moved = !new.agents.iter().all(|agent| is_agreed(&library, &agent.file));
    let nothing = difference.is_empty() && whole && !moved;

    if args.json {
        let apply = args.yes && !nothing;
        if apply {
            put(&mut shelf, &name, &library, revision.clone(), &new.files())?;
        }
        out.json(&json!({
            "library": name.as_str(),
            "source": source,
            "from_revision": library.revision,
            "revision": revision,
            "restored": !whole,
            "applied": apply,
            "changes": difference.json(),
        }))?;
        return Ok(Exit::Completed);
    }
    if let (Some(from), Some(to)) = (&library.revision, &revision)
        && from != to
    {
        out.line(format_args!("commit {from} -> {to}"));
    }
    if nothing {
        if library.revision != revision {
            shelf.note(&name, revision)?;
        }
        out.line(format_args!("nothing changed in library `{name}`"));
        return Ok(Exit::Completed);
    }
    difference.show(out);
    if !whole {
        out.line("files that were changed or removed here are put right");
    }
    if difference.is_empty() && moved {
        out.line("files were moved; no agent changed");
    }
    report::left_out(&new, out);
    if !difference.added.is_empty() {
        warn_of_grants(&host, &name, out);
    }
    out.line("");
    report::suspicions(difference.new_texts(), out);
    out.line("");
    if !agreed("apply this update?", args.yes, "changed", out)? {
        return Ok(Exit::Cancelled);
    }
    put(&mut shelf, &name, &library, revision, &new.files())?;
    let word = out.paint(Style::Green, "updated");
    out.line(format_args!("{word} library `{name}`: {}", report::count(&new)));
    Ok(Exit::Completed)
}

/// New agents of a library get the library's grants at once.
fn warn_of_grants(host: &Host, name: &Slug, out: &Out) {
    let is_whole = |to: &&Grantee| matches!(to, Grantee::Library(library) if library == name);
    if let Some(whole) = host.settings.grantees().find(is_whole) {
        out.warning(format_args!(
            "`belljar.toml` grants rights to each agent of this library by `{whole}`, and the new \
             ones will have them too"
        ));
    }
}

fn put(
    shelf: &mut Shelf,
    name: &Slug,
    before: &Installed,
    revision: Option<String>,
    files: &[GatheredFile],
) -> Result<(), Failure> {
    let source = before.source.clone();
    shelf.install(name, files, |directory, files| Installed { directory, source, revision, files })
}

/// Whether a file of the source is what a person agreed to.
fn is_agreed(library: &Installed, file: &GatheredFile) -> bool {
    let digest = library.files.get(Path::new(&file.path));
    digest.is_some_and(|digest| *digest == Digest::of(&file.bytes))
}

/// The agreed files that are still unchanged on disk.
fn on_disk(library: &Installed, places: &Places) -> Collected {
    let dir = places.libraries().join(&library.directory);
    let mut collected = Collected::default();
    for (below, digest) in &library.files {
        let Ok(bytes) = read_bounded(&dir.join(below), MAX_DEFINITION as u64) else { continue };
        if Digest::of(&bytes) == *digest {
            let path = below.to_string_lossy().into_owned();
            collected.files.push(GatheredFile { path, bytes });
        }
    }
    collected
}
