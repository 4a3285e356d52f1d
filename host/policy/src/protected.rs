//! The names no guest may write, compared as file systems compare names.

use crate::PROTECTED_NAMES;

/// Whether some file system takes this name for one of [`PROTECTED_NAMES`]. Ignored are letter case,
/// characters that HFS+ ignores, and endings that Windows ignores, as in `AGENTS.md::$DATA` and
/// `AGENTS.md.`. In doubt, a name is protected.
pub fn is_protected(name: &str) -> bool {
    let name = name.split(':').next().unwrap_or(name);
    let name = name.trim_end_matches(['.', ' ']);
    // The protected names are ASCII, so folding is needed only for names that are not.
    let means = |name: &str| PROTECTED_NAMES.iter().any(|it| it.eq_ignore_ascii_case(name));
    if name.is_ascii() { means(name) } else { means(&fold_case(name)) }
}

/// Folds letter case. To upper case first: `ſ` has no other lower case, but its upper case is `S`.
fn fold_case(name: &str) -> String {
    name.chars()
        .filter(|c| !is_ignorable(*c))
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::is_protected;

    #[test]
    fn a_protected_name_is_known_in_every_spelling() {
        for name in [
            ".belljar",
            ".BellJar",
            "belljar.toml",
            "BELLJAR.TOML",
            "AGENTS.md",
            "agents.MD",
            "AGENT\u{17f}.md",
            "AGENTS.md.",
            "AGENTS.md ",
            "AGENTS.md::$DATA",
            ".bell\u{200c}jar",
        ] {
            assert!(is_protected(name), "{name:?}");
        }
    }

    /// [`is_protected`] compares without folding if the name is ASCII, which needs this.
    #[test]
    fn the_protected_names_are_ascii() {
        assert!(super::PROTECTED_NAMES.iter().all(|name| name.is_ascii()));
    }

    #[test]
    fn other_names_are_not_protected() {
        for name in ["AGENTS.md.bak", "belljar", "agents", "my-AGENTS.md", ".belljarx", "", "..."] {
            assert!(!is_protected(name), "{name:?}");
        }
    }
}
