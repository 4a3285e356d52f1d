//! Reads installed tools: `tools/NAME/{tool.wasm,tool.toml}`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_definition::{Diagnostic, ToolManifest};
use belljar_policy::{ShownPath as _, ShownText, ToolName};
use belljar_sandbox::Wasm;
use belljar_work::{OPERATOR, WorkKind};
use futures::future::join_all;

use crate::command::wrap_command;
use crate::limits::{MAX_COMPONENT_BYTES, MAX_MANIFEST_BYTES, MAX_TOOL_DIRS};

/// An installed tool's directory, as read.
#[derive(Debug)]
pub(crate) struct InstalledTool {
    pub(crate) name: ToolName,
    /// The component's file.
    pub(crate) path: PathBuf,
    pub(crate) wasm: Wasm,
    pub(crate) manifest: ToolManifest,
}

/// Reads every tool directory below `dir` concurrently, off the async threads. A missing `dir` means no
/// tools.
pub(crate) async fn scan_tools(
    dir: &Path,
    reserved: impl Fn(&ToolName) -> bool,
) -> (Vec<InstalledTool>, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let names = list_directories(dir, &mut problems);
    let mut reading = Vec::new();
    for (name, path) in names {
        let Ok(name) = ToolName::new(&name) else {
            let shown = ShownText::clip_line(&name, 64);
            let message = format!("`{shown}` is no tool name");
            problems.push(Diagnostic::for_file(&path, "bad-name", message));
            continue;
        };
        if reserved(&name) {
            let message = format!("tool `{name}` is left out: a built-in tool has that name");
            problems.push(Diagnostic::for_file(&path, "name-taken", message));
            continue;
        }
        reading.push(belljar_work::run_job(&READ, OPERATOR, move |_| read_tool(name, &path)));
    }
    let mut installed = Vec::new();
    for result in join_all(reading).await {
        match result {
            Ok(Ok(tool)) => installed.push(tool),
            Ok(Err(found)) => problems.extend(found),
            Err(failed) => {
                let message = format!("a tool cannot be read: {failed}");
                problems.push(Diagnostic::for_file(dir, "read", message));
            }
        }
    }
    (installed, problems)
}

/// Work of the operator, who owns the directories.
const READ: WorkKind = WorkKind { name: "reading a tool", time: Duration::from_secs(120) };

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Opening or reading failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A special file, for example a FIFO, a device, a directory.
    #[error("it is not a regular file")]
    Special,
    /// Longer than the limit; holds the length in bytes.
    #[error("it has {0} bytes, which is too much")]
    TooLarge(u64),
}

/// Reads a regular file of at most `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    // The kind is checked before opening, because opening a FIFO would wait for a writer.
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(ReadError::Special);
    }
    if meta.len() > limit {
        return Err(ReadError::TooLarge(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    // The file may have grown since the check.
    fs::File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > limit { Err(ReadError::TooLarge(length)) } else { Ok(bytes) }
}

/// Advice for reading a file that the system denies this process, if known.
fn way_to_read(path: &Path, found: &ReadError) -> Option<String> {
    let ReadError::Io(error) = found else { return None };
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    let above = path.parent().and_then(Path::parent).and_then(|dir| dir.canonicalize().ok())?;
    let target = path.canonicalize().ok()?;
    if target.starts_with(&above) {
        return Some("its owner can let this user read it, with `chmod` or `chown`".to_owned());
    }
    Some(format!(
        "its link leads to `{}`, and the OS sandbox lets a process follow only the links that were \
         there when it started: start this process again, or copy the tool to `{}`",
        target.to_shown(),
        above.to_shown()
    ))
}

/// The names and paths of the directories in `dir`, one for each tool.
fn list_directories(dir: &Path, problems: &mut Vec<Diagnostic>) -> Vec<(String, PathBuf)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(found) if found.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(found) => {
            problems.push(Diagnostic::for_file(dir, "read", format!("cannot be read: {found}")));
            return Vec::new();
        }
    };
    let mut found: Vec<(String, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(name, _)| !name.starts_with('.'))
        .take(MAX_TOOL_DIRS + 1)
        .collect();
    found.sort();
    if found.len() > MAX_TOOL_DIRS {
        found.truncate(MAX_TOOL_DIRS);
        let message = format!("more than {MAX_TOOL_DIRS} tools; the rest is left out");
        problems.push(Diagnostic::for_file(dir, "too-many", message));
    }
    found
}

/// Reads the component and the manifest of a tool.
fn read_tool(name: ToolName, dir: &Path) -> Result<InstalledTool, Vec<Diagnostic>> {
    let toml = dir.join("tool.toml");
    let out = |path: &Path, code, why: &str| {
        vec![Diagnostic::for_file(path, code, format!("tool `{name}` is left out: {why}"))]
    };
    let unread = |path: &Path, found: ReadError| {
        let way = way_to_read(path, &found).map_or_else(String::new, |way| format!("; {way}"));
        out(path, "read", &format!("{found}{way}"))
    };
    let text = read_bounded(&toml, MAX_MANIFEST_BYTES).map_err(|found| unread(&toml, found))?;
    let text = String::from_utf8(text).map_err(|_| out(&toml, "utf8", "not UTF-8"))?;
    let manifest = ToolManifest::parse(&toml, &text)?;
    let path = dir.join("tool.wasm");
    let wasm = read_bounded(&path, MAX_COMPONENT_BYTES).map_err(|found| unread(&path, found))?;
    let wasm = wrap_command(Wasm::new(wasm).with_name(name.as_str()), &manifest)
        .map_err(|why| out(&toml, "bad-command", &format!("`[command]`: {why}")))?;
    // The digest is computed here, off the async threads.
    let _ = wasm.digest();
    Ok(InstalledTool { name, path, wasm, manifest })
}
