//! Parses TOML with positions: each error has its position and the key that was probably meant.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use belljar_policy::{LIMITS, LimitsRequest, ShownText};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::agent::list_of;
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition, Severity, clamp_count};
use crate::suggest;

/// The longest TOML file, in bytes. A home file with a page of rights for each of a thousand agents has half
/// of it.
pub const MAX_TOML: usize = 1 << 20;

/// The most entries of one list.
const MAX_LIST: usize = 1_000;

/// The longest file, in bytes, whose syntax errors are all collected. Each error is a text, and a file can
/// have one for every two bytes; of a longer file only the first error is reported.
const MAX_ALL_ERRORS: usize = 64 << 10;

/// Bytes of text between two counts that a [`ColumnIndex`] stores.
const COLUMN_BLOCK: usize = 256;

/// A value with its position.
pub(crate) type Item<'t> = Spanned<DeValue<'t>>;

/// One file during parsing.
pub(crate) struct TomlReader<'t, 'p> {
    lines: Vec<usize>,
    columns: ColumnIndex,
    text: &'t str,
    pub(crate) findings: FileFindings<'p>,
}

/// Stores the number of characters before each block of a text, so a column is found without counting a
/// whole line: a file may be one long line with a finding at each word.
#[derive(Debug, Default)]
struct ColumnIndex(Vec<usize>);

impl ColumnIndex {
    /// Counts the characters of a text, block by block.
    fn from_text(text: &str) -> Self {
        let mut before = vec![0];
        let mut characters = 0;
        for block in text.as_bytes().chunks(COLUMN_BLOCK) {
            characters += count_char_starts(block);
            before.push(characters);
        }
        Self(before)
    }

    /// The characters before a byte position of the text.
    fn characters_before(&self, text: &str, end: usize) -> usize {
        let block = end / COLUMN_BLOCK;
        let known = self.0.get(block).or(self.0.last()).copied().unwrap_or(0);
        let rest = text.as_bytes().get(block.saturating_mul(COLUMN_BLOCK)..end);
        known + rest.map_or(0, count_char_starts)
    }
}

