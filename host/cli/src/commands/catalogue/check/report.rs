//! Prints the result of `agents check`: a line for each file, a table of libraries, and a summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use super::verdict::{JudgedFile, JudgedFileKind};
use crate::commands::catalogue::agents::written_for;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// The most files for which all findings are printed; with more files, each gets one line.
const IN_FULL: usize = 5;

/// The most characters of the reason in a line.
const MAX_REASON: usize = 120;

/// Prints a line for each file, and the findings if there are few files.
pub(crate) fn print_lines(verdicts: &[JudgedFile], out: &TerminalOutput) {
    let width = verdicts.iter().map(|verdict| verdict.kind.as_str().len()).max().unwrap_or(0);
    for verdict in verdicts {
        let word = format!("{:width$}", verdict.kind.as_str());
        let path = ShownText::new(&verdict.path.to_string_lossy()).to_string();
        let agent = verdict.agent.as_ref().map_or(String::new(), |agent| {
            let definition = &agent.definition;
            format!(
                "  agent `{}` ({})",
                ShownText::new(&definition.name),
                written_for(definition.dialect)
            )
        });
        let reason = first_reason(verdict).map_or(String::new(), |reason| format!("  {reason}"));
        out.print_line(format_args!(
            "{}  {path}{agent}{reason}",
            out.paint(kind_style(verdict.kind), word)
        ));
        if verdicts.len() <= IN_FULL {
            for reason in
                verdict.reasons.iter().filter(|_| verdict.kind == JudgedFileKind::Blocked).skip(1)
            {
                out.print_line(format_args!("{:width$}  {}", "", ShownText::new(reason)));
            }
            if let Some(command) = verdict.agent.as_ref().and_then(|agent| agent.grant.as_ref()) {
                let command = ShownText::new(command);
                out.print_line(format_args!(
                    "{:width$}  to give it what it asks for: `{command}`",
                    ""
                ));
            }
        }
    }
    if verdicts.len() <= IN_FULL {
        let found: Vec<_> = verdicts.iter().flat_map(|verdict| &verdict.diagnostics).collect();
        out.print_diagnostics(&found.into_iter().cloned().collect::<Vec<_>>());
    }
}

/// The first reason of a verdict, and the number of further ones.
fn first_reason(verdict: &JudgedFile) -> Option<String> {
    let first = verdict.reasons.first()?;
    let more = match verdict.reasons.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!("{}{more}", ShownText::clip_line(first, MAX_REASON)))
}

/// Prints a table with a row for each folder directly below the given directories.
pub(crate) fn by_library(roots: &[PathBuf], verdicts: &[JudgedFile], out: &TerminalOutput) {
    let mut libraries: BTreeMap<String, Vec<&JudgedFile>> = BTreeMap::new();
    for verdict in verdicts {
        libraries.entry(library_name(roots, &verdict.path)).or_default().push(verdict);
    }
    let mut headings = vec!["library", ">files"];
    let kinds: Vec<String> =
        JudgedFileKind::ALL.iter().map(|kind| format!(">{}", kind.as_str())).collect();
    headings.extend(kinds.iter().map(String::as_str));
    let mut table = TextTable::new(out, &headings);
    let mut row = |name: String, verdicts: &[&JudgedFile]| {
        let count = |kind| verdicts.iter().filter(|verdict| verdict.kind == kind).count();
        let counts = JudgedFileKind::ALL.into_iter().map(|kind| match count(kind) {
            0 => plain_cell(0),
            n => styled_cell(kind_style(kind), n),
        });
        table.push_row([plain_cell(name), plain_cell(verdicts.len())].into_iter().chain(counts));
    };
    for (library, verdicts) in &libraries {
        row(ShownText::clip_line(library, 80).to_string(), verdicts);
    }
    if libraries.len() > 1 {
        row("all".to_owned(), &verdicts.iter().collect::<Vec<_>>());
    }
    table.print_to(out);
}

/// The name of the first folder below the given directory; for a file directly in it, the directory's own.
fn library_name(roots: &[PathBuf], path: &Path) -> String {
    let below = roots.iter().find_map(|root| Some((root, path.strip_prefix(root).ok()?)));
    let Some((root, below)) = below else { return path.to_string_lossy().into_owned() };
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(first), Some(_)) => first.as_os_str().to_string_lossy().into_owned(),
        _ => root.to_string_lossy().into_owned(),
    }
}

/// Prints the number of files with each verdict.
pub(crate) fn print_summary(verdicts: &[JudgedFile], out: &TerminalOutput) {
    let counts = JudgedFileKind::ALL.into_iter().filter_map(|kind| {
        let count = verdicts.iter().filter(|verdict| verdict.kind == kind).count();
        (count > 0).then(|| format!("{count} {}", kind.as_str()))
    });
    let counts: Vec<String> = counts.collect();
    let files = if verdicts.len() == 1 { "file" } else { "files" };
    let counts = if counts.is_empty() { "nothing to check".to_owned() } else { counts.join(", ") };
    out.print_line(format_args!("{} {files}: {counts}", verdicts.len()));
    if verdicts.len() > IN_FULL
        && verdicts.iter().any(|verdict| verdict.kind == JudgedFileKind::Invalid)
    {
        out.note("`belljar agents check FILE` shows the lines of one file, `--json` all findings");
    }
}

/// The colour of a verdict.
fn kind_style(kind: JudgedFileKind) -> TextStyle {
    match kind {
        JudgedFileKind::Ready => TextStyle::Green,
        JudgedFileKind::Warnings => TextStyle::Yellow,
        JudgedFileKind::Blocked | JudgedFileKind::Invalid => TextStyle::Red,
        JudgedFileKind::NotAnAgent => TextStyle::Dim,
    }
}
