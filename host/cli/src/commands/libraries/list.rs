//! `belljar agents libraries`.

use std::path::Path;

use belljar_catalogue::PinState;
use belljar_policy::ShownText;
use serde_json::{Value, json};

use crate::args::server::TenantArg;
use crate::libraries::{InstalledLibrary, LibraryLock, is_reserved};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// How a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryState {
    /// As its files are.
    Files(PinState),
    /// The name has another meaning, from before such names were refused: the library is not used.
    Misnamed,
}

impl LibraryState {
    pub(crate) const WHOLE: Self = Self::Files(PinState::Whole);

    pub(crate) fn for_library(library: &InstalledLibrary, dir: &Path) -> Self {
        Self::Files(PinState::from_files(&library.files, dir))
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Files(pin) => pin.as_str(),
            Self::Misnamed => "name is belljar's own",
        }
    }
}

pub(super) fn run(
    json: bool,
    of: &TenantArg,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let rows: Vec<_> = lock
        .libraries
        .iter()
        .map(|(name, library)| {
            let dir = places.libraries_directory().join(&library.directory);
            let state = match is_reserved(name.as_str()) {
                true => LibraryState::Misnamed,
                false => LibraryState::for_library(library, &dir),
            };
            (name, library, state, dir)
        })
        .collect();
    let whole = rows.iter().all(|(_, _, state, _)| *state == LibraryState::WHOLE);
    let exit = if whole { CommandExit::Completed } else { CommandExit::Usage };
    if json {
        let rows = rows.iter().map(|(name, library, state, dir)| {
            json!({
                "library": name.as_str(),
                "source": library.source,
                "revision": library.revision,
                "agents": library.files.len(),
                "directory": dir,
                "state": state.as_str(),
            })
        });
        out.print_json(&rows.collect::<Vec<Value>>())?;
        return Ok(exit);
    }
    if rows.is_empty() {
        let add = of.format_command("belljar agents add SOURCE");
        out.note(format_args!("no library is installed; `{add}` adds one"));
        return Ok(exit);
    }
    let mut table = TextTable::new(out, &["library", ">agents", "state", "revision", "source"]);
    for (name, library, state, _) in &rows {
        let style = if *state == LibraryState::WHOLE { TextStyle::Green } else { TextStyle::Red };
        let revision = library.revision.as_deref().unwrap_or("-");
        table.push_row([
            plain_cell(name),
            plain_cell(library.files.len()),
            styled_cell(style, state.as_str()),
            plain_cell(ShownText::clip_line(revision, 12)),
            plain_cell(&library.source),
        ]);
    }
    table.print_to(out);
    for (name, _, state, _) in rows.iter().filter(|(_, _, state, _)| *state != LibraryState::WHOLE)
    {
        if *state == LibraryState::Misnamed {
            out.print_warning(format_args!(
                "library `{name}` has a name of belljar's own, and is not used; remove it with \
                 `{}`, and add it with `--name NAME`",
                of.format_command(&format!("belljar agents remove {name}"))
            ));
            continue;
        }
        out.print_warning(format_args!(
            "library `{name}` is not as it was installed, and those files are not used; \
             `{}` puts it right",
            of.format_command(&format!("belljar agents update {name}"))
        ));
    }
    Ok(exit)
}
