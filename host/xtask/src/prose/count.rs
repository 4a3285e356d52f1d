//! Counts names, pronouns and vague clauses in one source file.

use std::collections::BTreeMap;

/// Words used in place of a noun, so that a reader has to find the noun.
const PRONOUNS: &[&str] = &[
    "it", "its", "they", "them", "their", "this", "that", "these", "those", "which", "what", "one",
    "who", "whose", "nobody", "somebody",
];

/// Clauses without a noun, or with a denied noun.
const CLAUSES: &[&str] =
    &["what it", "that which", "those that", "is none", "of which", "nobody that", "should it"];

/// The counts over all files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WordCounts {
    /// How many types have each name.
    pub(super) types: BTreeMap<String, usize>,
    pub(super) functions: usize,
    pub(super) functions_of_one_word: usize,
    /// Functions named `of` or `of_...`.
    pub(super) functions_of: usize,
    pub(super) comment_words: usize,
    pub(super) pronouns: usize,
    pub(super) clauses: usize,
    /// How often the words `for example` occur.
    pub(super) examples: usize,
}

/// Adds the counts of a file. The file's inline test module is left out.
pub(super) fn count_words(text: &str, words: &mut WordCounts) {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut comment = String::new();
    for line in code.lines().map(str::trim_start) {
        match line.strip_prefix("//") {
            // The marks `///` and `//!` are no words. Lines of code in an example count as comment text.
            Some(said) => {
                comment.push_str(said.trim_start_matches(['/', '!']));
                comment.push(' ');
            }
            None => count_definition(line, words),
        }
    }
    count_comment(&comment.to_lowercase(), words);
}

/// Counts the type or function a line of code defines, if any.
fn count_definition(line: &str, words: &mut WordCounts) {
    let mut tokens = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    while let Some(token) = tokens.next() {
        match token {
            "struct" | "enum" | "trait" | "union" => {
                let name = tokens.next().unwrap_or_default();
                if name.starts_with(char::is_uppercase) {
                    *words.types.entry(name.to_owned()).or_default() += 1;
                }
                return;
            }
            "fn" => {
                let name = tokens.next().unwrap_or_default();
                if !name.is_empty() {
                    words.functions += 1;
                    words.functions_of_one_word += usize::from(!name.contains('_'));
                    words.functions_of += usize::from(name == "of" || name.starts_with("of_"));
                }
                return;
            }
            // These words may come before a definition; the last ones are from `pub(in crate::a)`.
            "" | "pub" | "crate" | "super" | "in" | "async" | "const" | "unsafe" | "extern" => {}
            _ => return,
        }
    }
}

fn count_comment(comment: &str, words: &mut WordCounts) {
    let all: Vec<&str> = comment
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.comment_words += all.len();
    words.pronouns += all.iter().filter(|word| PRONOUNS.contains(word)).count();
    for pair in all.windows(2) {
        let pair = pair.join(" ");
        words.clauses += usize::from(CLAUSES.contains(&pair.as_str()));
        words.examples += usize::from(pair == "for example");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_comments_are_counted_and_code_and_tests_are_not() {
        let text = "\
//! A key, for example `a`. It is what it opens.
/// Nobody has
/// those that are left.
pub(crate) struct State { it: u8 }
pub enum LoginState {}
impl State {
    pub(super) async fn of_it(self) {}
    const fn read_all() {}
    fn of() {}
}
let it = what_one(those);
#[cfg(test)]
mod tests {
    // It is what it is.
    fn it() {}
}
";
        let mut words = WordCounts::default();
        count_words(text, &mut words);
        let types = [("LoginState".to_owned(), 1), ("State".to_owned(), 1)].into();
        let counted = WordCounts {
            types,
            functions: 3,
            functions_of_one_word: 1,
            functions_of: 2,
            comment_words: 16,
            pronouns: 6,
            clauses: 2,
            examples: 1,
        };
        assert_eq!(words, counted);
    }
}
