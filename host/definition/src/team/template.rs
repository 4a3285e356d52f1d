//! The task of a team's member, with placeholders for the output of earlier stages.

use crate::suggest;

/// The names of placeholders.
const PLACES: [&str; 2] = ["input", "task"];

/// The most placeholders in one template, because each may be replaced by the whole output of a stage.
const MAX_PLACES: usize = 8;

/// A text with placeholders: `{input}` is replaced by the output of the previous stage (in the first stage,
/// the team's task) and `{task}` by the team's task. `{{input}}` becomes the literal text `{input}`; other
/// braces are ordinary text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTemplate(Vec<TemplatePiece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Input,
    Task,
}

/// Why a text is not a template, and a hint.
pub(crate) type Misfit = (String, String);

impl TaskTemplate {
    /// Parses a template.
    pub(crate) fn parse(text: &str) -> Result<Self, Misfit> {
        let mut pieces = Vec::new();
        let (mut plain, mut rest, mut places) = (String::new(), text, 0);
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some((word, after)) = parse_braced_word(from, "{{", "}}") {
                plain.push_str(&format!("{{{word}}}"));
                rest = after;
            } else if let Some((word, after)) = parse_braced_word(from, "{", "}") {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
                pieces.push(parse_place(word)?);
                places += 1;
                rest = after;
            } else {
                plain.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
        if places > MAX_PLACES {
            let message = format!("`task` has {places} places, at most {MAX_PLACES} are filled in");
            return Err((message, "name each place once".to_owned()));
        }
        plain.push_str(rest);
        pieces.push(TemplatePiece::Text(plain));
        pieces.retain(|piece| !matches!(piece, TemplatePiece::Text(text) if text.is_empty()));
        Ok(Self(pieces))
    }

    /// The text with its placeholders replaced, once: inserted text is not searched for placeholders.
    pub fn fill(&self, input: &str, task: &str) -> String {
        let mut filled = String::new();
        for piece in &self.0 {
            filled.push_str(match piece {
                TemplatePiece::Text(text) => text,
                TemplatePiece::Input => input,
                TemplatePiece::Task => task,
            });
        }
        filled
    }

    /// Whether the template contains `{input}`.
    pub fn uses_input(&self) -> bool {
        self.0.contains(&TemplatePiece::Input)
    }
}

/// The word between these braces at the start of the text, and the text after it.
fn parse_braced_word<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    let (word, after) = text.strip_prefix(open)?.split_once(close)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(plain);
    is_word.then_some((word, after))
}

/// Parses the name of a placeholder; an unknown name is an error with a hint.
fn parse_place(word: &str) -> Result<TemplatePiece, Misfit> {
    match word {
        "input" => Ok(TemplatePiece::Input),
        "task" => Ok(TemplatePiece::Task),
        _ => {
            let shown = belljar_policy::ShownText::clip_line(word, 40).to_string();
            let message = format!("`{{{shown}}}` is not a place that is filled in");
            let hint = match suggest::find_nearest(word, PLACES) {
                Some(near) => format!("did you mean `{{{near}}}`?"),
                None => format!(
                    "write `{{input}}` or `{{task}}`; for the text itself, `{{{{{shown}}}}}`"
                ),
            };
            Err((message, hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        TaskTemplate::parse(text).unwrap().fill("<I {task}>", "<T {input}>")
    }

    #[test]
    fn places_are_filled_once_and_other_braces_stay() {
        assert_eq!(filled("a {input} b {task}"), "a <I {task}> b <T {input}>");
        assert_eq!(filled("{{input}} {\"a\": {}} { input } {"), "{input} {\"a\": {}} { input } {");
        assert_eq!(filled("{{input}"), "{<I {task}>");
    }

    #[test]
    fn an_unknown_place_is_refused_with_the_likely_word() {
        let (message, hint) = TaskTemplate::parse("sum up {inptu}").unwrap_err();
        assert_eq!(message, "`{inptu}` is not a place that is filled in");
        assert_eq!(hint, "did you mean `{input}`?");
        let (_, hint) = TaskTemplate::parse("{name}").unwrap_err();
        assert_eq!(hint, "write `{input}` or `{task}`; for the text itself, `{{name}}`");
        assert!(TaskTemplate::parse(&"{input}".repeat(MAX_PLACES + 1)).is_err());
    }
}
