//! Changes for a person: what would run later first, then the files, then the lines.

use belljar_changes::{Changes, Clash, FileChange, FileDifference, Node, Stat};
use belljar_policy::{Shown, ShownPath as _};

use crate::setup::exit::{Failure, chain};
use crate::term::diff;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Files that a list shows; `--json` and `--patch` have all.
const MAX_LISTED: usize = 200;

/// The files of one directory.
pub(crate) fn files(changes: &Changes, out: &Out) {
    let (later, others): (Vec<_>, Vec<_>) =
        changes.told().partition(|file| file.runs_later.is_some());
    if !later.is_empty() {
        let title = match later.len() {
            1 => "1 would run later by itself:".to_owned(),
            n => format!("{n} would run later by themselves:"),
        };
        out.line(out.paint(Style::Red, title));
        list(&later, out);
        if !others.is_empty() {
            out.line("");
        }
    }
    list(&others, out);
    if let Some(code) = code(changes.stat().code) {
        out.line("");
        out.line(code);
    }
}

/// The note that ordinary source text runs too, because no list of names can cover it.
pub(crate) fn code(files: usize) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 file is code that your next build or test run executes".to_owned()),
        n => Some(format!("{n} files are code that your next build or test run executes")),
    }
}

fn list(files: &[&FileChange], out: &Out) {
    let mut table = Table::new(out, &["", "", "", ""]);
    for file in files.iter().take(MAX_LISTED) {
        let style = match file.kind {
            FileDifference::Added => Style::Green,
            FileDifference::Deleted => Style::Red,
            FileDifference::Modified | FileDifference::Renamed { .. } | FileDifference::Mode => {
                Style::Yellow
            }
        };
        table.row([
            styled(style, word(file)),
            plain(name(file)),
            plain(lines(file)),
            plain(why(file)),
        ]);
    }
    table.print(out);
    if files.len() > MAX_LISTED {
        out.line(format_args!("and {} more; `--json` lists all", files.len() - MAX_LISTED));
    }
}

fn word(file: &FileChange) -> &'static str {
    match file.kind {
        FileDifference::Added => "new",
        FileDifference::Modified => "changed",
        FileDifference::Deleted => "deleted",
        FileDifference::Renamed { .. } => "renamed",
        FileDifference::Mode => "mode",
    }
}

/// The path, with the previous one, and the kind if not a file.
pub(crate) fn name(file: &FileChange) -> String {
    let slash = if file.node == Node::Directory { "/" } else { "" };
    match &file.kind {
        FileDifference::Renamed { from, .. } => {
            format!("{}{slash} (was {}{slash})", file.path.shown(), from.shown())
        }
        _ => format!("{}{slash}", file.path.shown()),
    }
}

fn lines(file: &FileChange) -> String {
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

fn why(file: &FileChange) -> String {
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
    Shown::new(&said.join("; ")).to_string()
}

/// Lines of clashes that are shown of a file.
const MAX_CLASH_LINES: usize = 60;

/// The lines changed both in the workspace and by the agent, yours with `-` and the agent's with `+`; one
/// text for each place, escaped.
pub(crate) fn clashes(changes: &Changes, file: &FileChange) -> Result<Vec<String>, Failure> {
    let found = changes.clashes(file).map_err(|error| Failure::new(chain(&error)))?;
    let mut lines = Vec::new();
    for Clash { line, ours, theirs } in &found {
        lines.push(format!("@@ {}, line {line}: yours -, the agent's + @@", name(file)));
        for (mark, text) in [('-', ours), ('+', theirs)] {
            let text = String::from_utf8_lossy(text);
            lines.extend(text.lines().map(|line| format!("{mark}{}", Shown::multiline(line))));
        }
    }
    if lines.len() > MAX_CLASH_LINES {
        let more = lines.len() - MAX_CLASH_LINES;
        lines.truncate(MAX_CLASH_LINES);
        lines.push(format!("and {more} lines more"));
    }
    Ok(lines)
}

/// The lines of all files, coloured on a terminal, escaped everywhere. Files that are no text are named.
pub(crate) fn patch(changes: &Changes, out: &Out) -> Result<(), Failure> {
    for file in changes.files() {
        if file.binary {
            out.line(format_args!("binary: {} ({})", name(file), lines(file)));
            continue;
        }
        if file.replaced {
            out.line(format_args!(
                "{}: {}; a comparison by lines takes too long",
                name(file),
                lines(file)
            ));
        }
        let mut bytes = Vec::new();
        changes.patch_of(file, &mut bytes).map_err(|error| Failure::new(chain(&error)))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            diff::show_line(line, out);
        }
        let clashes = clashes(changes, file)?;
        if !clashes.is_empty() {
            out.line(format_args!("conflict: both of you changed lines of {}", name(file)));
            clashes.iter().for_each(|line| diff::show_line(line, out));
        }
    }
    Ok(())
}

/// How much it is in all, in a line.
pub(crate) fn total(stats: impl IntoIterator<Item = Stat>) -> Stat {
    let mut all = Stat::default();
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
