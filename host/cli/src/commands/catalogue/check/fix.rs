//! `agents check --fix`: writes agent files of other programs in belljar's own form.

use std::io;
use std::path::{Path, PathBuf};

use belljar_definition::{CanonicalForm, KnownTools, NoCanonicalForm, canonical_form};
use belljar_policy::{ShownPath as _, ShownText};

use super::verdict::JudgedFile;
use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::exit::CommandExit;
use crate::term::out::TerminalOutput;

/// The ending of a new file beside the old one. It is not `.md`, so that a search does not find the same
/// agent twice.
const BESIDE: &str = "fixed";

/// Writes belljar's form of every agent that has one. With `in_place` the source file is replaced, and no
/// other file ever.
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

/// The note about tools that the new form leaves out, because they do not exist here.
fn left_out(form: &CanonicalForm) -> String {
    let names: Vec<_> =
        form.left_out.iter().map(|name| ShownText::clip_line(name, 80).to_string()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; without the tools {}, which cannot be had here", names.join(", "))
}

/// The directory of an agent file. A workspace's files may be a stranger's, so no link is followed.
struct AuthorFolder {
    directory: DirectoryHandle,
    /// The name of the agent's file in the directory.
    name: PathBuf,
}

impl AuthorFolder {
    fn for_agent_file(path: &Path, workspace: &Path) -> io::Result<Self> {
        let (directory, name) = below::output_place(path, workspace)?;
        Ok(Self { directory, name })
    }

    /// Writes a new file beside the old one. An existing file of that name is not changed.
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

    /// Replaces the agent's file with the new text, in one step.
    fn replace_file(&self, form: &CanonicalForm) -> io::Result<PathBuf> {
        if !self.name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
            let why = "it is not markdown; without `--in-place` it is written beside the old one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.directory.replace_file(&self.name, form.text.as_bytes(), FileAudience::Everybody)?;
        Ok(self.directory.path().join(&self.name))
    }
}
