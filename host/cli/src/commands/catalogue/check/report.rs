//! The output of `agents check`: a line a file, a table of libraries, a summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_policy::Shown;

use super::verdict::{Kind, Verdict};
use crate::commands::catalogue::agents::written_for;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Files up to which everything about each is shown; of more, a line.
const IN_FULL: usize = 5;

/// Characters of the reason on a line.
const MAX_REASON: usize = 120;

/// The files as lines, with findings if there are few files.
pub(crate) fn lines(verdicts: &[Verdict], out: &Out) {
    let width = verdicts.iter().map(|verdict| verdict.kind.as_str().len()).max().unwrap_or(0);
    for verdict in verdicts {
        let word = format!("{:width$}", verdict.kind.as_str());
        let path = Shown::new(&verdict.path.to_string_lossy()).to_string();
        let agent = verdict.agent.as_ref().map_or(String::new(), |agent| {
            let definition = &agent.definition;
            format!(
                "  agent `{}` ({})",
                Shown::new(&definition.name),
                written_for(definition.dialect)
            )
        });
        let reason = reason(verdict).map_or(String::new(), |reason| format!("  {reason}"));
        out.line(format_args!("{}  {path}{agent}{reason}", out.paint(style(verdict.kind), word)));
        if verdicts.len() <= IN_FULL {
            for reason in verdict.reasons.iter().filter(|_| verdict.kind == Kind::Blocked).skip(1) {
                out.line(format_args!("{:width$}  {}", "", Shown::new(reason)));
            }
            if let Some(command) = verdict.agent.as_ref().and_then(|agent| agent.grant.as_ref()) {
                let command = Shown::new(command);
                out.line(format_args!("{:width$}  to give it what it asks for: `{command}`", ""));
            }
        }
    }
    if verdicts.len() <= IN_FULL {
        let found: Vec<_> = verdicts.iter().flat_map(|verdict| &verdict.diagnostics).collect();
        out.diagnostics(&found.into_iter().cloned().collect::<Vec<_>>());
    }
}

/// The first reason, and how many there are more.
fn reason(verdict: &Verdict) -> Option<String> {
    let first = verdict.reasons.first()?;
    let more = match verdict.reasons.len() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!("{}{more}", Shown::clipped(first, MAX_REASON)))
}

/// One row for each folder directly below the given directories.
pub(crate) fn by_library(roots: &[PathBuf], verdicts: &[Verdict], out: &Out) {
    let mut libraries: BTreeMap<String, Vec<&Verdict>> = BTreeMap::new();
    for verdict in verdicts {
        libraries.entry(library(roots, &verdict.path)).or_default().push(verdict);
    }
    let mut headings = vec!["library", ">files"];
    let kinds: Vec<String> = Kind::ALL.iter().map(|kind| format!(">{}", kind.as_str())).collect();
    headings.extend(kinds.iter().map(String::as_str));
    let mut table = Table::new(out, &headings);
    let mut row = |name: String, verdicts: &[&Verdict]| {
        let count = |kind| verdicts.iter().filter(|verdict| verdict.kind == kind).count();
        let counts = Kind::ALL.into_iter().map(|kind| match count(kind) {
            0 => plain(0),
            n => styled(style(kind), n),
        });
        table.row([plain(name), plain(verdicts.len())].into_iter().chain(counts));
    };
    for (library, verdicts) in &libraries {
        row(Shown::clipped(library, 80).to_string(), verdicts);
    }
    if libraries.len() > 1 {
        row("all".to_owned(), &verdicts.iter().collect::<Vec<_>>());
    }
    table.print(out);
}

/// The first folder below the given directory; the directory itself for its own files.
fn library(roots: &[PathBuf], path: &Path) -> String {
    let below = roots.iter().find_map(|root| Some((root, path.strip_prefix(root).ok()?)));
    let Some((root, below)) = below else { return path.to_string_lossy().into_owned() };
    let mut parts = below.components();
    match (parts.next(), parts.next()) {
        (Some(first), Some(_)) => first.as_os_str().to_string_lossy().into_owned(),
        _ => root.to_string_lossy().into_owned(),
    }
}

/// How many there are of each kind.
pub(crate) fn summary(verdicts: &[Verdict], out: &Out) {
    let counts = Kind::ALL.into_iter().filter_map(|kind| {
        let count = verdicts.iter().filter(|verdict| verdict.kind == kind).count();
        (count > 0).then(|| format!("{count} {}", kind.as_str()))
    });
    let counts: Vec<String> = counts.collect();
    let files = if verdicts.len() == 1 { "file" } else { "files" };
    let counts = if counts.is_empty() { "nothing to check".to_owned() } else { counts.join(", ") };
    out.line(format_args!("{} {files}: {counts}", verdicts.len()));
    if verdicts.len() > IN_FULL && verdicts.iter().any(|verdict| verdict.kind == Kind::Invalid) {
        out.note("`belljar agents check FILE` shows the lines of one file, `--json` all findings");
    }
}

fn style(kind: Kind) -> Style {
    match kind {
        Kind::Ready => Style::Green,
        Kind::Warnings => Style::Yellow,
        Kind::Blocked | Kind::Invalid => Style::Red,
        Kind::NotAnAgent => Style::Dim,
    }
}
