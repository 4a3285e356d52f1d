//! Paths as models write them, and the guest's current directory.

use crate::ToolError;
use std::path::Path;
use std::{fmt, fs, io};

/// Where the workspace is. A native build (unit tests) uses its current directory.
pub const ROOT: &str = if cfg!(target_family = "wasm") { "/workspace" } else { "." };

/// The prefix that models may use for absolute paths.
const PREFIX: &str = "/workspace";

/// A path that a model gave, made absolute for `std::fs` and relative for showing.
///
/// This decides nothing about rights: a path that leaves the workspace is handed on in a
/// form that the host refuses, so that the attempt stands in the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspacePath {
    full: String,
    /// Where the path relative to the root begins in `full`.
    relative: usize,
}

impl WorkspacePath {
    /// Reads a path: relative to the workspace, or absolute under `/workspace` or another
    /// directory that the tool was given. `""` and `.` are the workspace itself.
    ///
    /// # Errors
    ///
    /// [`ToolError::InvalidArguments`] when the text holds a NUL character, which no path can.
    pub fn parse(given: &str) -> Result<WorkspacePath, ToolError> {
        Self::parse_beside(given, mounts())
    }

    fn parse_beside(given: &str, mounts: &[String]) -> Result<WorkspacePath, ToolError> {
        if given.contains('\0') {
            return Err(ToolError::InvalidArguments(
                "a path cannot hold a NUL character".to_owned(),
            ));
        }
        let mut full = String::with_capacity(ROOT.len() + 4 + given.len());
        let inside = below(given, PREFIX);
        if inside.is_none() && mounts.iter().any(|mount| below(given, mount).is_some()) {
            let parts = given.split('/').filter(|part| !part.is_empty() && *part != ".");
            parts.for_each(|part| {
                full.push('/');
                full.push_str(part);
            });
            return Ok(WorkspacePath { full, relative: 0 });
        }
        full.push_str(ROOT);
        let inside = match inside {
            Some(rest) => rest,
            None => {
                if given.starts_with('/') {
                    // `/etc` seen from `/workspace`. No preopened directory contains it; said
                    // this way the request reaches the host, which refuses and records it.
                    full.push_str("/..");
                }
                given
            }
        };
        for part in inside.split('/').filter(|part| !part.is_empty() && *part != ".") {
            full.push('/');
            full.push_str(part);
        }
        let relative = full.len().min(ROOT.len() + 1);
        Ok(WorkspacePath { full, relative })
    }

    /// The workspace itself.
    #[must_use]
    pub fn root() -> WorkspacePath {
        WorkspacePath { full: ROOT.to_owned(), relative: ROOT.len() }
    }

    /// The path as outputs show it: relative to the workspace, `.` for the workspace itself,
    /// absolute elsewhere.
    #[must_use]
    pub fn shown(&self) -> &str {
        match &self.full[self.relative..] {
            "" => ".",
            path => path,
        }
    }

    /// The same path with one more component.
    #[must_use]
    pub fn join(&self, name: &str) -> WorkspacePath {
        let mut full = self.full.clone();
        full.push('/');
        full.push_str(name);
        // The workspace's own path has nothing behind its root yet.
        let relative = if self.relative == 0 { 0 } else { ROOT.len() + 1 };
        WorkspacePath { full, relative }
    }

    /// Whether it lies in another directory than the workspace.
    #[cfg(feature = "walk")]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.relative == 0
    }
}

/// What follows `directory` in a path below it, or the directory itself.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The directories that this instance was given.
#[cfg(target_family = "wasm")]
fn mounts() -> &'static [String] {
    use std::sync::OnceLock;

    static MOUNTS: OnceLock<Vec<String>> = OnceLock::new();
    MOUNTS.get_or_init(|| {
        let given = wasip2::filesystem::preopens::get_directories();
        given.into_iter().map(|(_, name)| name).collect()
    })
}

/// Natively there is only the current directory.
#[cfg(not(target_family = "wasm"))]
fn mounts() -> &'static [String] {
    &[]
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.full)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

/// Gives a file new content, or creates it.
///
/// The content goes to a temporary file beside it (`.NAME.belljar-new`), which then takes
/// its place: when the disk or a quota runs out, the old content is untouched. Each byte is
/// written, and billed, once. The price is that the new file has the default permissions, and
/// that other names of the old one (hard links) keep the old content. A symbolic link is
/// written through instead, so that it stays a link.
///
/// # Errors
///
/// The I/O error of the step that failed; the temporary file is removed.
pub fn replace_file(path: &WorkspacePath, content: &[u8]) -> io::Result<()> {
    let target: &Path = path.as_ref();
    if target.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        return fs::write(target, content);
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{name}.belljar-new"));
    let done = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, target));
    if done.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Makes the workspace the current directory, once per instance: wasi-libc starts every
/// program in `/`, and the standard library has no way to change that.
#[cfg(target_family = "wasm")]
pub(crate) fn enter() {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::Once;

    #[expect(unsafe_code, reason = "wasi-libc's chdir has no safe binding for this target")]
    fn change_directory(path: &CStr) {
        unsafe extern "C" {
            fn chdir(path: *const c_char) -> c_int;
        }
        // SAFETY: the pointer is to a NUL-terminated string that outlives the call, which
        // only reads it. Without a workspace the call fails, and relative paths then fail
        // with an ordinary error.
        let _ = unsafe { chdir(path.as_ptr()) };
    }

    static ONCE: Once = Once::new();
    ONCE.call_once(|| change_directory(c"/workspace"));
}

/// Natively there is nothing to enter: tests run where they run.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn enter() {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, full: &str, shown: &str) {
        let path = WorkspacePath::parse(given).unwrap();
        assert_eq!((path.full.as_str(), path.shown()), (full, shown), "for {given:?}");
    }

    #[test]
    fn relative_and_absolute_spellings_of_a_path_are_the_same() {
        check("src/a.rs", "./src/a.rs", "src/a.rs");
        check("./src//a.rs", "./src/a.rs", "src/a.rs");
        check("/workspace/src/a.rs", "./src/a.rs", "src/a.rs");
        check("src/", "./src", "src");
        check("", ".", ".");
        check(".", ".", ".");
        check("/workspace", ".", ".");
    }

    #[test]
    fn a_path_outside_stays_outside_for_the_host_to_refuse() {
        check("../key", "./../key", "../key");
        check("/etc/passwd", "./../etc/passwd", "../etc/passwd");
        check("/workspaces/x", "./../workspaces/x", "../workspaces/x");
    }

    #[test]
    fn another_directory_that_was_given_is_reached_by_its_absolute_path() {
        let mounts = ["/workspace".to_owned(), "/out".to_owned()];
        let parse = |given: &str| WorkspacePath::parse_beside(given, &mounts).unwrap();
        for (given, full, shown) in [
            ("/out", "/out", "/out"),
            ("/out/./a//b", "/out/a/b", "/out/a/b"),
            ("/out/../etc", "/out/../etc", "/out/../etc"),
            ("/outer/a", "./../outer/a", "../outer/a"),
            ("/workspace/out", "./out", "out"),
            ("out", "./out", "out"),
        ] {
            let path = parse(given);
            assert_eq!((path.full.as_str(), path.shown()), (full, shown), "for {given:?}");
        }
        assert_eq!(parse("/out").join("a").shown(), "/out/a");
        assert_eq!(WorkspacePath::root().join("a").shown(), "a");
    }

    #[test]
    fn a_nul_character_is_refused() {
        assert!(WorkspacePath::parse("a\0b").is_err());
    }
}
