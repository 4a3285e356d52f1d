//! `mv`.

use super::options::{Options, unknown};
use super::paths::{absolute, name, reason};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use std::path::PathBuf;

pub(super) struct Mv;

#[derive(Default)]
struct Mode {
    keep: bool,
    only_newer: bool,
    verbose: bool,
    never_into: bool,
    into: Option<String>,
}

impl Mode {
    fn read(given: Vec<(String, Option<String>)>) -> std::result::Result<Mode, String> {
        let mut mode = Mode::default();
        for (option, value) in given {
            match option.as_str() {
                "n" | "no-clobber" => mode.keep = true,
                "f" | "force" | "i" | "interactive" => mode.keep = false,
                "u" | "update" => mode.only_newer = true,
                "v" | "verbose" => mode.verbose = true,
                "T" | "no-target-directory" => mode.never_into = true,
                "t" | "target-directory" => mode.into = value,
                "strip-trailing-slashes" => {}
                other => return Err(unknown("mv", other)),
            }
        }
        Ok(mode)
    }
}

#[async_trait]
impl Builtin for Mv {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let Options { given, mut operands } =
            Options::read(context.args, &["t", "target-directory"]);
        let mode = match Mode::read(given) {
            Ok(mode) => mode,
            Err(text) => return Ok(ExecResult::err(text, 1)),
        };
        let target = mode.into.clone().or_else(|| operands.pop());
        let Some(target) = target.filter(|_| !operands.is_empty()) else {
            return Ok(ExecResult::err("mv: missing file operand\n", 1));
        };
        let directory = absolute(context.cwd, &target);
        let is_directory = !mode.never_into
            && context.fs.stat(&directory).await.is_ok_and(|found| found.file_type.is_dir());
        if !is_directory && (operands.len() > 1 || mode.into.is_some()) {
            let text = format!("mv: target '{target}' is not a directory\n");
            return Ok(ExecResult::err(text, 1));
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        for source in &operands {
            let (to, shown) = if is_directory {
                let shown = format!("{}/{}", target.trim_end_matches('/'), name(source));
                (directory.join(name(source)), shown)
            } else {
                (directory.clone(), target.clone())
            };
            match move_one(&context, &mode, source, &to, &shown).await {
                Ok(true) if mode.verbose => {
                    stdout.push_str(&format!("renamed '{source}' -> '{shown}'\n"));
                }
                Ok(_) => {}
                Err(text) => stderr.push_str(&text),
            }
        }
        let code = i32::from(!stderr.is_empty());
        Ok(ExecResult { stdout: stdout.into(), ..ExecResult::err(stderr, code) })
    }
}

/// Whether it was moved.
async fn move_one(
    context: &BuiltinContext<'_>,
    mode: &Mode,
    source: &str,
    to: &PathBuf,
    shown: &str,
) -> std::result::Result<bool, String> {
    let from = absolute(context.cwd, source);
    let old = context.fs.lstat(&from).await;
    let old = old.map_err(|error| format!("mv: cannot stat '{source}': {}\n", reason(&error)))?;
    if from == *to {
        return Err(format!("mv: '{source}' and '{shown}' are the same file\n"));
    }
    if let Ok(there) = context.fs.lstat(to).await {
        if mode.keep || (mode.only_newer && there.modified >= old.modified) {
            return Ok(false);
        }
        if there.file_type.is_dir() && !old.file_type.is_dir() {
            return Err(format!("mv: cannot overwrite directory '{shown}' with non-directory\n"));
        }
    }
    if old.file_type.is_dir() && to.starts_with(&from) {
        return Err(format!("mv: cannot move '{source}' to a subdirectory of itself, '{shown}'\n"));
    }
    let done = context.fs.rename(&from, to).await;
    done.map_err(|error| format!("mv: cannot move '{source}' to '{shown}': {}\n", reason(&error)))?;
    Ok(true)
}
