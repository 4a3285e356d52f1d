//! Parses one entry of a list of allowed tools: a name, a word for all, or an exception (for example `all
//! tools except Edit`, `!Bash`, `Bash: false`).
//!
//! An entry with an unparsable restriction blocks its agent, because the rest of the list alone would grant
//! more than its author meant.

use super::says::ValueMeaning;
use super::words::{CROSSES, TABLES, WordTables, flatten_text, split_words, visible_text};

/// The meaning of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListEntryMeaning {
    /// A name, known or unknown.
    Name(String),
    /// Every tool.
    All,
    /// No tool.
    Nothing,
    /// Names denied from all tools, or beside the given ones.
    Without {
        all: bool,
        given: Vec<String>,
        names: Vec<String>,
        /// Whether the following entries are denied too, for example in `all except Edit, Write`.
        lasts: bool,
    },
    /// A restriction that cannot be parsed.
    Unclear,
}

/// Parses an entry. `is_known` returns whether a name is that of a tool.
pub(super) fn parse_entry(text: &str, is_known: impl Fn(&str) -> bool) -> ListEntryMeaning {
    let Some(tables) = TABLES.as_ref() else { return ListEntryMeaning::Unclear };
    let text = visible_text(text);
    let text = text.trim().trim_end_matches(['.', ';']).trim();
    let without = |name: &str| ListEntryMeaning::Without {
        all: false,
        given: Vec::new(),
        names: vec![name.trim().to_owned()],
        lasts: false,
    };
    if let Some(name) = text.strip_prefix(CROSSES) {
        return if name.trim().is_empty() { ListEntryMeaning::Unclear } else { without(name) };
    }
    // `all tools except: Bash`, `deny: Write`: checked before names, because only the last part of
    // such an entry may be known.
    let takes = |word: &str| {
        let word = word.to_lowercase();
        tables.besides.contains(&word) || tables.takes.contains(&word)
    };
    if let Some((name, said)) = split_switch(text)
        && name.split_whitespace().next_back().is_some_and(takes)
    {
        return parse_sentence(&format!("{name} {said}"), tables);
    }
    // Names come before words for all: `todos` is a tool in one program, and means "all" in another
    // language.
    if is_known(text) {
        return ListEntryMeaning::Name(text.to_owned());
    }
    let plain = flatten_text(text);
    if tables.all.contains(&plain) || text == "*" {
        return ListEntryMeaning::All;
    }
    if tables.no.contains(&plain) || matches!(plain.as_str(), "notools" | "notool") {
        return ListEntryMeaning::Nothing;
    }
    if let Some((name, said)) = split_switch(text) {
        return match ValueMeaning::from_text(said) {
            ValueMeaning::Yes => ListEntryMeaning::Name(name.to_owned()),
            ValueMeaning::No => without(name),
            ValueMeaning::Other if !said.contains(' ') && !text.contains('=') => {
                ListEntryMeaning::Name(text.to_owned())
            }
            _ => ListEntryMeaning::Unclear,
        };
    }
    parse_sentence(text, tables)
}

/// A name and its value after `:` or `=`, outside parentheses.
fn split_switch(text: &str) -> Option<(&str, &str)> {
    let at = text.find([':', '=', '('])?;
    let (name, said) = text.split_at_checked(at)?;
    let said = said.trim_start_matches([':', '=', '>']);
    (!text.get(at..)?.starts_with('(') && !name.trim().is_empty())
        .then(|| (name.trim(), said.trim()))
}

