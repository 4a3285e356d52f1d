//! Finds the known word that is most similar to an unknown one.

/// The similarity (Jaro-Winkler, 0 to 1) from which a word is suggested: `file_read` for `file_raed`, but not
/// `hosts` for `notes`.
const ALIKE: f64 = 0.84;

/// The longest compared text, in bytes, because the comparison is quadratic and names are short.
const MAX_COMPARED: usize = 128;

/// The word of `known` that `text` most likely misspells.
pub(crate) fn find_nearest<'a>(
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    rank_similar(text, known).into_iter().next()
}

/// The words of `known` that resemble `text`, best first, at most three.
pub(crate) fn rank_similar<'a>(
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    if text.len() > MAX_COMPARED {
        return Vec::new();
    }
    let plain = flatten_spelling(text);
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(&plain, &flatten_spelling(word)), word))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, word)| word).collect()
}

/// The hint `did you mean ...?`, if a word resembles the text.
pub(crate) fn did_you_mean<'a>(
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    find_nearest(text, known).map(|word| format!("did you mean `{word}`?"))
}

/// Keys of other programs, or keys that belong in another table, with the key for the same setting here.
const OF_OTHERS: [(&str, &str); 7] = [
    ("mcpservers", "mcp"),
    ("servers", "mcp"),
    ("environment", "env"),
    ("headers", "secrets"),
    ("cwd", "directories"),
    ("providers", "models"),
    ("autobackground", "subagents"),
];

/// Advice about another program's key, if the table has a key for the same setting.
pub(crate) fn foreign_key_hint(text: &str, known: &[&str]) -> Option<String> {
    let plain = flatten_spelling(text);
    let (_, own) = OF_OTHERS.iter().find(|(word, own)| *word == plain && known.contains(own))?;
    Some(match *own {
        "subagents" => format!("it stands in `{own}`: `{own} = {{ {text} = ... }}`"),
        own => format!("here that is `{own}`"),
    })
}

/// A text without joining characters, in lower case, so that `maxTurns`, `max_turns` and `max-turns` are
/// equal.
fn flatten_spelling(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_word_and_a_stranger_does_not() {
        let known = ["file_read", "file_write", "web_fetch"];
        assert_eq!(find_nearest("file_raed", known), Some("file_read"));
        assert_eq!(find_nearest("fileRead", known), Some("file_read"));
        assert_eq!(find_nearest("kubernetes", known), None);
        assert_eq!(foreign_key_hint("mcpServers", &["mcp"]).as_deref(), Some("here that is `mcp`"));
        assert_eq!(foreign_key_hint("mcpServers", &["url"]), None);
        assert_eq!(find_nearest(&"file_read".repeat(100), known), None);
    }
}
