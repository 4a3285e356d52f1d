//! The files below a directory, as a developer means them: sorted, without what
//! `.gitignore` names, without `.git`, links not followed.

use crate::{At, ToolError, WorkspacePath};
use globset::{GlobBuilder, GlobMatcher};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::{fs, io};

/// Directories within directories. A tree made to be deeper would use up the stack.
const MAX_DEPTH: usize = 256;

/// One file or link found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is.
    pub path: WorkspacePath,
    /// The path relative to where the walk began; the file's name, when it began at the file.
    pub below: String,
    /// Whether it is a regular file: only such a file is worth opening.
    pub regular: bool,
}

/// What a walk could not see.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread {
    /// Directories and entries that could not be read.
    pub entries: u64,
}

/// Calls `each` for every file below `start` (or for `start` itself, when it is a file),
/// in the order of names within each directory, until `each` answers `false`. `given` is
/// `start` as the model wrote it, for errors.
///
/// # Errors
///
/// When `start` itself cannot be read, or `each` fails. What lies deeper and cannot be read
/// is counted instead.
pub fn files(
    start: &WorkspacePath,
    given: &str,
    mut each: impl FnMut(Found) -> Result<bool, ToolError>,
) -> Result<Unread, ToolError> {
    if !fs::metadata(start).at(given)?.is_dir() {
        let name = start.shown().rsplit('/').next().unwrap_or_default().to_owned();
        each(Found { path: start.clone(), below: name, regular: true })?;
        return Ok(Unread::default());
    }
    let entries = sorted(start).at(given)?;
    let mut walk = Walk { each, ignores: above(start), unread: Unread::default() };
    walk.directory(start, "", entries, MAX_DEPTH)?;
    Ok(walk.unread)
}

type Entries = Vec<(String, fs::FileType)>;

struct Walk<F> {
    each: F,
    /// The `.gitignore` files that hold here, the nearest last.
    ignores: Vec<Gitignore>,
    unread: Unread,
}

impl<F: FnMut(Found) -> Result<bool, ToolError>> Walk<F> {
    /// Walks one directory whose entries have been read; `false` when the caller has enough.
    fn directory(
        &mut self,
        directory: &WorkspacePath,
        below: &str,
        entries: Entries,
        depth: usize,
    ) -> Result<bool, ToolError> {
        let has_own = entries.iter().any(|(name, _)| name == IGNORE_FILE);
        if has_own {
            self.ignores.push(rules(directory));
        }
        for (name, kind) in entries {
            let path = directory.join(&name);
            if name == ".git" || self.is_ignored(&path, kind.is_dir()) {
                continue;
            }
            let below = if below.is_empty() { name } else { format!("{below}/{name}") };
            let more = if kind.is_dir() {
                match sorted(&path) {
                    Ok(entries) if depth > 0 => {
                        self.directory(&path, &below, entries, depth - 1)?
                    }
                    _ => {
                        self.unread.entries = self.unread.entries.saturating_add(1);
                        true
                    }
                }
            } else {
                (self.each)(Found { path, below, regular: kind.is_file() })?
            };
            if !more {
                return Ok(false);
            }
        }
        if has_own {
            self.ignores.pop();
        }
        Ok(true)
    }

