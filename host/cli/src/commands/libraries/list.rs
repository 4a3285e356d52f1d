//! `belljar agents libraries`.

use std::path::Path;

use belljar_catalogue::Pin;
use belljar_policy::Shown;
use serde_json::{Value, json};

use crate::args::server::TenantArg;
use crate::libraries::{Installed, Lock, is_reserved};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// How a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// As its files are.
    Files(Pin),
    /// The name has another meaning, from before such names were refused: the library is not used.
    Misnamed,
}

impl State {
    pub(crate) const WHOLE: Self = Self::Files(Pin::Whole);

    pub(crate) fn of(library: &Installed, dir: &Path) -> Self {
        Self::Files(Pin::of(&library.files, dir))
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Files(pin) => pin.as_str(),
            Self::Misnamed => "name is belljar's own",
        }
    }
}

pub(super) fn run(json: bool, of: &TenantArg, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let lock = Lock::read(&places.libraries())?;
    let rows: Vec<_> = lock
        .libraries
        .iter()
        .map(|(name, library)| {
            let dir = places.libraries().join(&library.directory);
            let state = match is_reserved(name.as_str()) {
                true => State::Misnamed,
                false => State::of(library, &dir),
            };
            (name, library, state, dir)
        })
        .collect();
    let whole = rows.iter().all(|(_, _, state, _)| *state == State::WHOLE);
    let exit = if whole { Exit::Completed } else { Exit::Usage };
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
        out.json(&rows.collect::<Vec<Value>>())?;
        return Ok(exit);
    }
    if rows.is_empty() {
        let add = of.command("belljar agents add SOURCE");
        out.note(format_args!("no library is installed; `{add}` adds one"));
        return Ok(exit);
    }
    let mut table = Table::new(out, &["library", ">agents", "state", "revision", "source"]);
    for (name, library, state, _) in &rows {
        let style = if *state == State::WHOLE { Style::Green } else { Style::Red };
        let revision = library.revision.as_deref().unwrap_or("-");
        table.row([
            plain(name),
            plain(library.files.len()),
            styled(style, state.as_str()),
            plain(Shown::clipped(revision, 12)),
            plain(&library.source),
        ]);
    }
    table.print(out);
    for (name, _, state, _) in rows.iter().filter(|(_, _, state, _)| *state != State::WHOLE) {
        if *state == State::Misnamed {
            out.warning(format_args!(
                "library `{name}` has a name of belljar's own, and is not used; remove it with \
                 `{}`, and add it with `--name NAME`",
                of.command(&format!("belljar agents remove {name}"))
            ));
            continue;
        }
        out.warning(format_args!(
            "library `{name}` is not as it was installed, and those files are not used; \
             `{}` puts it right",
            of.command(&format!("belljar agents update {name}"))
        ));
    }
    Ok(exit)
}
