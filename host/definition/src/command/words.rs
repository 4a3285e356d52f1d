//! The arguments of a call, split into words as a shell does, without expanding anything.

/// Splits at white space outside quotes. Quotes are removed; a quote that is never closed is a character.
pub(super) fn split_arguments(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' | '\'' if rest.as_str().contains(c) => {
                is_word = true;
                word.extend(rest.by_ref().take_while(|inner| *inner != c));
            }
            c if c.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => {
                is_word = true;
                word.push(c);
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// A text as one word of a POSIX shell.
pub(super) fn quote_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_words_and_quotes_join_them() {
        for (text, words) in [
            ("", &[][..]),
            ("  a  b ", &["a", "b"]),
            ("\"a b\" c", &["a b", "c"]),
            ("it's fine", &["it's", "fine"]),
            ("'' x", &["", "x"]),
            ("a\"b c\"d", &["ab cd"]),
            ("say \"hi", &["say", "\"hi"]),
        ] {
            assert_eq!(split_arguments(text), words, "{text}");
        }
    }

    #[test]
    fn a_quoted_word_is_one_word_of_a_shell() {
        assert_eq!(quote_word("a'; rm x"), "'a'\\''; rm x'");
    }
}