    fn is_ignored(&self, path: &WorkspacePath, is_directory: bool) -> bool {
        for rules in self.ignores.iter().rev() {
            match rules.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

const IGNORE_FILE: &str = ".gitignore";

/// The rules of the directories above `start`, which hold below it too.
fn above(start: &WorkspacePath) -> Vec<Gitignore> {
    let mut ignores = Vec::new();
    // What lies above a directory that was given by itself is not there to be read.
    if start.shown() == "." || start.is_elsewhere() {
        return ignores;
    }
    let mut directory = WorkspacePath::root();
    for part in start.shown().split('/') {
        if part == ".." {
            break;
        }
        if fs::metadata(directory.join(IGNORE_FILE)).is_ok_and(|metadata| metadata.is_file()) {
            ignores.push(rules(&directory));
        }
        directory = directory.join(part);
    }
    ignores
}

/// The rules of one directory. A line that cannot be understood is passed over, as Git does.
fn rules(directory: &WorkspacePath) -> Gitignore {
    let mut builder = GitignoreBuilder::new(directory);
    let _ = builder.add(directory.join(IGNORE_FILE));
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// A directory's entries in the order of their names.
fn sorted(directory: &WorkspacePath) -> io::Result<Entries> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

/// A glob over the paths of a walk.
///
/// A pattern without `/` is matched against file names, one with `/` against the path
/// relative to the walk's start, and one below `/workspace/` against the path relative to the
/// workspace. `*` does not cross a `/`, `**` does. A name in brackets is found too: `[id].tsx`
/// finds the file of that very name beside `i.tsx` and `d.tsx`.
#[derive(Clone, Debug)]
pub struct Glob {
    /// The pattern, and the pattern with its brackets taken literally where it has any.
    matchers: Vec<GlobMatcher>,
    about: About,
    hint: Option<String>,
}

/// What a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Name,
    BelowStart,
    BelowWorkspace,
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// [`ToolError::InvalidArguments`] that says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Glob, ToolError> {
        let (about, rest) = match pattern.strip_prefix("/workspace/") {
            Some(rest) => (About::BelowWorkspace, rest),
            None if pattern.contains('/') && !is_name(pattern) => (About::BelowStart, pattern),
            None => (About::Name, pattern),
        };
        let rest = rest.trim_start_matches("./").trim_start_matches('/');
        let compile = |pattern: &str| {
            let built = GlobBuilder::new(pattern).literal_separator(true).build();
            built.map(|glob| glob.compile_matcher())
        };
        let literal = rest.contains('[').then(|| compile(&rest.replace('[', "[[]")).ok()).flatten();
        let matchers = match (compile(rest), literal) {
            (Ok(matcher), literal) => std::iter::once(matcher).chain(literal).collect(),
            (Err(error), _) => return Err(ToolError::InvalidArguments(error.to_string())),
        };
        Ok(Glob { matchers, about, hint: hint(pattern) })
    }

    /// Whether the pattern matches a file that a walk has found.
    #[must_use]
    pub fn finds(&self, found: &Found) -> bool {
        match self.about {
            About::BelowWorkspace => self.is_match(found.path.shown()),
            About::Name | About::BelowStart => self.matches(&found.below),
        }
    }

    /// Whether the pattern matches a path relative to the walk's start.
    #[must_use]
    pub fn matches(&self, below: &str) -> bool {
        match self.about {
            About::Name => self.is_match(below.rsplit('/').next().unwrap_or(below)),
            About::BelowStart | About::BelowWorkspace => self.is_match(below),
        }
    }

    fn is_match(&self, subject: &str) -> bool {
        self.matchers.iter().any(|matcher| matcher.is_match(subject))
    }

    /// Why a pattern that has matched nothing could not match, and what to write instead; `given` is
    /// where the walk began, as the model wrote it.
    #[must_use]
    pub fn hint(&self, pattern: &str, given: &str) -> Option<String> {
        let start = given.trim_start_matches("./").trim_end_matches('/');
        let again = !matches!(start, "" | ".")
            && self.about == About::BelowStart
            && pattern
                .trim_start_matches("./")
                .strip_prefix(start)
                .is_some_and(|rest| rest.starts_with('/'));
        match again {
            true => Some(format!("a pattern is relative to `path`: leave `{start}/` out")),
            false => self.hint.clone(),
        }
    }
}

/// Whether nothing but `./` stands before a name.
fn is_name(pattern: &str) -> bool {
    !pattern.trim_start_matches("./").contains('/')
}

/// Why a pattern of this form matches no path of a walk.
fn hint(pattern: &str) -> Option<String> {
    if pattern.starts_with('/') && !pattern.starts_with("/workspace/") {
        return Some("an absolute path is relative to the directory searched here; the workspace is `/workspace`".to_owned());
    }
    if pattern.starts_with('~') {
        return Some("`~` is no directory here; the workspace is `/workspace`".to_owned());
    }
    if pattern.split('/').any(|part| part == "..") {
        return Some("`..` in a pattern matches nothing: name the directory in `path`".to_owned());
    }
    if pattern.contains('\\') && !pattern.contains('/') {
        return Some(
            "`\\` makes the next character literal: write `/` between directories".to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_is_about_names() {
        let glob = Glob::new("*.rs").unwrap();
        assert!(glob.matches("a.rs") && glob.matches("src/deep/a.rs"));
        assert!(!glob.matches("a.rs/b"));
    }

    #[test]
    fn a_pattern_with_a_slash_is_about_paths() {
        let glob = Glob::new("src/**/*.rs").unwrap();
        assert!(glob.matches("src/a.rs") && glob.matches("src/deep/a.rs"));
        assert!(!glob.matches("tests/a.rs"));
        let glob = Glob::new("src/*.rs").unwrap();
        assert!(!glob.matches("src/deep/a.rs"));
    }

    fn found(path: &str, below: &str) -> Found {
        let path = WorkspacePath::parse(path).unwrap();
        Found { path, below: below.to_owned(), regular: true }
    }

    #[test]
    fn a_pattern_below_the_workspace_is_about_whole_paths_wherever_the_walk_began() {
        for pattern in ["/workspace/src/**/*.rs", "/workspace/**/a.rs", "/workspace//src/x/a.rs"] {
            let glob = Glob::new(pattern).unwrap();
            assert!(glob.finds(&found("src/x/a.rs", "src/x/a.rs")), "{pattern}");
            assert!(glob.finds(&found("src/x/a.rs", "x/a.rs")), "{pattern}");
        }
        let glob = Glob::new("/workspace/*.rs").unwrap();
        assert!(!glob.finds(&found("src/a.rs", "a.rs")));
    }

    #[test]
    fn a_name_in_brackets_is_found_as_it_stands_and_as_a_class() {
        let glob = Glob::new("app/[slug]/*.tsx").unwrap();
        assert!(glob.matches("app/[slug]/page.tsx") && glob.matches("app/s/page.tsx"));
        assert!(!glob.matches("app/x/page.tsx"));
        assert!(Glob::new("[...all].ts").unwrap().matches("pages/[...all].ts"));
    }

    #[test]
    fn a_pattern_that_cannot_match_is_explained() {
        let hint = |pattern: &str, path: &str| {
            Glob::new(pattern).unwrap().hint(pattern, path).unwrap_or_default()
        };
        assert!(hint("/home/me/p/*.rs", ".").contains("`/workspace`"));
        assert!(hint("~/p/*.rs", ".").contains("`~`"));
        assert!(hint("../*.rs", ".").contains("`..`"));
        assert!(hint("src\\*.rs", ".").contains("write `/`"));
        assert!(hint("src/*.rs", "./src/").contains("leave `src/` out"));
        assert_eq!(hint("src/*.rs", "."), "");
    }

    #[test]
    fn a_bad_pattern_is_a_bad_argument() {
        assert!(matches!(Glob::new("a[").map(|_| ()), Err(ToolError::InvalidArguments(_))));
    }
}
