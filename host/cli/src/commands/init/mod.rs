//! `belljar init`: a configuration with a model, the stock agents and an AGENTS.md, in the
//! operator's home; with `--workspace`, the files for that workspace. Existing files are kept.

mod finding;
mod model;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::args::InitArgs;
use crate::setup::below::{self, Below, For};
use crate::setup::embedded::{self, AGENTS};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, not_written};
use crate::setup::walls::Walls;
use crate::term::out::{Out, Style};
use belljar_policy::ShownPath as _;

const HOME_CONFIG: &str = include_str!("../../templates/belljar.toml");
const WORKSPACE_CONFIG: &str = include_str!("../../templates/workspace.toml");

/// The file with advice for every agent.
const INSTRUCTIONS: &str = "AGENTS.md";

/// The end of one file.
enum Done {
    Written,
    Kept,
}

pub(super) fn run(
    args: &InitArgs,
    places: &Places,
    in_workspace: bool,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    if in_workspace && (args.no_model || !args.model_at.is_empty()) {
        return Err(Failure::usage("a workspace's own settings name no model")
            .hint("leave out `--workspace`: models are set up in your home"));
    }
    if in_workspace {
        return workspace(places, walls, out);
    }
    for (path, content) in home_files(places)? {
        let done = write_new(&places.home, &path, content)
            .map_err(|error| not_written("write", &path, &error))?;
        say(&done, &path, out);
    }
    model::set_up(args, places, out)
}

/// The files of a workspace, which may be a stranger's repository, so no link is followed.
fn workspace(places: &Places, walls: Walls<'_>, out: &Out) -> Result<Exit, Failure> {
    if places.is_around_home() {
        return Err(Failure::usage(format!(
            "`{}` is belljar's home, so this workspace has no settings of its own",
            places.home.shown()
        ))
        .hint("`belljar init` without `--workspace` sets up the home"));
    }
    let below = Below::open(&places.workspace)
        .map_err(|error| not_written("open", &places.workspace, &error))?;
    let files = workspace_files()?;
    walls.around(&[&places.workspace]);
    for (name, content) in files {
        let path = places.workspace.join(name);
        let done = match below.create(Path::new(name), content, For::Everybody) {
            Ok(true) => Done::Written,
            Ok(false) => Done::Kept,
            // In many repositories one name of the instructions links to another.
            Err(_) if name == INSTRUCTIONS && is_link(&path) => Done::Kept,
            Err(error) => {
                let why = format!("failed to write `{}`: {error}", path.shown());
                return Err(Failure::new(why).hint(match error.kind() {
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                        "you may not write there; name a workspace that you may write to"
                    }
                    _ => "look at who put that there; take it away, or name another workspace",
                }));
            }
        };
        say(&done, &path, out);
    }
    Ok(Exit::Completed)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

fn say(done: &Done, path: &Path, out: &Out) {
    let word = match done {
        Done::Written => out.paint(Style::Green, "wrote"),
        Done::Kept => out.paint(Style::Yellow, "kept "),
    };
    out.line(format_args!("{word} {}", path.shown()));
}

fn home_files(places: &Places) -> Result<Vec<(PathBuf, &'static [u8])>, Failure> {
    let mut files = vec![
        (places.config(), HOME_CONFIG.as_bytes()),
        (places.home.join(INSTRUCTIONS), embedded::file(AGENTS, INSTRUCTIONS)?),
    ];
    let agents = places.agents();
    files
        .extend(embedded::below(AGENTS, "agents/").map(|(name, bytes)| (agents.join(name), bytes)));
    Ok(files)
}

fn workspace_files() -> Result<[(&'static str, &'static [u8]); 2], Failure> {
    Ok([
        (".belljar/belljar.toml", WORKSPACE_CONFIG.as_bytes()),
        (INSTRUCTIONS, embedded::file(AGENTS, INSTRUCTIONS)?),
    ])
}

/// Writes a file of the home unless the name is taken, even by a dangling link. The file is private, with its
/// new directories.
fn write_new(home: &Path, path: &Path, content: &[u8]) -> io::Result<Done> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(unnamed)?;
    let directory = below::in_home(home, parent)?;
    if is_link(path) {
        return Ok(Done::Kept);
    }
    let written = directory.create(Path::new(name), content, For::Owner)?;
    Ok(if written { Done::Written } else { Done::Kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_definition::Settings;

    /// The examples of a template, as they are once the `#` is removed.
    fn with_examples(template: &str) -> String {
        let line = |line: &str| match line.strip_prefix('#') {
            Some(example) if !example.is_empty() && !example.starts_with(' ') => {
                format!("{example}\n")
            }
            _ => format!("{line}\n"),
        };
        template.lines().map(line).collect()
    }

    #[test]
    fn the_templates_are_valid_with_and_without_their_examples() {
        let path = Path::new("belljar.toml");
        for text in [HOME_CONFIG.to_owned(), with_examples(HOME_CONFIG)] {
            assert!(Settings::parse(Some((path, &text)), None, None).is_ok(), "{text}");
        }
        for text in [WORKSPACE_CONFIG.to_owned(), with_examples(WORKSPACE_CONFIG)] {
            assert!(Settings::parse(None, Some((path, &text)), None).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_there_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let write =
            |content: &[u8]| write_new(dir.path(), &dir.path().join("a/b"), content).unwrap();
        assert!(matches!(write(b"one"), Done::Written));
        assert!(matches!(write(b"two"), Done::Kept));
        assert_eq!(fs::read(dir.path().join("a/b")).unwrap(), b"one");
    }
}
