//! `agents check --fix`: writes files of other programs in belljar's own form.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use belljar_definition::{CanonicalForm, KnownTools, NoCanonicalForm, canonical_form};
use belljar_policy::{Shown, ShownPath as _};

use super::verdict::Verdict;
use crate::setup::exit::Exit;
use crate::term::out::Out;

/// The ending of a file that is written beside the old one. It is not `.md`, so that a scan does
/// not find the same agent twice.
const BESIDE: &str = "fixed";

/// Writes the canonical form of every agent that has one. Never overwrites a file but the one
/// that it is made from.
pub(crate) fn run(verdicts: &[Verdict], known: &KnownTools, in_place: bool, out: &Out) -> Exit {
    let mut worst = Exit::Completed;
    for agent in verdicts.iter().filter_map(|verdict| verdict.agent.as_ref()) {
        let definition = &agent.definition;
        let shown = |path: &Path| Shown::new(&path.to_string_lossy()).to_string();
        let form = match canonical_form(definition, known) {
            Ok(form) => form,
            Err(NoCanonicalForm::Already) => continue,
            Err(why) => {
                out.warning(format_args!("{}: not written: {why}", shown(&definition.path)));
                continue;
            }
        };
        let written = if in_place {
            replace(&definition.path, &form).map(|()| definition.path.clone())
        } else {
            beside(&definition.path, &form)
        };
        match written {
            Ok(path) => out.line(format_args!("written: {}{}", shown(&path), left_out(&form))),
            Err(error) => {
                out.warning(format_args!("{}: not written: {error}", shown(&definition.path)));
                worst = Exit::Failed;
            }
        }
    }
    worst
}

fn left_out(form: &CanonicalForm) -> String {
    let names: Vec<_> =
        form.left_out.iter().map(|name| Shown::clipped(name, 80).to_string()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; without the tools {}, which cannot be had here", names.join(", "))
}

/// A new file; an old one of that name stays.
fn beside(path: &Path, form: &CanonicalForm) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{BESIDE}"));
    let path = PathBuf::from(name);
    let mut file = File::create_new(&path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::new(error.kind(), format!("`{}` is there already", path.shown()))
        }
        _ => error,
    })?;
    file.write_all(form.text.as_bytes())?;
    Ok(path)
}

/// The new text in the place of the old, whole or not at all.
fn replace(path: &Path, form: &CanonicalForm) -> io::Result<()> {
    let new = beside(path, form)?;
    let moved = fs::metadata(path)
        // By its descriptor: behind the OS sandbox no mode is changed by a path.
        .and_then(|old| File::open(&new)?.set_permissions(old.permissions()))
        .and_then(|()| fs::rename(&new, path));
    if moved.is_err() {
        let _ = fs::remove_file(&new);
    }
    moved
}
