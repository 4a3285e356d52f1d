//! Splits keys and values into words, and holds the word tables by which agent files are read for
//! restrictions.
//!
//! The tables are data: `tables/restriction.toml`. A text is normalized to its appearance: a letter that
//! looks like a Latin one is replaced by it, and invisible characters are dropped. For example, `maxTurns`
//! has the words `max` and `turns`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::stated_fields::StatedFields;

/// The longest text cut without blanks or capitals, for example `skiptools`.
const MAX_JOINED: usize = 40;

/// A set of words of one table.
type Words = BTreeSet<String>;

/// The tables.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WordTables {
    pub(super) takes: Words,
    pub(super) takes_in_keys: Words,
    pub(super) takes_joined: Vec<Vec<String>>,
    pub(super) leaves: Words,
    pub(super) gives: Words,
    pub(super) abilities: Words,
    pub(super) places: Words,
    pub(super) vague_places: Words,
    pub(super) bounds: Words,
    pub(super) judged: Words,
    pub(super) judged_lists: Words,
    pub(super) weak: Words,
    pub(super) weak_modes: Words,
    pub(super) reads: Words,
    pub(super) no: Words,
    pub(super) yes: Words,
    pub(super) besides: Words,
    pub(super) fill: Words,
    pub(super) all: Words,
    pub(super) list_of_tools: Words,
    pub(super) list_allows: Words,
    pub(super) list_denies: Words,
    pub(super) rights: Words,
    pub(super) limiting: Words,
    pub(super) refusing_hooks: Words,
    pub(super) display: Words,
    pub(super) switches: Words,
    /// Keys that limit nothing here, each with the reason.
    pub(super) no_limits: BTreeMap<String, String>,
    pub(super) stated: Vec<StatedFields>,
}

/// The tables, normalized like the compared texts; `None` = they cannot be parsed, and then every key
/// restricts. A test proves that they can.
pub(super) static TABLES: LazyLock<Option<WordTables>> = LazyLock::new(|| {
    toml::from_str(&visible_text(include_str!("../../tables/restriction.toml"))).ok()
});

/// Letters of other scripts that look like Latin ones.
const ALIKE: &[(&str, char)] = &[
    ("аα", 'a'),
    ("сϲ", 'c'),
    ("ԁ", 'd'),
    ("еєε", 'e'),
    ("һ", 'h'),
    ("іıΙΙІι", 'i'),
    ("јʝ", 'j'),
    ("ӏⅼ", 'l'),
    ("ոո", 'n'),
    ("оοσօ", 'o'),
    ("рρ", 'p'),
    ("ԛ", 'q'),
    ("ѕ", 's'),
    ("тτ", 't'),
    ("υսν", 'u'),
    ("ѵ", 'v'),
    ("ԝω", 'w'),
    ("хχ", 'x'),
    ("уγү", 'y'),
    ("АΑ", 'A'),
    ("ВΒ", 'B'),
    ("СϹ", 'C'),
    ("ЕΕ", 'E'),
    ("НΗ", 'H'),
    ("КΚ", 'K'),
    ("МΜ", 'M'),
    ("Ν", 'N'),
    ("ОΟ", 'O'),
    ("РΡ", 'P'),
    ("Ѕ", 'S'),
    ("ТΤ", 'T'),
    ("ХΧ", 'X'),
    ("УΥ", 'Y'),
];

/// Whether a character is invisible.
fn is_hidden(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x34f
            | 0x61c
            | 0x115f
            | 0x1160
            | 0x17b4
            | 0x17b5
            | 0x180b..=0x180e
            | 0x200b..=0x200f
            | 0x202a..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xe0000..=0xe0fff
            | 0x300..=0x36f
    )
}

/// The text normalized to its appearance.
pub(super) fn visible_text(text: &str) -> String {
    let shown = text.chars().filter(|c| !is_hidden(*c));
    shown
        .map(|c| match u32::from(c) {
            0..=0x7f => c,
            // Full-width forms of ASCII.
            n @ 0xff01..=0xff5e => char::from_u32(n - 0xfee0).unwrap_or(c),
            // Mathematical alphabets repeat the 26 letters, capitals first.
            n @ 0x1d400..=0x1d6a3 => {
                let at = (n - 0x1d400) % 52;
                let first = if at < 26 { u32::from('A') + at } else { u32::from('a') + at - 26 };
                char::from_u32(first).unwrap_or(c)
            }
            0x3000 | 0xa0 | 0x2000..=0x200a | 0x202f | 0x205f => ' ',
            0x2010..=0x2015 | 0x2212 | 0xfe58 | 0xfe63 => '-',
            0xa789 | 0x2236 | 0xfe55 | 0x02d0 | 0x05c3 => ':',
            _ => ALIKE.iter().find(|(from, _)| from.contains(c)).map_or(c, |(_, to)| *to),
        })
        .collect()
}

