//! `belljar init`: writes a configuration with a model, the stock agents and an AGENTS.md into the operator's
//! home; with `--workspace`, files for the workspace. Existing files are not changed.

mod finding;
mod model;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::args::InitArgs;
use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::embedded::{self, AGENTS};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, not_written};
use crate::setup::walls::WallRaiser;
use crate::term::out::{TerminalOutput, TextStyle};
use belljar_policy::ShownPath as _;

/// The template of the home's `belljar.toml`.
const HOME_CONFIG: &str = include_str!("../../templates/belljar.toml");
/// The template of a workspace's `belljar.toml`.
const WORKSPACE_CONFIG: &str = include_str!("../../templates/workspace.toml");

/// The file with instructions for every agent.
const INSTRUCTIONS: &str = "AGENTS.md";

/// What happened to one file.
enum InitResult {
    Written,
    Kept,
}

/// Runs the command for the home or for the workspace.
pub(super) fn run(
    args: &InitArgs,
    places: &HomePaths,
    in_workspace: bool,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if in_workspace && (args.no_model || !args.model_at.is_empty()) {
        return Err(Failure::usage("a workspace's own settings name no model")
            .with_hint("leave out `--workspace`: models are set up in your home"));
    }
    if in_workspace {
        return init_workspace(places, walls, out);
    }
    for (path, content) in home_files(places)? {
        let done = write_new(&places.home, &path, content)
            .map_err(|error| not_written("write", &path, &error))?;
        print_result(&done, &path, out);
    }
    model::set_up(args, places, out)
}

/// Writes the files of a workspace. It may be a stranger's repository, so no link is followed.
fn init_workspace(
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    if places.is_around_home() {
        return Err(Failure::usage(format!(
            "`{}` is belljar's home, so this workspace has no settings of its own",
            places.home.to_shown()
        ))
        .with_hint("`belljar init` without `--workspace` sets up the home"));
    }
    let below = DirectoryHandle::open(&places.workspace)
        .map_err(|error| not_written("open", &places.workspace, &error))?;
    let files = workspace_files()?;
    walls.raise_around(&[&places.workspace]);
    for (name, content) in files {
        let path = places.workspace.join(name);
        let done = match below.create_file(Path::new(name), content, FileAudience::Everybody) {
            Ok(true) => InitResult::Written,
            Ok(false) => InitResult::Kept,
            // In many repositories, AGENTS.md is a link to a file for another program.
            Err(_) if name == INSTRUCTIONS && is_link(&path) => InitResult::Kept,
            Err(error) => {
                let why = format!("failed to write `{}`: {error}", path.to_shown());
                return Err(Failure::new(why).with_hint(match error.kind() {
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                        "you may not write there; name a workspace that you may write to"
                    }
                    _ => "look at who put that there; take it away, or name another workspace",
                }));
            }
        };
        print_result(&done, &path, out);
    }
    Ok(CommandExit::Completed)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
}

/// Prints what happened to one file.
fn print_result(done: &InitResult, path: &Path, out: &TerminalOutput) {
    let word = match done {
        InitResult::Written => out.paint(TextStyle::Green, "wrote"),
        InitResult::Kept => out.paint(TextStyle::Yellow, "kept "),
    };
    out.print_line(format_args!("{word} {}", path.to_shown()));
}

/// The files of a home, with their contents.
fn home_files(places: &HomePaths) -> Result<Vec<(PathBuf, &'static [u8])>, Failure> {
    let mut files = vec![
        (places.config_path(), HOME_CONFIG.as_bytes()),
        (places.home.join(INSTRUCTIONS), embedded::find_file(AGENTS, INSTRUCTIONS)?),
    ];
    let agents = places.agents_directory();
    files.extend(
        embedded::files_below(AGENTS, "agents/").map(|(name, bytes)| (agents.join(name), bytes)),
    );
    Ok(files)
}

/// The files of a workspace, with their contents.
fn workspace_files() -> Result<[(&'static str, &'static [u8]); 2], Failure> {
    Ok([
        (".belljar/belljar.toml", WORKSPACE_CONFIG.as_bytes()),
        (INSTRUCTIONS, embedded::find_file(AGENTS, INSTRUCTIONS)?),
    ])
}

/// Writes a file of the home, unless the name is taken, even by a link to nothing. The file and its new
/// directories are private to their owner.
fn write_new(home: &Path, path: &Path, content: &[u8]) -> io::Result<InitResult> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(unnamed)?;
    let directory = below::in_home(home, parent)?;
    if is_link(path) {
        return Ok(InitResult::Kept);
    }
    let written = directory.create_file(Path::new(name), content, FileAudience::Owner)?;
    Ok(if written { InitResult::Written } else { InitResult::Kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_definition::Settings;

    /// The text of a template, with the `#` before its examples removed.
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
        assert!(matches!(write(b"one"), InitResult::Written));
        assert!(matches!(write(b"two"), InitResult::Kept));
        assert_eq!(fs::read(dir.path().join("a/b")).unwrap(), b"one");
    }
}
