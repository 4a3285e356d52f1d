//! Decides whether the words of a key or name deny something by themselves, for example `no_write`.

use std::collections::BTreeSet;

use super::words::{TABLES, WordTables, flatten_text, split_words};

/// Words that deny only beside a word for an ability, for example `write_free`.
const BESIDE: &[&str] = &[
    "less",
    "free",
    "zero",
    "unable",
    "stop",
    "stops",
    "discard",
    "discards",
    "revert",
    "reverts",
    "undo",
    "protection",
    "abort",
    "freeze",
    "until",
    "before",
    "halt",
    "kill",
    "lose",
];

/// Whether a word of a name denies, or names an ability of agents.
pub(super) fn speaks_in_name(name: &str) -> bool {
    let words = split_words(name);
    let speaks = |tables: &WordTables| {
        has_taking_words(&words, tables) || contains_any(&words, &tables.abilities)
    };
    TABLES.as_ref().is_none_or(speaks)
}

/// Whether a key by itself excludes its value: `except`, `not`.
pub(super) fn takes_by_itself(key: &str) -> bool {
    let takes = |tables: &WordTables| {
        let key = flatten_text(key);
        tables.besides.contains(&key) || tables.takes.contains(&key)
    };
    TABLES.as_ref().is_none_or(takes)
}

/// Whether the words of a key deny something.
pub(super) fn has_taking_words(words: &[String], tables: &WordTables) -> bool {
    // `nobash`, which was not split into words.
    let negated =
        |word: &String| word.strip_prefix("no").is_some_and(|rest| tables.abilities.contains(rest));
    let joined = |of: &Vec<String>| words.windows(of.len()).any(|part| part == of.as_slice());
    // `write_free`, `stop_edits`.
    let beside = |word: &String| BESIDE.contains(&word.as_str());
    words.iter().any(beside) && contains_any(words, &tables.abilities)
        || contains_any(words, &tables.takes)
        || contains_any(words, &tables.takes_in_keys)
        || words.iter().any(negated)
        || tables.takes_joined.iter().any(joined)
}

/// Whether any word is in a table.
pub(super) fn contains_any(words: &[String], of: &BTreeSet<String>) -> bool {
    words.iter().any(|word| of.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_beside_an_ability_takes_it_away() {
        let tables = TABLES.as_ref().unwrap();
        for key in ["write_free", "stopEdits", "nobash", "-shell", "quarantined"] {
            assert!(has_taking_words(&split_words(key), tables), "{key}");
        }
        for key in ["free", "stop", "writing", "nobility"] {
            assert!(!has_taking_words(&split_words(key), tables), "{key}");
        }
        assert!(takes_by_itself("except") && !takes_by_itself("Bash"));
        assert!(speaks_in_name("bash_off") && !speaks_in_name("context7"));
    }
}
