//! `file_write`: creates or replaces a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use belljar_guest::prelude::*;
use std::fs;
use std::path::Path;

/// Bytes of one file. A model that writes more in one call has gone astray, and the
/// arguments of a call are held in memory several times.
const MAX_CONTENT: usize = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workspace.
    path: String,
    /// The whole content of the file.
    content: String,
    /// Create missing parent directories. Default: false.
    create_dirs: Option<bool>,
}

fn file_write(args: Args) -> ToolResult {
    if args.content.len() > MAX_CONTENT {
        return Err(ToolError::TooLarge(format!(
            "`content` has {} bytes; the most for one file is {MAX_CONTENT}",
            args.content.len()
        )));
    }
    let path = WorkspacePath::parse(&args.path)?;
    let target: &Path = path.as_ref();
    let existed = match fs::metadata(target) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(ToolError::Failed(format!("`{}` is a directory", args.path)));
        }
        Ok(_) => true,
        Err(_) => false,
    };
    if let Some(parent) = target.parent().filter(|_| !existed) {
        prepare(parent, &args)?;
    }
    belljar_guest::replace_file(&path, args.content.as_bytes()).at(&args.path)?;
    let done = if existed { "replaced" } else { "created" };
    Ok(Output::text(format!("{done} {path}: {} bytes", args.content.len())))
}

/// Makes the directory that the file goes to, or says that it is missing: the error of
/// writing would name the file.
fn prepare(parent: &Path, args: &Args) -> Result<(), ToolError> {
    if args.create_dirs.unwrap_or(false) {
        return fs::create_dir_all(parent).at(&args.path);
    }
    match fs::metadata(parent) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ToolError::NotFound(format!(
                "the directory of `{}` does not exist; set `create_dirs` to create it",
                args.path
            )))
        }
        other => other.map(|_| ()).at(&args.path),
    }
}

belljar_guest::tools! {
    file_write(Args): "Writes a text file of the workspace: creates it, or replaces all of its content. \
        To change part of an existing file use `file_edit`, which needs only the changed text. \
        Says whether the file was created or replaced and how many bytes it has.",
        hints: idempotent;
}
