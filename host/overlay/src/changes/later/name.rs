//! Normalizes names like a file system that ignores the most differences, and matches patterns for names.

use unicode_normalization::UnicodeNormalization as _;

/// A name in lower case and one normal form, without characters that some file systems ignore.
pub(super) fn fold_name(name: &str) -> String {
    let plain = name.split(':').next().unwrap_or(name).trim_end_matches(['.', ' ']);
    if plain.is_ascii() {
        return plain.to_ascii_lowercase();
    }
    let seen = plain.chars().filter(|c| !is_ignored(*c));
    let upper: String = seen.collect::<String>().nfkc().flat_map(char::to_uppercase).collect();
    upper.chars().flat_map(char::to_lowercase).nfkc().collect()
}

fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// The suffix after a name's last dot; a leading dot does not count.
pub(super) fn name_ending(name: &str) -> Option<&str> {
    name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending)
}

/// A pattern for a path: one for each name, where `*` matches any characters, and optionally a final `**` for
/// everything below.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PathPattern {
    names: Vec<NamePattern>,
    /// Whether the pattern ends with `**`.
    below: bool,
}

/// A pattern for one name: the literal texts between stars.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NamePattern(Vec<String>);

impl PathPattern {
    /// Parses a pattern, a path with `/`; `None` = `**` is not at the end, or a name is empty.
    pub(super) fn new(text: &str) -> Option<Self> {
        let (text, below) = match text.strip_suffix("/**") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let name = |name: &str| {
            let literals = || name.split('*').map(folded_literal).collect();
            (!name.is_empty() && !name.contains("**")).then(|| NamePattern(literals()))
        };
        let names = text.split('/').map(name).collect::<Option<Vec<_>>>()?;
        Some(Self { names, below })
    }

    /// The pattern for the first name.
    pub(super) fn first_name(&self) -> Option<&NamePattern> {
        self.names.first()
    }

    /// Whether only a file's own name matters.
    pub(super) fn is_one_name(&self) -> bool {
        self.names.len() == 1 && !self.below
    }

    /// Whether the pattern matches all of these names from the first one. Each name is compared once.
    pub(super) fn matches_beginning(&self, names: &[String], is_dir: bool) -> bool {
        let fits = match self.below {
            true => names.len() > self.names.len(),
            false => names.len() == self.names.len(),
        };
        // A directory with a file's name, for example `build` or `config`, has no effect by itself.
        let file = self.below || !is_dir || names.last().is_some_and(|name| name.starts_with('.'));
        fits && file && self.names.iter().zip(names).all(|(pattern, name)| pattern.is_like(name))
    }

    /// Whether the last name of the pattern ends with a star.
    pub(super) fn is_open(&self) -> bool {
        let open =
            |name: &NamePattern| name.0.len() > 1 && name.0.last().is_some_and(String::is_empty);
        !self.below && self.names.last().is_some_and(open)
    }
}

impl NamePattern {
    /// The name, if the pattern has no star.
    pub(super) fn exact_name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [name] => Some(name),
            _ => None,
        }
    }

    /// The suffix, with its dot, if the pattern is a star and a suffix.
    pub(super) fn ending_with_dot(&self) -> Option<&str> {
        match self.0.as_slice() {
            [head, tail] if head.is_empty() && tail.starts_with('.') => Some(tail),
            _ => None,
        }
    }

    /// The first character, if the pattern does not begin with a star.
    pub(super) fn first_character(&self) -> Option<char> {
        self.0.first().and_then(|head| head.chars().next())
    }

    /// Whether a name matches the pattern: each literal is found once, from left to right.
    pub(super) fn is_like(&self, name: &str) -> bool {
        let [head, middle @ .., tail] = self.0.as_slice() else {
            return self.exact_name() == Some(name);
        };
        let rest =
            name.strip_prefix(head.as_str()).and_then(|rest| rest.strip_suffix(tail.as_str()));
        let found = middle.iter().try_fold(rest, |rest, literal| {
            let rest = rest?;
            let at = rest.find(literal.as_str())?;
            Some(rest.get(at + literal.len()..))
        });
        found.flatten().is_some()
    }
}

/// Normalizes a literal like [`fold_name`], but keeps a dot at its end.
fn folded_literal(text: &str) -> String {
    text.to_lowercase()
}

/// The most alternatives of one name in the table.
const MAX_ALTERNATIVES: usize = 256;

/// The names of a pattern with alternatives, for example `a.b` and `a.c` for `a.{b,c}`. `None` = an unclosed
/// brace, or too many alternatives.
pub(super) fn expand_braces(text: &str) -> Option<Vec<String>> {
    let mut open = vec![String::new()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (choices, after) = after.split_once('}')?;
        let choices: Vec<&str> = choices.split(',').collect();
        if open.len() * choices.len() > MAX_ALTERNATIVES {
            return None;
        }
        let with = |start: &String| {
            let start = format!("{start}{before}");
            choices.iter().map(|choice| format!("{start}{choice}")).collect::<Vec<_>>()
        };
        open = open.iter().flat_map(with).collect();
        rest = after;
    }
    Some(open.into_iter().map(|start| start + rest).collect())
}
