//! Finds suspicious text in an agent file of a stranger, for a person to look at before the installation:
//! invisible text, text that addresses the loader or avoids the person, and requests beyond what the
//! description suggests. For example, an HTML comment with "do not tell the user" is found.
//!
//! A suspicion refuses nothing. Rights limit an agent's actions; this module finds files whose author wanted
//! to hide something. The rules are few, with few false alarms, and a paraphrase is not found.

mod hidden;
mod warned;
mod wide;
mod words;

#[cfg(test)]
mod tests;

use std::ops::Range;

use belljar_policy::ShownText;

use crate::AgentDefinition;
use crate::agent::forms::AgentForm;
use crate::diagnostic::{clamp_count, place_of};

/// The most suspicions of one rule per file. Each rule has a separate limit, so that many findings of one
/// rule do not hide another's.
pub const MAX_PER_RULE: usize = 4;

/// Added to the last reported suspicion of a rule if more were found.
const MORE: &str = ", and more like it";

/// Characters of the file that a suspicion shows.
const MAX_EXCERPT: usize = 100;

/// One kind of suspicious text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspicionRule {
    /// A stable name for programs, for example `hidden-character`.
    pub name: &'static str,
    /// Why a person should look: lower case, no final period.
    pub why: &'static str,
}

/// Suspicious text in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    /// The rule that the text matches.
    pub rule: &'static SuspicionRule,
    /// The line, from 1.
    pub line: u32,
    /// The text, escaped.
    pub found: String,
}

/// All rules, in the order of the documentation.
pub const RULES: &[SuspicionRule] = &[
    SuspicionRule {
        name: HIDDEN_CHARACTER,
        why: "a character that no screen shows can carry words that only a model reads, or show \
              a line in another order than it has",
    },
    SuspicionRule {
        name: HIDDEN_COMMENT,
        why: "an HTML comment is not seen where the page is rendered, and a model reads it; this \
              one gives orders",
    },
    SuspicionRule {
        name: ENCODED_TEXT,
        why: "nobody can read what a long run of encoded characters says, and a model may decode \
              it",
    },
    SuspicionRule {
        name: OVERRIDES_INSTRUCTIONS,
        why: "the text wants instructions of others to be set aside",
    },
    SuspicionRule {
        name: KEEPS_FROM_USER,
        why: "the text wants something to be kept from the person it works for",
    },
    SuspicionRule {
        name: SPEAKS_TO_LOADER,
        why: "the text names belljar's own files, commands or switches, with which rights are \
              given; an agent has no use for them",
    },
    SuspicionRule {
        name: SKIPS_APPROVAL,
        why: "the text names a switch with which a program stops asking the person",
    },
    SuspicionRule {
        name: ROLE_MARKERS,
        why: "these markers tell a model who is speaking; in a prompt they pretend to be somebody \
              else's turn",
    },
    SuspicionRule {
        name: WIDE_REQUEST,
        why: "the description speaks of reading alone, and the file asks for much more",
    },
];

const HIDDEN_CHARACTER: &str = "hidden-character";
const HIDDEN_COMMENT: &str = "hidden-comment";
const ENCODED_TEXT: &str = "encoded-text";
const OVERRIDES_INSTRUCTIONS: &str = "overrides-instructions";
const KEEPS_FROM_USER: &str = "keeps-from-user";
const SPEAKS_TO_LOADER: &str = "speaks-to-loader";
const SKIPS_APPROVAL: &str = "skips-approval";
const ROLE_MARKERS: &str = "role-markers";
const WIDE_REQUEST: &str = "wide-request";

/// The suspicious texts of an agent's file: `text` is the whole file, `definition` its parsed form. Ordered
/// by line, at most [`MAX_PER_RULE`] for each rule. Never panics.
pub fn find_suspicions(text: &str, definition: &AgentDefinition) -> Vec<Suspicion> {
    let mut found = SuspicionCollector { text, list: Vec::new() };
    hidden::find_hidden_characters(text, &mut found);
    words::find_suspicious_words(text, &mut found);
    // A YAML field may use escapes, so its parsed text is searched too.
    // So may the prompt of a file that is not markdown.
    let other = AgentForm::for_path(&definition.path).map(|_| &definition.body);
    for field in [&definition.name, &definition.description].into_iter().chain(other) {
        let mut decoded = SuspicionCollector { text: field, list: Vec::new() };
        hidden::find_hidden_characters(field, &mut decoded);
        words::find_suspicious_words(field, &mut decoded);
        for (suspicion, _) in decoded.list {
            let known =
                |it: &Suspicion| it.rule == suspicion.rule && it.line < definition.body_line;
            if !found.list.iter().any(|(it, _)| known(it)) {
                found.list.push((Suspicion { line: 1, ..suspicion }, 0..0));
            }
        }
    }
    if let Some(what) = wide::find_wide_requests(definition) {
        found.push_suspicion(WIDE_REQUEST, 0, what);
    }
    let mut list: Vec<Suspicion> = found.list.into_iter().map(|(it, _)| it).collect();
    list.sort_by_key(|it| it.line);
    list
}

/// The suspicious parts of a text without a file, for example of a tool's description. Otherwise like
/// [`find_suspicions`].
pub fn suspicions_of_text(text: &str) -> Vec<Suspicion> {
    let mut found = SuspicionCollector { text, list: Vec::new() };
    hidden::find_hidden_characters(text, &mut found);
    words::find_suspicious_words(text, &mut found);
    found.list.into_iter().map(|(it, _)| it).collect()
}

/// Collects the suspicions of one text.
struct SuspicionCollector<'a> {
    text: &'a str,
    /// The suspicions, each with the byte range of its line.
    list: Vec<(Suspicion, Range<usize>)>,
}

impl SuspicionCollector<'_> {
    /// Adds a suspicion for the line that contains the byte; each rule counts once a line.
    fn push_suspicion(&mut self, rule: &str, offset: usize, found: String) {
        let Some(rule) = RULES.iter().find(|it| it.name == rule) else { return };
        let mut same: Vec<_> = self.list.iter_mut().filter(|(it, _)| it.rule == rule).collect();
        // This check comes before lines are counted, because one line can have ten thousand
        // matches.
        if same.iter().any(|(_, line)| line.contains(&offset)) {
            return;
        }
        let number = same.len();
        match same.last_mut() {
            Some((last, _)) if number >= MAX_PER_RULE => {
                if !last.found.ends_with(MORE) {
                    last.found.push_str(MORE);
                }
            }
            _ => {
                let line = place_of(self.text, offset).line;
                let (before, after) = self.text.split_at_checked(offset).unwrap_or(("", ""));
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let end = offset + after.find('\n').unwrap_or(after.len()) + 1;
                self.list.push((Suspicion { rule, line, found }, start..end));
            }
        }
    }

    /// Adds a suspicion like [`SuspicionCollector::push_suspicion`], and quotes the text.
    fn push_quote(&mut self, rule: &str, offset: usize, excerpt: &str) {
        let flat = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
        self.push_suspicion(
            rule,
            offset,
            format!("`{}`", ShownText::clip_line(&flat, MAX_EXCERPT)),
        );
    }

    /// Whether further matches of a rule would be dropped.
    fn is_full(&self, rule: &str) -> bool {
        self.list.iter().any(|(it, _)| it.rule.name == rule && it.found.ends_with(MORE))
    }
}

/// A count with its noun, for example `1 tag character` or `3 tag characters`.
fn format_count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", clamp_count(number))
}
