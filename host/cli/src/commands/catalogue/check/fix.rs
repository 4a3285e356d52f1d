//! `agents check --fix`: writes files of other programs in belljar's own form.

use std::io;
use std::path::{Path, PathBuf};

use belljar_definition::{CanonicalForm, KnownTools, NoCanonicalForm, canonical_form};
use belljar_policy::{Shown, ShownPath as _};

use super::verdict::Verdict;
use crate::setup::below::{self, Below, For};
use crate::setup::exit::Exit;
use crate::term::out::Out;

/// The ending of a file written beside the old one. Not `.md`, so that a scan does not find the same agent
/// twice.
const BESIDE: &str = "fixed";

/// Writes the canonical form of every agent with one. Overwrites only the source file itself.
pub(crate) fn run(
    verdicts: &[Verdict],
    (known, workspace): (&KnownTools, &Path),
    in_place: bool,
    out: &Out,
) -> Exit {
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
        let written = Place::of(&definition.path, workspace).and_then(|place| match in_place {
            true => place.replace(&form),
            false => place.beside(&form),
        });
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

/// The files of whoever wrote the agents: those of the workspace may be a stranger's.
struct Place {
    directory: Below,
    /// The agent's file there.
    name: PathBuf,
}

impl Place {
    fn of(path: &Path, workspace: &Path) -> io::Result<Self> {
        let (directory, name) = below::output(path, workspace)?;
        Ok(Self { directory, name })
    }

    /// A new file; an old one of that name is kept.
    fn beside(&self, form: &CanonicalForm) -> io::Result<PathBuf> {
        let mut name = self.name.clone().into_os_string();
        name.push(format!(".{BESIDE}"));
        let name = PathBuf::from(name);
        let path = self.directory.path().join(&name);
        match self.directory.create(&name, form.text.as_bytes(), For::Everybody)? {
            true => Ok(path),
            false => {
                let why = format!("`{}` is there already", path.shown());
                Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
            }
        }
    }

    /// The new text in the place of the old, whole or not at all.
    fn replace(&self, form: &CanonicalForm) -> io::Result<PathBuf> {
        self.directory.replace(&self.name, form.text.as_bytes(), For::Everybody)?;
        Ok(self.directory.path().join(&self.name))
    }
}
