//! `shell`: a POSIX shell with the usual utilities, entirely inside the component.
//!
//! The language is `bashkit`'s; here are the files it sees ([`files`]), the session that
//! lasts between calls ([`session`]), the commands that are kept and those that cannot be
//! ([`utilities`], `absent`), and what is shown of a result ([`answer`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod absent;
pub mod answer;
pub mod files;
mod limits;
mod programs;
pub mod session;
#[cfg(target_family = "wasm")]
mod threads;
pub mod utilities;

use belljar_guest::prelude::*;
use session::Session;
use std::cell::RefCell;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The script. It may have many lines.
    command: String,
    /// Change to this directory first, as `cd` would: it stays the working directory.
    cwd: Option<String>,
}

thread_local! {
    /// The session of this instance, which lives as long as the jar.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

fn shell(args: Args) -> ToolResult {
    SESSION.with_borrow_mut(|slot| {
        let session = match slot {
            Some(session) => session,
            None => slot.insert(start()?),
        };
        if let Some(cwd) = &args.cwd {
            enter(session, cwd)?;
        }
        Ok(Output::text(answer::text(&session.run(&args.command))))
    })
}

fn start() -> Result<Session, ToolError> {
    Session::new(&files::mounts())
        .map_err(|error| ToolError::Failed(format!("the shell did not start: {error}")))
}

fn enter(session: &mut Session, cwd: &str) -> Result<(), ToolError> {
    let quoted = cwd.replace('\'', r"'\''");
    if session.run(&format!("cd -- '{quoted}' >/dev/null 2>&1")).code != 0 {
        return Err(ToolError::InvalidArguments(format!("`cwd`: `{cwd}` is not a directory")));
    }
    Ok(())
}

belljar_guest::tools! {
    shell(Args): "Runs a shell script (bash syntax) over the files of the workspace, with the usual utilities: cat, \
        sed, awk, grep, find, xargs, sort, diff, jq, tar and more. The working directory, variables and functions \
        last between calls; `set` options do not. Returns stdout, then stderr, then the exit code where it is \
        not 0. It starts no programs: git, compilers, interpreters and the network are not there (exit code 127).";
}