/// A text in lower case, without characters that only join words.
pub(super) fn flatten_text(text: &str) -> String {
    let letters = visible_text(text);
    let letters = letters.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// The words of a key: `maxToolCalls`, `max_tool_calls`, `max-tool-calls` and `maxtoolcalls` each have three.
pub(super) fn split_words(key: &str) -> Vec<String> {
    let cut = split_raw_words(key);
    let Some(tables) = TABLES.as_ref() else { return cut };
    cut.into_iter().flat_map(|word| tables.split_joined(word)).collect()
}

/// Marks with which people negate a name.
pub(super) const CROSSES: [char; 12] =
    ['!', '-', '~', '^', '¬', '✗', '✘', '✖', '×', '❌', '🚫', '⛔'];

/// Whether a name is negated: `!bash`, `-write`. Two dashes begin an option instead.
pub(super) fn is_crossed_out(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(CROSSES) else { return false };
    rest.trim_start().starts_with(|c: char| c.is_alphanumeric() || c == '*')
}

/// Splits at capitals and at characters that are neither letters nor digits.
fn split_raw_words(key: &str) -> Vec<String> {
    let seen = visible_text(key);
    let mut words = match is_crossed_out(&seen) {
        // `-bash` and `!write` begin with the word `not`.
        true => vec!["not".to_owned(), String::new()],
        false => vec![String::new()],
    };
    let mut lower = false;
    let mut chars = seen.chars().peekable();
    let mut upper = false;
    while let Some(c) = chars.next() {
        if c == '\'' {
            continue;
        }
        // `readURLPath`: the last capital of a run begins a word.
        let begins = upper && c.is_uppercase() && chars.peek().is_some_and(|c| c.is_lowercase());
        if !c.is_alphanumeric() || (c.is_uppercase() && lower) || begins {
            words.push(String::new());
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        upper = c.is_uppercase();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl WordTables {
    /// Whether a word is in any table about rights.
    pub(super) fn is_rights_word(&self, word: &str) -> bool {
        let tables = [
            &self.takes,
            &self.takes_in_keys,
            &self.gives,
            &self.abilities,
            &self.places,
            &self.vague_places,
            &self.bounds,
            &self.judged,
        ];
        tables.iter().any(|table| table.contains(word))
    }

    /// Splits a word that joins several known words; any other word stays whole.
    fn split_joined(&self, word: String) -> Vec<String> {
        const JOINING: &[&str] =
            &["is", "can", "may", "has", "to", "in", "on", "before", "per", "by", "use"];
        let fits = |part: &str| {
            self.is_rights_word(part) || self.list_allows.contains(part) || JOINING.contains(&part)
        };
        if word.len() > MAX_JOINED || !word.is_ascii() || fits(&word) {
            return vec![word];
        }
        // For each end, the start of the longest last word whose rest can be split too.
        let mut from: Vec<Option<usize>> = vec![None; word.len() + 1];
        for end in 1..=word.len() {
            let starts = (0..end)
                .filter(|start| *start == 0 || from.get(*start).is_some_and(Option::is_some));
            // A part of one letter would match in too many words.
            let found = starts
                .filter(|start| end - start > 1)
                .find(|start| word.get(*start..end).is_some_and(fits));
            if let Some(slot) = from.get_mut(end) {
                *slot = found;
            }
        }
        let mut parts = Vec::new();
        let mut end = word.len();
        while end > 0 {
            let Some(Some(start)) = from.get(end) else { return vec![word] };
            parts.extend(word.get(*start..end).map(str::to_owned));
            end = *start;
        }
        parts.reverse();
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_and_every_word_is_one_that_is_looked_up() {
        let tables = TABLES.as_ref().unwrap();
        let lists = [
            &tables.takes,
            &tables.takes_in_keys,
            &tables.gives,
            &tables.abilities,
            &tables.places,
        ];
        for word in lists.into_iter().flatten() {
            assert_eq!(split_raw_words(word), [word.as_str()], "{word}");
        }
        let plain = tables.limiting.iter().chain(&tables.display).chain(&tables.switches);
        for word in plain.chain(tables.no_limits.keys()) {
            assert_eq!(flatten_text(word), *word);
        }
        for (key, why) in &tables.no_limits {
            assert!(!why.is_empty(), "{key}: {why}");
            assert!(!tables.display.contains(key), "{key}");
        }
    }

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(split_words("maxToolCalls"), ["max", "tool", "calls"]);
        assert_eq!(split_words("no-network"), ["no", "network"]);
        assert_eq!(split_words("READ_ONLY"), ["read", "only"]);
        assert_eq!(split_words("!bash"), ["not", "bash"]);
        assert_eq!(split_words("--no-bash"), ["no", "bash"]);
        assert_eq!(split_words("skiptools"), ["skip", "tools"]);
        assert_eq!(split_words("writepaths"), ["write", "paths"]);
        assert_eq!(split_words("allowHTTPAccess"), ["allow", "http", "access"]);
        for whole in ["climax", "nobility", "blockchain", "planet", "network", "nodes", "runbook"] {
            assert_eq!(split_words(whole), [whole]);
        }
    }

    #[test]
    fn a_text_is_read_as_it_is_seen() {
        for text in ["tools", "t\u{200b}ools", "t\u{43e}ols", "ｔｏｏｌｓ", "\u{feff}tools"] {
            assert_eq!(visible_text(text), "tools", "{text:?}");
        }
        assert_eq!(flatten_text("Max\u{2011}Turns"), "maxturns");
    }
}
