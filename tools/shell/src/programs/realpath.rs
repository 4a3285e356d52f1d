//! `realpath`.

use super::options::{Options, unknown};
use super::paths::{absolute, real};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use std::path::{Path, PathBuf};

pub(super) struct Realpath;

/// What must exist of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Must {
    Nothing,
    Parent,
    All,
}

#[async_trait]
impl Builtin for Realpath {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let Options { given, operands } =
            Options::read(context.args, &["relative-to", "relative-base"]);
        let (mut must, mut follow, mut quiet, mut end) = (Must::Parent, true, false, '\n');
        let mut relative_to = None;
        for (option, value) in given {
            match option.as_str() {
                "e" | "canonicalize-existing" => must = Must::All,
                "m" | "canonicalize-missing" => must = Must::Nothing,
                "s" | "no-symlinks" | "strip" => follow = false,
                "P" | "physical" | "L" | "logical" => {}
                "q" | "quiet" => quiet = true,
                "z" | "zero" => end = '\0',
                "relative-to" => relative_to = value,
                other => return Ok(ExecResult::err(unknown("realpath", other), 1)),
            }
        }
        if operands.is_empty() {
            return Ok(ExecResult::err("realpath: missing operand\n", 1));
        }
        let base = match relative_to {
            Some(given) => real(&*context.fs, context.cwd, &given).await,
            None => None,
        };
        let (mut stdout, mut stderr, mut code) = (String::new(), String::new(), 0);
        for given in &operands {
            let path = if follow {
                real(&*context.fs, context.cwd, given).await
            } else {
                Some(absolute(context.cwd, given))
            };
            let found = match path {
                Some(path) if is_there(&context, &path, must).await => Some(path),
                _ => None,
            };
            if let Some(path) = found {
                let path = base.as_ref().map_or(path.clone(), |base| relative(&path, base));
                stdout.push_str(&path.to_string_lossy());
                stdout.push(end);
            } else {
                code = 1;
                if !quiet {
                    stderr.push_str(&format!("realpath: {given}: No such file or directory\n"));
                }
            }
        }
        Ok(ExecResult { stdout: stdout.into(), ..ExecResult::err(stderr, code) })
    }
}

async fn is_there(context: &BuiltinContext<'_>, path: &Path, must: Must) -> bool {
    let needed = match must {
        Must::Nothing => return true,
        Must::Parent => path.parent().unwrap_or(path),
        Must::All => path,
    };
    context.fs.stat(needed).await.is_ok()
}

fn relative(path: &Path, base: &Path) -> PathBuf {
    let shared = path.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().skip(shared).map(|_| "..");
    let down = path.components().skip(shared).map(|part| part.as_os_str());
    let path: PathBuf = up.map(AsRef::as_ref).chain(down).collect();
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}
