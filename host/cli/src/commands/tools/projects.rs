//! `belljar tools new`: makes a project for a new tool, in any language that has an SDK in this build.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use belljar_guest_build::{Language, sdk_path, template_path};
use belljar_policy::{ShownPath as _, ShownText};

use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::embedded::SDK;
use crate::setup::exit::{CommandExit, Failure};
use crate::term::out::TerminalOutput;

/// Writes a project with the SDK of this belljar's release, which builds without changes.
pub(crate) fn new(
    name: &str,
    lang: &str,
    dir: Option<&Path>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    check_name(name)?;
    let language = parse_language(lang)?;
    let dir = dir.map_or_else(|| PathBuf::from(name), Path::to_path_buf);
    // A new directory, so it cannot contain a person's files. Below the working directory, the path may lead
    // through a stranger's files, so no link is followed.
    let made = std::env::current_dir()
        .and_then(|here| below::output_place(&dir, &here.canonicalize()?))
        .and_then(|(at, name)| at.new_directory(&name, FileAudience::Everybody));
    let project = made.map_err(|error| {
        let failure = Failure::new(format!("failed to create `{}`: {error}", dir.to_shown()));
        failure.with_hint(match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "you may not write there; name another directory with `--dir`"
            }
            _ => "name a directory that does not exist yet with `--dir`",
        })
    })?;
    for (path, bytes) in SDK {
        if let Some(path) = template_path(language, path) {
            let path = Path::new(&path);
            let text = fill_template(path, &String::from_utf8_lossy(bytes), name);
            write_project_file(&project, path, text.as_bytes())?;
        } else if let Some(path) = sdk_path(language, path) {
            write_project_file(&project, &Path::new("sdk").join(path), bytes)?;
        }
    }
    out.print_line(format_args!("wrote the tool `{name}` to {}", dir.to_shown()));
    if let Err(missing) = language.find_toolchain(Some(&dir)) {
        let missing = Failure::from(missing);
        out.note(ShownText::new(&missing.message));
        for hint in &missing.hints {
            out.note(format_args!("hint: {}", ShownText::new(hint)));
        }
    }
    out.note(format_args!("next: `belljar tools build {}`", dir.to_shown()));
    Ok(CommandExit::Completed)
}

/// The beginning of lines in a template that are only for the check of belljar's own guide. They are removed
/// from a new project.
const GUIDE: &str = "<!-- guide:";

/// In a page of the guide: a line that stands for any lines of output, and a mark that stands for any text in
/// a line.
const ANY_LINES: &str = "...";
const ANY_TEXT: &str = "[..]";

/// A file of a template, for a tool with this name. In pages, the marks for the check of the guide are
/// removed.
fn fill_template(path: &Path, text: &str, name: &str) -> String {
    let text = text.replace("{{name}}", name);
    if path.extension() != Some(OsStr::new("md")) {
        return text;
    }
    let is_mark =
        |line: &&str| line.trim_start().starts_with(GUIDE) || line.trim_end() == ANY_LINES;
    let lines = text.split_inclusive('\n').filter(|line| !is_mark(line));
    lines.collect::<String>().replace(ANY_TEXT, "…")
}

/// How a tool is offered in this language's SDK; shown for a component that offers no tool.
pub(super) fn publish_advice(language: Language) -> &'static str {
    match language {
        Language::Rust => "publish a function with `belljar_guest::tools!`",
        Language::Python => "offer a function with `@tool`",
        Language::Javascript => "write `export { tools } from \"belljar-tool\"`",
        Language::C => "offer functions with `BJ_TOOLS`",
        Language::Cpp => "offer functions with `BELLJAR_TOOLS`",
        Language::AssemblyScript => "offer a function with `tool`, and export the SDK's `exports`",
        Language::Zig => "offer functions with `bj.offer`",
        Language::Go => "offer a function with `tool.Offer` in `init`",
    }
}

/// Parses the name of a language; an error if its template is not in this build.
fn parse_language(word: &str) -> Result<Language, Failure> {
    let offered: Vec<&str> = Language::ALL
        .iter()
        .filter(|language| SDK.iter().any(|(path, _)| template_path(**language, path).is_some()))
        .map(|language| language.word())
        .collect();
    Language::from_word(word).filter(|language| offered.contains(&language.word())).ok_or_else(
        || {
            Failure::usage(format!("there is no SDK for `{}`", ShownText::clip_line(word, 40)))
                .with_hint(format!("the languages are {}", offered.join(", ")))
        },
    )
}

/// Writes one file of a new project.
fn write_project_file(project: &DirectoryHandle, to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = project.create_file(to, bytes, FileAudience::Everybody);
    written.map(drop).map_err(|error| {
        let to = project.path().join(to);
        Failure::new(format!("failed to write `{}`: {error}", to.to_shown()))
    })
}

/// Words that cannot be the name of a function in one of the languages, for example `for`.
const KEYWORDS: &str = include_str!("keywords.txt");