/// Parses an entry of several words, or of one word with a restricting part.
fn parse_sentence(text: &str, tables: &WordTables) -> ListEntryMeaning {
    // A scope is parsed together with its name.
    let outside: String = match text.split_once('(') {
        Some((name, rest)) => format!("{name} {}", rest.rsplit(')').next().unwrap_or_default()),
        None => text.to_owned(),
    };
    let parts: Vec<String> = outside
        .split_whitespace()
        .map(|part| part.trim_matches(['"', '\'', '[', ']', '`', '.', ';']).to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    let has =
        |of: &std::collections::BTreeSet<String>, part: &str| of.contains(&part.to_lowercase());
    // Scripts without blanks between words.
    let joined = tables.besides.iter().any(|word| !word.is_ascii() && text.contains(word.as_str()));
    let takes = |word: &String| tables.takes.contains(word) || tables.besides.contains(word);
    if parts.len() < 2 {
        let inner = split_words(&outside);
        // `except(Bash)`, and `except` alone.
        let alone = inner.len() == 1 && inner.iter().any(|word| tables.besides.contains(word));
        if alone || text.contains('(') && inner.iter().any(takes) {
            return ListEntryMeaning::Unclear;
        }
        let no =
            |word: &String| tables.besides.contains(word) || word == "only" || word == "readonly";
        let restricts = inner.len() > 1 && inner.iter().any(no)
            || tables.limiting.contains(&flatten_text(&outside))
            || outside
                .to_lowercase()
                .strip_prefix("no")
                .is_some_and(|rest| tables.abilities.contains(rest));
        return if restricts || joined {
            ListEntryMeaning::Unclear
        } else {
            ListEntryMeaning::Name(text.to_owned())
        };
    }
    let Some(at) = parts.iter().position(|part| has(&tables.besides, part)) else {
        let takes = split_words(&outside).iter().any(|word| tables.takes.contains(word));
        let alls = parts.iter().filter(|part| has(&tables.all, part)).count();
        let fill = parts.iter().all(|part| has(&tables.fill, part) || has(&tables.all, part));
        return match (alls, fill) {
            (1.., true) if !text.contains('(') => ListEntryMeaning::All,
            _ if takes || joined || alls > 0 => ListEntryMeaning::Unclear,
            _ => ListEntryMeaning::Name(text.to_owned()),
        };
    };
    let (before, rest) = parts.split_at(at);
    let word = rest.first().map(|word| word.to_lowercase()).unwrap_or_default();
    let all = before.iter().any(|part| has(&tables.all, part) || part == "*");
    let names = |parts: &[String]| -> Vec<String> {
        let skip = |part: &&String| {
            !has(&tables.fill, part)
                && !has(&tables.besides, part)
                && !has(&tables.all, part)
                && *part != "*"
        };
        parts.iter().filter(skip).cloned().collect()
    };
    let (given, names) = (names(before), names(rest.get(1..).unwrap_or_default()));
    if names.is_empty() && matches!(word.as_str(), "no" | "not" | "never") {
        // `no tools` denies all.
        let none = rest.iter().all(|part| has(&tables.fill, part) || has(&tables.besides, part));
        return if before.is_empty() && none {
            ListEntryMeaning::Nothing
        } else {
            ListEntryMeaning::Unclear
        };
    }
    // `Bash disabled`: the denied name precedes the denying word.
    if names.is_empty() && !given.is_empty() {
        return ListEntryMeaning::Unclear;
    }
    let single = matches!(
        word.as_str(),
        "no" | "not" | "never" | "nor" | "neither" | "without" | "sans" | "w/o"
    );
    // `all` after the excepting word has no known meaning.
    let after_all = rest.iter().any(|part| has(&tables.all, part));
    if after_all || text.contains('(') && !given.is_empty() {
        return ListEntryMeaning::Unclear;
    }
    ListEntryMeaning::Without { all, given, names, lasts: all || !single }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ListEntryMeaning {
        parse_entry(text, |name| {
            matches!(name, "Read" | "Write" | "Edit" | "Bash" | "Bash (git *)" | "todos")
        })
    }

    #[test]
    fn what_is_left_out_is_read_and_what_is_not_understood_is_no_name() {
        let without = |text: &str| match read(text) {
            ListEntryMeaning::Without { all, names, lasts, .. } => (all, names, lasts),
            other => panic!("{text}: {other:?}"),
        };
        let one = |name: &str| vec![name.to_owned()];
        for text in
            ["All tools except Edit", "everything but Edit", "* minus Edit", "alle außer Edit"]
        {
            assert_eq!(without(text), (true, one("Edit"), true), "{text}");
        }
        for text in [
            "!Bash",
            "-Bash",
            "~Bash",
            "^Bash",
            "\u{2212}Bash",
            "Bash: false",
            "Bash=off",
            "no Bash",
        ] {
            assert_eq!(without(text), (false, one("Bash"), false), "{text}");
        }
        assert_eq!(without("except Bash"), (false, one("Bash"), true));
        assert_eq!(without("all tools except: Bash"), (true, one("Bash"), true));
        for text in ["excluded: Bash", "deny: Bash", "nicht Bash", "pas Bash", "кроме Bash"] {
            assert_eq!(without(text).1, one("Bash"), "{text}");
        }
        for text in ["all", "All tools", "*", "every tool"] {
            assert_eq!(read(text), ListEntryMeaning::All, "{text}");
        }
        for text in ["none", "no tools", "nothing", "No"] {
            assert_eq!(read(text), ListEntryMeaning::Nothing, "{text}");
        }
        for text in [
            "read-only",
            "Read only",
            "NoWrite",
            "no-bash",
            "all but all",
            "Bash: read only",
            "!",
            "全部除了Bash",
            "all reading tools",
            "Bash [read only]",
            "Bash=ro",
            "all tools (read-only)",
            "Bash disabled",
            "Bash is forbidden",
            "except(Bash)",
            "not (Bash)",
        ] {
            assert_eq!(read(text), ListEntryMeaning::Unclear, "{text}");
        }
        for text in [
            "Read",
            "Bash (git *)",
            "Microsoft Docs",
            "todos",
            "serena:find_symbol",
            "mcp__a__no_such",
        ] {
            let found = read(text);
            let name = ListEntryMeaning::Name(text.to_owned());
            assert!(found == name || text.contains("no_such"), "{text}: {found:?}");
        }
    }
}
