//! Saves the files that tools handed over into the directory that the person chose.

use std::io;
use std::path::{Path, PathBuf};

use belljar_agent::{Attachment, Outcome};
use belljar_policy::{ShownPath as _, ShownText};

use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::home::{HomePaths, create_private};
use crate::term::out::TerminalOutput;
use crate::term::table;

/// Most bytes of a file name; common file systems allow 255, and a number may be added.
const MAX_NAME: usize = 120;

/// The most attempts to find a free name, for example `report-2.txt`, before an attachment is not saved.
const MAX_TRIES: u32 = 1_000;

/// Saves the attachments of the run and its subagents, and writes the path into each. A failure is only a
/// warning, because the rest of the outcome still counts.
pub(crate) fn save_attachments(
    outcome: &mut Outcome,
    to: Option<&Path>,
    places: &HomePaths,
    out: &TerminalOutput,
) {
    let default = places.files_of(outcome.run.as_str());
    let directory = to.unwrap_or(&default);
    for_each_attachment(outcome, &mut |attachment| {
        let name = ShownText::clip_line(&attachment.name, MAX_NAME).to_string();
        let place = match to {
            None => create_private(directory).and_then(|()| DirectoryHandle::open(directory)),
            Some(directory) => below::output_directory(directory, &places.workspace),
        };
        let whose = if to.is_none() { FileAudience::Owner } else { FileAudience::Everybody };
        match place.and_then(|place| write_attachment(attachment, &place, whose)) {
            Ok(path) => {
                let size = table::format_size(attachment.size);
                out.note(format_args!("attached {name} ({size}): {}", path.to_shown()));
                attachment.saved_to = Some(path);
            }
            Err(error) => out.print_warning(format_args!(
                "attachment `{name}` is not saved in `{}`: {error}",
                directory.to_shown()
            )),
        }
    });
}

/// Calls `work` for each attachment of an outcome and of its subagents.
fn for_each_attachment(outcome: &mut Outcome, work: &mut dyn FnMut(&mut Attachment)) {
    outcome.attachments.iter_mut().for_each(&mut *work);
    for child in &mut outcome.children {
        for_each_attachment(&mut child.outcome, work);
    }
}

/// Writes a new file. An existing file is not replaced, and no link is followed.
fn write_attachment(
    attachment: &Attachment,
    directory: &DirectoryHandle,
    whose: FileAudience,
) -> io::Result<PathBuf> {
    let name = file_name(&attachment.name);
    for number in 1..=MAX_TRIES {
        let name = PathBuf::from(numbered_name(&name, number));
        match directory.create_file(&name, &attachment.data, whose) {
            Ok(true) => return Ok(directory.path().join(name)),
            // The name is taken, so the next number is tried.
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many files of that name"))
}

/// Makes a plain file name of a stranger's: without separators, without a dot or dash at its beginning, and
/// without characters that have a meaning for a shell or a terminal.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut plain = String::new();
    for c in last.chars() {
        let c = if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        if plain.len() + c.len_utf8() > MAX_NAME {
            break;
        }
        plain.push(c);
    }
    let plain = plain.trim_start_matches(['.', '-']).trim_end_matches('.');
    if plain.is_empty() { "attachment".to_owned() } else { plain.to_owned() }
}

/// Adds a number before the ending: `report.txt`, `report-2.txt`, ...
fn numbered_name(name: &str, number: u32) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, extension))) => format!("{stem}-{number}.{extension}"),
        (_, None) => format!("{name}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_paths_become_plain_names() {
        for (given, plain) in [
            ("../../etc/passwd", "passwd"),
            ("C:\\a\\b.txt", "b.txt"),
            (".bashrc", "bashrc"),
            ("-rf", "rf"),
            ("..", "attachment"),
            ("", "attachment"),
            ("a b\u{1b}[2J\u{202e}.txt", "a_b__2J_.txt"),
        ] {
            assert_eq!(file_name(given), plain);
        }
        assert!(file_name(&"x".repeat(500)).len() <= MAX_NAME);
    }

    #[test]
    fn later_files_of_a_name_are_numbered() {
        assert_eq!(numbered_name("a.txt", 1), "a.txt");
        assert_eq!(numbered_name("a.txt", 2), "a-2.txt");
        assert_eq!(numbered_name("a", 3), "a-3");
    }
}
