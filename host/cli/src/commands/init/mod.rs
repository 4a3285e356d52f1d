//! `belljar init`: a configuration with a model, the stock agents and an AGENTS.md, in the
//! operator's home; with `--workspace`, what belongs into that workspace. What is there stays as
//! it is.

mod finding;
mod model;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::args::InitArgs;
use crate::setup::embedded::{self, AGENTS};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private, not_written};
use crate::setup::ours::create_new_private;
use crate::term::out::{Out, Style};
use belljar_policy::ShownPath as _;

const HOME_CONFIG: &str = include_str!("../../templates/belljar.toml");
const WORKSPACE_CONFIG: &str = include_str!("../../templates/workspace.toml");

/// The end of one file.
enum Done {
    Written,
    Kept,
}

pub(super) fn run(
    args: &InitArgs,
    places: &Places,
    in_workspace: bool,
    out: &Out,
) -> Result<Exit, Failure> {
    if in_workspace && (args.no_model || !args.model_at.is_empty()) {
        return Err(Failure::usage("a workspace's own settings name no model")
            .hint("leave out `--workspace`: models are set up in your home"));
    }
    let files = if in_workspace { workspace_files(places)? } else { home_files(places)? };
    if !in_workspace {
        create_private(&places.home)
            .map_err(|error| not_written("create", &places.home, &error))?;
    }
    for (path, content) in files {
        let done = write_new(&path, content, !in_workspace)
            .map_err(|error| not_written("write", &path, &error))?;
        let word = match done {
            Done::Written => out.paint(Style::Green, "wrote"),
            Done::Kept => out.paint(Style::Yellow, "kept "),
        };
        out.line(format_args!("{word} {}", path.shown()));
    }
    if in_workspace { Ok(Exit::Completed) } else { model::set_up(args, places, out) }
}

fn home_files(places: &Places) -> Result<Vec<(PathBuf, &'static [u8])>, Failure> {
    let mut files = vec![
        (places.config(), HOME_CONFIG.as_bytes()),
        (places.home.join("AGENTS.md"), embedded::file(AGENTS, "AGENTS.md")?),
    ];
    let agents = places.agents();
    files
        .extend(embedded::below(AGENTS, "agents/").map(|(name, bytes)| (agents.join(name), bytes)));
    Ok(files)
}

fn workspace_files(places: &Places) -> Result<Vec<(PathBuf, &'static [u8])>, Failure> {
    Ok(vec![
        (places.workspace_config(), WORKSPACE_CONFIG.as_bytes()),
        (places.workspace.join("AGENTS.md"), embedded::file(AGENTS, "AGENTS.md")?),
    ])
}

/// Writes a file unless something of that name is there, even a dangling link.
/// A `private` one is closed to others, with the directories made for it.
fn write_new(path: &Path, content: &[u8], private: bool) -> io::Result<Done> {
    if let Some(parent) = path.parent() {
        if private { create_private(parent)? } else { fs::create_dir_all(parent)? }
    }
    let opened = match private {
        true => create_new_private(path),
        false => OpenOptions::new().write(true).create_new(true).open(path),
    };
    match opened {
        Ok(mut file) => {
            let written = file.write_all(content).and_then(|()| file.sync_all());
            if written.is_err() {
                // Half a file would be kept by the next `init`.
                let _ = fs::remove_file(path);
            }
            written.map(|()| Done::Written)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Done::Kept),
        Err(error) => Err(error),
    }
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
        let path = dir.path().join("a/b");
        assert!(matches!(write_new(&path, b"one", true).unwrap(), Done::Written));
        assert!(matches!(write_new(&path, b"two", true).unwrap(), Done::Kept));
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }
}
