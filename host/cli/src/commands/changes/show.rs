//! Shows changes to a person: first the files that programs would run later, then the other files, then the
//! changed lines.

use belljar_overlay::{ChangeStat, Changes, FileChange, FileDifference, MergeClash, NodeKind};
use belljar_policy::{ShownPath as _, ShownText};

use crate::setup::exit::{Failure, format_error_chain};
use crate::term::diff;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// The most files in a list; `--json` and `--patch` have all.
const MAX_LISTED: usize = 200;

/// Prints the changed files of one directory.
pub(crate) fn print_files(changes: &Changes, out: &TerminalOutput) {
    let (later, others): (Vec<_>, Vec<_>) =
        changes.listed_changes().partition(|file| file.runs_later.is_some());
    if !later.is_empty() {
        let title = match later.len() {
            1 => "1 would run later by itself:".to_owned(),
            n => format!("{n} would run later by themselves:"),
        };
        out.print_line(out.paint(TextStyle::Red, title));
        list_changes(&later, out);
        if !others.is_empty() {
            out.print_line("");
        }
    }
    list_changes(&others, out);
    if let Some(code) = source_code_note(changes.change_stat().code) {
        out.print_line("");
        out.print_line(code);
    }
}

/// The note that ordinary source code is run later too, because no list of file names can cover that.
pub(crate) fn source_code_note(files: usize) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 file is code that your next build or test run executes".to_owned()),
        n => Some(format!("{n} files are code that your next build or test run executes")),
    }
}

/// Prints a table of changed files.
fn list_changes(files: &[&FileChange], out: &TerminalOutput) {
    let mut table = TextTable::new(out, &["", "", "", ""]);
    for file in files.iter().take(MAX_LISTED) {
        let style = match file.kind {
            FileDifference::Added => TextStyle::Green,
            FileDifference::Deleted => TextStyle::Red,
            FileDifference::Modified | FileDifference::Renamed { .. } | FileDifference::Mode => {
                TextStyle::Yellow
            }
        };
        table.push_row([
            styled_cell(style, change_word(file)),
            plain_cell(change_name(file)),
            plain_cell(change_lines(file)),
            plain_cell(change_notes(file)),
        ]);
    }
    table.print_to(out);
    if files.len() > MAX_LISTED {
        out.print_line(format_args!("and {} more; `--json` lists all", files.len() - MAX_LISTED));
    }
}

/// The kind of change as a word.
fn change_word(file: &FileChange) -> &'static str {
    match file.kind {
        FileDifference::Added => "new",
        FileDifference::Modified => "changed",
        FileDifference::Deleted => "deleted",
        FileDifference::Renamed { .. } => "renamed",
        FileDifference::Mode => "mode",
    }
}

/// The path of a changed file, with its previous path, and its type if it is no regular file.
pub(crate) fn change_name(file: &FileChange) -> String {
    let slash = if file.node == NodeKind::Directory { "/" } else { "" };
    match &file.kind {
        FileDifference::Renamed { from, .. } => {
            format!("{}{slash} (was {}{slash})", file.path.to_shown(), from.to_shown())
        }
        _ => format!("{}{slash}", file.path.to_shown()),
    }
}

/// The number of added and removed lines, or of bytes for a binary file.
fn change_lines(file: &FileChange) -> String {
    if file.binary {
        let size =
            |size: Option<u64>| size.map_or_else(|| "none".to_owned(), |size| size.to_string());
        return format!("{} -> {} bytes", size(file.size_before), size(file.size_after));
    }
    if file.replaced {
        return match file.added == file.removed {
            true => format!("{} lines replaced", file.added),
            false => format!("{} lines replaced by {}", file.removed, file.added),
        };
    }
    if !file.counted {
        return "not counted".to_owned();
    }
    match (file.added, file.removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("-{removed}"),
        (added, removed) => format!("+{added} -{removed}"),
    }
}

/// Notes about a changed file: conflicts, its mode, and why it would be run later.
fn change_notes(file: &FileChange) -> String {
    let mut said = Vec::new();
    if let Some(conflict) = &file.conflict {
        said.push(format!("conflict: {conflict}"));
    } else if file.merges {
        said.push("changed in the workspace too, and merges".to_owned());
    }
    if let (Some(before), Some(after)) = (file.mode_before, file.mode_after)
        && before & 0o777 != after & 0o777
    {
        said.push(format!("{:o} -> {:o}", before & 0o777, after & 0o777));
    }
    said.extend(file.runs_later.map(str::to_owned));
    ShownText::new(&said.join("; ")).to_string()
}

/// The most lines of conflicts that are shown for a file.
const MAX_CLASH_LINES: usize = 60;

/// The lines that both the workspace and the agent changed: the workspace's with `-` and the agent's with
/// `+`, one escaped text for each place.
pub(crate) fn clash_lines(changes: &Changes, file: &FileChange) -> Result<Vec<String>, Failure> {
    let found =
        changes.find_clashes(file).map_err(|error| Failure::new(format_error_chain(&error)))?;
    let mut lines = Vec::new();
    for MergeClash { line, ours, theirs } in &found {
        lines.push(format!("@@ {}, line {line}: yours -, the agent's + @@", change_name(file)));
        for (mark, text) in [('-', ours), ('+', theirs)] {
            let text = String::from_utf8_lossy(text);
            lines.extend(text.lines().map(|line| format!("{mark}{}", ShownText::multiline(line))));
        }
    }
    if lines.len() > MAX_CLASH_LINES {
        let more = lines.len() - MAX_CLASH_LINES;
        lines.truncate(MAX_CLASH_LINES);
        lines.push(format!("and {more} lines more"));
    }
    Ok(lines)
}

/// Prints the changed lines of all files, escaped, and coloured on a terminal. Binary files are only named.
pub(crate) fn print_patch(changes: &Changes, out: &TerminalOutput) -> Result<(), Failure> {
    for file in changes.files() {
        if file.binary {
            out.print_line(format_args!("binary: {} ({})", change_name(file), change_lines(file)));
            continue;
        }
        if file.replaced {
            out.print_line(format_args!(
                "{}: {}; a comparison by lines takes too long",
                change_name(file),
                change_lines(file)
            ));
        }
        let mut bytes = Vec::new();
        changes
            .patch_of(file, &mut bytes)
            .map_err(|error| Failure::new(format_error_chain(&error)))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            diff::show_line(line, out);
        }
        let clashes = clash_lines(changes, file)?;
        if !clashes.is_empty() {
            out.print_line(format_args!(
                "conflict: both of you changed lines of {}",
                change_name(file)
            ));
            clashes.iter().for_each(|line| diff::show_line(line, out));
        }
    }
    Ok(())
}

/// The sum of the amounts of changes.
pub(crate) fn total_stat(stats: impl IntoIterator<Item = ChangeStat>) -> ChangeStat {
    let mut all = ChangeStat::default();
    for stat in stats {
        all.files += stat.files;
        all.added += stat.added;
        all.removed += stat.removed;
        all.run_later += stat.run_later;
        all.code += stat.code;
        all.conflicts += stat.conflicts;
        all.uncounted += stat.uncounted;
    }
    all
}