/// Checks the name of a new tool. It also becomes the name of a function, so fewer names are allowed than
/// elsewhere.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if is_keyword(name) {
        return Err(Failure::usage(format!(
            "`{name}` cannot be the name of a function in every language"
        ))
        .with_hint("choose a name of two words, such as `word_count`"));
    }
    if is_name(name) {
        return Ok(());
    }
    let failure =
        Failure::usage(format!("`{}` is not a tool name", ShownText::clip_line(name, 80)))
            .with_hint("use a lower-case letter, then letters, digits and `_`, at most 64 in all");
    let meant = name.to_ascii_lowercase().replace(['-', ' ', '.'], "_");
    let is_meant = is_name(&meant) && !is_keyword(&meant);
    Err(if is_meant { failure.with_hint(format!("such as `{meant}`")) } else { failure })
}

fn is_keyword(name: &str) -> bool {
    KEYWORDS.split_whitespace().any(|word| word == name)
}

/// Returns whether a name has only lower-case letters, digits and `_`, begins with a letter, and has at most
/// 64 characters.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_')
        && bytes.len() <= 64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use belljar_definition::ToolManifest;

    use super::*;

    /// Makes a project in a temporary directory.
    fn made(lang: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        new("word_count", lang, Some(&project), &TerminalOutput::new(true, false)).unwrap();
        (dir, project)
    }

    /// Collects the files below a directory, sorted, without the SDK.
    fn files(root: &Path, below: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(root).unwrap().to_path_buf();
            if path.is_dir() && relative != Path::new("sdk") {
                files(root, &path, found);
            } else if path.is_file() {
                found.push(relative);
            }
        }
        found.sort();
    }

    #[test]
    fn a_new_project_of_each_language_has_its_sdk_and_no_placeholder() {
        for language in Language::ALL {
            let (_dir, project) = made(language.word());
            assert_eq!(Language::from_project(&project), Some(*language));
            let mut found = Vec::new();
            files(&project, &project, &mut found);
            for path in [".gitignore", "README.md", "tool.toml"] {
                assert!(found.iter().any(|file| file == Path::new(path)), "{language:?}: {path}");
            }
            for path in found {
                let text = fs::read_to_string(project.join(&path)).unwrap();
                assert!(!text.contains("{{"), "{language:?}: {}: {text}", path.to_shown());
                assert!(!text.contains("guide:"), "{language:?}: {}: {text}", path.to_shown());
                if path.extension() == Some(OsStr::new("md")) {
                    let marks = text.contains(ANY_TEXT) || text.lines().any(|it| it == ANY_LINES);
                    assert!(!marks, "{language:?}: {}: {text}", path.to_shown());
                }
            }
            assert!(project.join("sdk").join(language.word()).is_dir(), "{language:?}");
            let contract = match language {
                Language::Rust => "sdk/wit/tool.wit",
                _ => "sdk/wit/deps/belljar-tool/tool.wit",
            };
            assert!(project.join(contract).is_file(), "{language:?}");
            let manifest = fs::read_to_string(project.join("tool.toml")).unwrap();
            assert!(ToolManifest::parse(Path::new("tool.toml"), &manifest).is_ok());
        }
    }

    /// With `BELLJAR_WRITE_DOCS=1` the examples are written instead of compared.
    #[test]
    fn the_example_of_each_language_is_what_a_new_project_holds() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-sdk/examples");
        for language in Language::ALL.iter().filter(|language| **language != Language::Rust) {
            let (_dir, project) = made(language.word());
            let example = examples.join(language.word());
            let mut found = Vec::new();
            files(&project, &project, &mut found);
            found.retain(|path| path != Path::new(".gitignore"));
            for path in &found {
                let made = fs::read(project.join(path)).unwrap();
                if std::env::var_os("BELLJAR_WRITE_DOCS").is_some() {
                    fs::create_dir_all(example.join(path).parent().unwrap()).unwrap();
                    fs::write(example.join(path), &made).unwrap();
                }
                // The page of an example is a page of the guide, with its marks.
                let kept = fs::read(example.join(path)).unwrap_or_default();
                let kept =
                    fill_template(path, &String::from_utf8_lossy(&kept), "word_count").into_bytes();
                assert!(
                    kept == made,
                    "`guest-sdk/examples/{}/{}` is another: run this test with BELLJAR_WRITE_DOCS=1",
                    language.word(),
                    path.to_shown()
                );
            }
        }
    }

    #[test]
    fn a_language_without_an_sdk_is_refused_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        let refused = new("word_count", "cobol", Some(&project), &TerminalOutput::new(true, false));
        assert!(refused.unwrap_err().hints[0].contains("python"));
        assert!(!project.exists());
    }

    #[test]
    fn a_directory_that_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            new("word_count", "rust", Some(dir.path()), &TerminalOutput::new(true, false)).is_err()
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_that_are_no_function_are_refused() {
        for bad in ["", "1a", "a-b", "Abc", "a/b", "../x", "fn", "fn\n", "def", "double", "func"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        let hints = |name: &str| check_name(name).unwrap_err().hints;
        assert_eq!(hints("Word-Count")[1], "such as `word_count`");
        assert_eq!((hints("../x").len(), hints("Fn").len()), (1, 1));
    }
}
