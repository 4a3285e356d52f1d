//! Parses the tables `table/*.toml`, `shadows.toml` and `words.toml` once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::name::{PathPattern, expand_braces, name_ending};

/// The files with rows. If two rows match a name, the first provides the reason.
pub(super) const FILES: &[(&str, &str)] = &[
    ("git", include_str!("table/git.toml")),
    ("agents", include_str!("table/agents.toml")),
    ("builds", include_str!("table/builds.toml")),
    ("python", include_str!("table/python.toml")),
    ("javascript", include_str!("table/javascript.toml")),
    ("languages", include_str!("table/languages.toml")),
    ("deploy", include_str!("table/deploy.toml")),
    ("editors", include_str!("table/editors.toml")),
    ("systems", include_str!("table/systems.toml")),
];
const SHADOWS: &str = include_str!("shadows.toml");
const WORDS: &str = include_str!("words.toml");

/// A program, with the files that it runs or reads by itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramRow {
    /// The program, or several programs.
    pub(super) program: String,
    /// Patterns for paths, relative to any directory, for example `{pre-commit,commit-msg}.{sh,py}`.
    pub(super) names: Vec<String>,
    /// The reason, as a person reads it.
    pub(super) reason: String,
    /// The documentation that proves the row.
    pub(super) source: String,
    /// Whether files with these names run other files by path.
    #[serde(default)]
    pub(super) refers: bool,
    /// Whether the patterns apply only at the top of the workspace, because the names are common elsewhere.
    #[serde(default)]
    pub(super) top: bool,
    /// Keys of a JSON file whose values are never run.
    #[serde(default)]
    pub(super) skip: Vec<String>,
    /// Words whose next word is a file to run, in addition to the common ones.
    #[serde(default)]
    pub(super) openers: Vec<String>,
    /// The reason for a file that a file of this row names.
    #[serde(skip)]
    pub(super) turn: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramRows {
    row: Vec<ProgramRow>,
}

/// A language that looks up module names beside the program before the language's own library.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShadowLanguage {
    pub(super) program: String,
    pub(super) reason: String,
    pub(super) source: String,
    /// Directories of the lookup: `*` = any directory that is not a package, `.` = the workspace.
    pub(super) roots: Vec<String>,
    /// Suffixes of files with modules, for example `.py`.
    pub(super) endings: Vec<String>,
    /// The file that makes a directory a module, for example `__init__.py`.
    pub(super) package: Option<String>,
    /// The modules, with `/` between their parts.
    pub(super) names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShadowLanguages {
    language: Vec<ShadowLanguage>,
}

/// Word lists that belong to no particular program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WordLists {
    /// Suffixes of source code, for example `.rs`.
    pub(super) code: Vec<String>,
    /// Suffixes of documents for people. A pattern with an open end does not match such a file.
    pub(super) documents: Vec<String>,
    /// Suffixes of directly executed files, for example `.sh`.
    pub(super) scripts: Vec<String>,
    /// The suffixes, among these, of files that consist mostly of commands: such files are searched for names
    /// too.
    pub(super) shells: Vec<String>,
    /// Programs that run the file in their next argument, for example `python`.
    pub(super) openers: Vec<String>,
    /// Options before the name of a module, for example `-m`.
    pub(super) modules: Vec<String>,
    /// Words before a directory in which the next commands run, for example `cd`.
    pub(super) enters: Vec<String>,
    /// Directories of third-party code, for example `node_modules`, which are not searched.
    pub(super) passed_over: Vec<String>,
    /// Endings of tools' own file names without a dot, for example `Fakefile`, `bspwmrc`.
    pub(super) own_files: Vec<String>,
}

/// The parsed tables, with indexes.
#[derive(Debug)]
pub(super) struct LaterTables {
    pub(super) rows: Vec<ProgramRow>,
    pub(super) languages: Vec<ShadowLanguage>,
    pub(super) words: WordLists,
    patterns: Vec<(PathPattern, usize)>,
    /// Patterns by their first name, if that name has no star.
    exact: HashMap<String, Vec<usize>>,
    /// Patterns that begin with a star and a suffix, by the suffix.
    tails: HashMap<String, Vec<usize>>,
    /// Patterns of a single name, by the first character.
    initials: HashMap<char, Vec<usize>>,
    others: Vec<usize>,
}

/// `None` = a table cannot be parsed; a test proves that all can.
static TABLE: LazyLock<Option<LaterTables>> = LazyLock::new(|| LaterTables::parse_tables().ok());

/// The tables.
pub(super) fn later_tables() -> Option<&'static LaterTables> {
    TABLE.as_ref()
}