/// The number of characters that begin in these bytes.
fn count_char_starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Parses a text; the error has all syntax errors, or only the first of a long file.
fn parse_toml(text: &str) -> Result<Spanned<DeTable<'_>>, Vec<toml::de::Error>> {
    if text.len() > MAX_ALL_ERRORS {
        return DeTable::parse(text).map_err(|first| vec![first]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() { Ok(table) } else { Err(errors) }
}

impl<'t, 'p> TomlReader<'t, 'p> {
    /// Parses the file's syntax.
    pub(crate) fn open(
        path: &'p Path,
        text: &'t str,
    ) -> Result<(Self, Spanned<DeTable<'t>>), Vec<Diagnostic>> {
        let (lines, columns) = (Vec::new(), ColumnIndex::default());
        let mut reader = Self { lines, columns, text, findings: FileFindings::new(path) };
        if text.len() > MAX_TOML {
            let message = format!("the file has {} bytes, at most {MAX_TOML} are read", text.len());
            reader.findings.error(FilePosition::default(), "too-large", message);
            return Err(reader.findings.into_diagnostics());
        }
        reader.lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        reader.columns = ColumnIndex::from_text(text);
        let errors = match parse_toml(text) {
            Ok(table) => return Ok((reader, table)),
            Err(errors) => errors,
        };
        for error in &errors {
            let at = error.span().map_or(FilePosition::default(), |span| reader.position_of(span));
            // The message may quote the file, so it is escaped like other foreign text.
            let message = ShownText::clip_line(error.message(), 300).to_string();
            reader.findings.error(at, "toml", format!("not valid TOML: {message}"));
        }
        Err(reader.findings.into_diagnostics())
    }

    /// The position at which a span begins.
    pub(crate) fn position_of(&self, span: Range<usize>) -> FilePosition {
        let line = self.lines.partition_point(|start| *start <= span.start);
        let start = line.checked_sub(1).and_then(|n| self.lines.get(n)).copied().unwrap_or(0);
        let along = self.columns.characters_before(self.text, span.start)
            - self.columns.characters_before(self.text, start.min(span.start));
        FilePosition { line: clamp_count(line + 1), column: clamp_count(along + 1) }
    }

    /// Reports the unknown keys of `what`.
    pub(crate) fn report_unknown_keys(&mut self, table: &DeTable<'_>, what: &str, known: &[&str]) {
        for key in table.keys() {
            let name = key.get_ref();
            if known.contains(&name.as_ref()) {
                continue;
            }
            // A suggestion needs a comparison with every known key.
            if self.findings.is_full() {
                self.findings.drop_one(Severity::Error);
            } else {
                let hint = suggest::foreign_key_hint(name, known)
                    .or_else(|| suggest::did_you_mean(name, known.iter().copied()))
                    .unwrap_or_else(|| format!("the keys are {}", list_of(known)));
                let message =
                    format!("`{}` is not a key of {what}", ShownText::clip_line(name, 60));
                self.findings.error_hint(
                    self.position_of(key.span()),
                    "unknown-key",
                    message,
                    hint,
                );
            }
        }
    }

    /// Reports a value of the wrong kind. The value itself is not shown, because people sometimes write a key
    /// where the name of a key belongs.
    pub(crate) fn report_wrong_kind<T>(
        &mut self,
        name: &str,
        item: &Item<'_>,
        wants: &str,
    ) -> Option<T> {
        let kind = item.get_ref().type_str();
        let name = ShownText::clip_line(name, 60);
        let message = format!("`{name}` is {} {kind}, not {wants}", indefinite_article(kind));
        let hint = match (kind, wants) {
            ("array", "a text") => format!("write it without the brackets: `{name} = \"...\"`"),
            ("string", wants) if wants.starts_with("a list") => {
                format!("write it in brackets: `{name} = [\"...\"]`")
            }
            _ => {
                self.findings.error(self.position_of(item.span()), "bad-value", message);
                return None;
            }
        };
        self.findings.error_hint(self.position_of(item.span()), "bad-value", message, hint);
        None
    }

    /// Reports a value that has the right kind and is not accepted. The value itself is not shown, as in
    /// [`TomlReader::report_wrong_kind`].
    pub(crate) fn report_unfit_value<T>(
        &mut self,
        name: &str,
        item: &Item<'_>,
        wants: &str,
    ) -> Option<T> {
        let message = format!("`{}` must be {wants}", ShownText::clip_line(name, 60));
        self.findings.error(self.position_of(item.span()), "bad-value", message);
        None
    }

    /// The value as a table, or a report that it is none.
    pub(crate) fn read_table<'a>(
        &mut self,
        name: &str,
        item: &'a Item<'t>,
    ) -> Option<&'a DeTable<'t>> {
        match item.get_ref().as_table() {
            Some(table) => Some(table),
            None => self.report_wrong_kind(name, item, "a table"),
        }
    }

    /// The value as a text, or a report that it is none.
    pub(crate) fn text_of<'a>(&mut self, name: &str, item: &'a Item<'_>) -> Option<&'a str> {
        match item.get_ref().as_str() {
            Some(text) => Some(text),
            None => self.report_wrong_kind(name, item, "a text"),
        }
    }

    pub(crate) fn read_text(&mut self, table: &DeTable<'t>, name: &str) -> Option<String> {
        let item = table.get(name)?;
        self.text_of(name, item).map(str::to_owned)
    }

    /// The boolean under a key; `None` = absent, or invalid and reported.
    pub(crate) fn read_boolean(&mut self, table: &DeTable<'t>, name: &str) -> Option<bool> {
        let item = table.get(name)?;
        match item.get_ref().as_bool() {
            Some(value) => Some(value),
            None => self.report_wrong_kind(name, item, "`true` or `false`"),
        }
    }

    /// The whole number under a key; `None` = absent, or invalid and reported.
    pub(crate) fn read_number(&mut self, table: &DeTable<'t>, name: &str) -> Option<u64> {
        let item = table.get(name)?;
        match parse_number(item) {
            Some(value) => Some(value),
            None => self.report_unfit_value(name, item, "a whole number, 0 or more"),
        }
    }

    /// The number under a key, whole or not; `None` = absent, or invalid and reported.
    pub(crate) fn read_float(&mut self, table: &DeTable<'t>, name: &str) -> Option<f64> {
        let item = table.get(name)?;
        let value = match item.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(_) => {
                parse_number(item).and_then(|n| u32::try_from(n).ok()).map(f64::from)
            }
            _ => None,
        };
        match value.filter(|value: &f64| value.is_finite()) {
            Some(value) => Some(value),
            None => self.report_wrong_kind(name, item, "a number"),
        }
    }

    /// Reads the entries of a list.
    pub(crate) fn read_list<'a>(
        &mut self,
        name: &str,
        item: &'a Item<'t>,
    ) -> Option<&'a [Item<'t>]> {
        match item.get_ref().as_array() {
            Some(list) if list.len() <= MAX_LIST => Some(list),
            Some(_) | None => {
                self.report_wrong_kind(name, item, &format!("a list of at most {MAX_LIST}"))
            }
        }
    }

    /// Reads a list of texts and parses each. An invalid text is reported and left out.
    pub(crate) fn read_parsed_list<T>(&mut self, name: &str, item: &Item<'t>) -> Option<Vec<T>>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let mut parsed = Vec::new();
        for entry in self.read_list(name, item)? {
            let Some(text) = self.text_of(name, entry) else { continue };
            match text.parse::<T>() {
                Ok(value) => parsed.push(value),
                Err(error) => {
                    self.findings.error(
                        self.position_of(entry.span()),
                        "bad-value",
                        error.to_string(),
                    );
                }
            }
        }
        Some(parsed)
    }

    /// Reads a list of names: tools or secrets.
    pub(crate) fn read_names<T, E>(&mut self, name: &str, item: &Item<'t>) -> Option<BTreeSet<T>>
    where
        T: TryFrom<String, Error = E> + Ord,
        E: std::fmt::Display,
    {
        let mut names = BTreeSet::new();
        for entry in self.read_list(name, item)? {
            let Some(text) = self.text_of(name, entry) else { continue };
            match T::try_from(text.to_owned()) {
                Ok(value) => {
                    names.insert(value);
                }
                Err(error) => {
                    self.findings.error(
                        self.position_of(entry.span()),
                        "bad-name",
                        error.to_string(),
                    );
                }
            }
        }
        Some(names)
    }

    /// Reads a table of limits.
    pub(crate) fn read_limits(&mut self, name: &str, item: &Item<'t>) -> LimitsRequest {
        let mut limits = LimitsRequest::default();
        let Some(table) = self.read_table(name, item) else { return limits };
        let keys: Vec<_> = LIMITS.iter().map(|row| row.key).collect();
        self.report_unknown_keys(table, "`limits`", &keys);
        for key in keys {
            if let Some(value) = self.read_number(table, key) {
                limits.set(key, value);
            }
        }
        limits
    }
}

fn parse_number(item: &Item<'_>) -> Option<u64> {
    let integer = item.get_ref().as_integer()?;
    u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

fn indefinite_article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_characters_wherever_it_is_asked_for() {
        let text = "aé漢😀\n".repeat(200);
        let columns = ColumnIndex::from_text(&text);
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert_eq!(columns.characters_before(&text, end), text[..end].chars().count(), "{end}");
        }
    }

    #[test]
    fn the_place_of_a_finding_costs_the_same_at_both_ends_of_a_line() {
        let text = "é".repeat(MAX_TOML / 2);
        let columns = ColumnIndex::from_text(&text);
        // If each count began at the start of the line, these would read half a terabyte.
        let sum: usize = (0..1_000_000).map(|_| columns.characters_before(&text, text.len())).sum();
        assert_eq!(sum, 1_000_000 * MAX_TOML / 2);
    }
}
