//! `agents check --fix`: writes files of other programs in belljar's own form.

use std::io;
use std::path::{Path, PathBuf};

use belljar_definition::{CanonicalForm, KnownTools, NoCanonicalForm, canonical_form};
use belljar_policy::{ShownPath as _, ShownText};

use super::verdict::JudgedFile;
use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::exit::CommandExit;
use crate::term::out::TerminalOutput;

/// The ending of a file written beside the old one. Not `.md`, so that a scan does not find the same agent
/// twice.
const BESIDE: &str = "fixed";

/// Writes the canonical form of every agent with one. Overwrites only the source file itself.
pub(crate) fn run(
    verdicts: &[JudgedFile],
    (known, workspace): (&KnownTools, &Path),
    in_place: bool,
    out: &TerminalOutput,
) -> CommandExit {
    let mut worst = CommandExit::Completed;
    for agent in verdicts.iter().filter_map(|verdict| verdict.agent.as_ref()) {
        let definition = &agent.definition;
        let shown = |path: &Path| ShownText::new(&path.to_string_lossy()).to_string();
        let form = match canonical_form(definition, known) {
            Ok(form) => form,
            Err(NoCanonicalForm::Already) => continue,
            Err(why) => {
                out.print_warning(format_args!("{}: not written: {why}", shown(&definition.path)));
                continue;
            }
        };
        let written = AuthorFolder::for_agent_file(&definition.path, workspace).and_then(|place| {
            match in_place {
                true => place.replace_file(&form),
                false => place.write_beside(&form),
            }
        });
        match written {
            Ok(path) => {
                out.print_line(format_args!("written: {}{}", shown(&path), left_out(&form)))
            }
            Err(error) => {
                out.print_warning(format_args!(
                    "{}: not written: {error}",
                    shown(&definition.path)
                ));
                worst = CommandExit::Failed;
            }
        }
    }
    worst
}

fn left_out(form: &CanonicalForm) -> String {
    let names: Vec<_> =
        form.left_out.iter().map(|name| ShownText::clip_line(name, 80).to_string()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; without the tools {}, which cannot be had here", names.join(", "))
}

/// The files of whoever wrote the agents: those of the workspace may be a stranger's.
struct AuthorFolder {
    directory: DirectoryHandle,
    /// The agent's file there.
    name: PathBuf,
}

impl AuthorFolder {
    fn for_agent_file(path: &Path, workspace: &Path) -> io::Result<Self> {
        let (directory, name) = below::output_place(path, workspace)?;
        Ok(Self { directory, name })
    }

    /// A new file; an old one of that name is kept.
    fn write_beside(&self, form: &CanonicalForm) -> io::Result<PathBuf> {
        let mut name = self.name.clone().into_os_string();
        name.push(format!(".{BESIDE}"));
        let name = PathBuf::from(name);
        let path = self.directory.path().join(&name);
        match self.directory.create_file(&name, form.text.as_bytes(), FileAudience::Everybody)? {
            true => Ok(path),
            false => {
                let why = format!("`{}` is there already", path.to_shown());
                Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
            }
        }
    }

    /// The new text in the place of the old, whole or not at all.
    fn replace_file(&self, form: &CanonicalForm) -> io::Result<PathBuf> {
        if !self.name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
            let why = "it is not markdown; without `--in-place` it is written beside the old one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.directory.replace_file(&self.name, form.text.as_bytes(), FileAudience::Everybody)?;
        Ok(self.directory.path().join(&self.name))
    }
}