impl LaterTables {
    /// Parses all tables; the error names the invalid one.
    pub(super) fn parse_tables() -> Result<Self, String> {
        let mut rows = Vec::new();
        for (name, text) in FILES {
            let read: ProgramRows =
                toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
            rows.extend(read.row);
        }
        let shadows: ShadowLanguages =
            toml::from_str(SHADOWS).map_err(|error| error.to_string())?;
        let words: WordLists = toml::from_str(WORDS).map_err(|error| error.to_string())?;
        for language in &shadows.language {
            let said = [&language.program, &language.reason, &language.source];
            if said.iter().any(|text| text.is_empty()) {
                return Err(format!("`{}` lacks a reason or a source", language.program));
            }
        }
        let mut table = Self {
            rows: Vec::new(),
            languages: shadows.language,
            words,
            patterns: Vec::new(),
            exact: HashMap::new(),
            tails: HashMap::new(),
            initials: HashMap::new(),
            others: Vec::new(),
        };
        for row in rows {
            table.add_row(row)?;
        }
        Ok(table)
    }

    /// Adds a row of the table, with the patterns of its paths.
    fn add_row(&mut self, mut row: ProgramRow) -> Result<(), String> {
        if [&row.program, &row.reason, &row.source].iter().any(|text| text.is_empty()) {
            return Err(format!("`{}` lacks a reason or a source", row.program));
        }
        let at = self.rows.len();
        for text in &row.names {
            let names = expand_braces(text);
            let names = names.ok_or_else(|| format!("`{text}`: its braces are not understood"))?;
            for name in names {
                let pattern = PathPattern::new(&name);
                let pattern = pattern.ok_or_else(|| format!("`{name}` is no pattern"))?;
                self.index_pattern(pattern, at);
            }
        }
        row.turn = format!("a file for {} names it: it may run in turn", row.program);
        self.rows.push(row);
        Ok(())
    }

    /// Adds a pattern of a row to the index by names.
    fn index_pattern(&mut self, pattern: PathPattern, row: usize) {
        let at = self.patterns.len();
        let first = pattern.first_name();
        let exact = first.and_then(|first| first.exact_name()).map(str::to_owned);
        let tail = first.and_then(|first| first.ending_with_dot()).map(str::to_owned);
        let initial =
            first.and_then(|first| first.first_character()).filter(|_| pattern.is_one_name());
        match (exact, tail, initial) {
            (Some(name), ..) => self.exact.entry(name).or_default().push(at),
            (_, Some(tail), _) => self.tails.entry(tail).or_default().push(at),
            (_, _, Some(initial)) => self.initials.entry(initial).or_default().push(at),
            (None, None, None) => self.others.push(at),
        }
        self.patterns.push((pattern, row));
    }

    /// The first row accepted by `is_asked` with a pattern that matches the end of these folded names.
    pub(super) fn find_row(
        &self,
        names: &[String],
        is_dir: bool,
        is_asked: impl Fn(&ProgramRow) -> bool,
    ) -> Option<&ProgramRow> {
        let last = names.last()?;
        let document =
            name_ending(last).is_some_and(|it| self.words.documents.iter().any(|d| d == it));
        let fits = |at: &usize, from: usize, names: &[String]| {
            let (pattern, row) = self.patterns.get(*at)?;
            let fits = pattern.matches_beginning(names, is_dir) && !(document && pattern.is_open());
            let row = self.rows.get(*row).filter(|row| fits && (from == 0 || !row.top));
            row.is_some_and(&is_asked).then_some(*at)
        };
        let mut best: Option<usize> = None;
        for (from, name) in names.iter().enumerate() {
            let Some(rest) = names.get(from..) else { continue };
            let dots = name.match_indices('.').filter_map(|(dot, _)| name.get(dot..));
            let tails = dots.filter_map(|tail| self.tails.get(tail)).flatten();
            let initial = name.chars().next().filter(|_| rest.len() == 1);
            let initial = initial.and_then(|initial| self.initials.get(&initial));
            let exact = self.exact.get(name).into_iter().flatten();
            let all = exact.chain(tails).chain(initial.into_iter().flatten()).chain(&self.others);
            let found = all.filter_map(|at| fits(at, from, rest)).min();
            best = best.into_iter().chain(found).min();
        }
        let (_, row) = self.patterns.get(best?)?;
        self.rows.get(*row)
    }

    /// Every pattern, one for each alternative, with its row.
    #[cfg(test)]
    pub(super) fn written_patterns(&self) -> impl Iterator<Item = (String, &ProgramRow)> {
        let names = self.rows.iter().flat_map(|row| row.names.iter().map(move |name| (name, row)));
        names.flat_map(|(name, row)| {
            expand_braces(name).unwrap().into_iter().map(move |name| (name, row))
        })
    }
}
