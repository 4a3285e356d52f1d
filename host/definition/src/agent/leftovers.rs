//! Findings about the fields that nobody read.

use belljar_policy::Shown;

use super::keys::{IGNORED, NARROWING, NOT_HONOURED};
use super::says::Says;
use super::words::flat;
use super::{NotKept, limit_words, narrowed};
use crate::dialect::{CANONICAL_ONLY, CANONICAL_SHARED};
use crate::fields::Fields;
use crate::yaml::{Key, Node};
use crate::{Dialect, suggest};

/// Fields that one note names.
const MAX_NAMED: usize = 20;

/// Fields that narrow and whose names begin too many others to be what those were meant for.
const SHORT: &[&str] = &["agents", "disable", "steps"];

/// Fields about what is not given here in any case, so that no limit on it can be lost; without
/// what only joins words.
const LIMITS_OF_OTHERS: &[&str] = &["mcpservers", "handoffs", "skills"];

/// Says what became of the fields that nobody read, and adds those that speak of a limit.
pub(super) fn say(fields: Fields<'_, '_>, dialect: Dialect, not_kept: &mut Vec<NotKept>) {
    let (left, findings) = fields.into_rest();
    let mut ignored = Vec::new();
    let mut first = None;
    for (key, node) in &left {
        let name = Shown::clipped(&key.text, 64).to_string();
        let speaks = match is_of_others(key, node) {
            true => Vec::new(),
            false => limit_words::speaks("", key, node),
        };
        let limits = !speaks.is_empty();
        not_kept.extend(speaks);
        if NOT_HONOURED.contains(&key.text.as_str()) {
            let message = format!("`{name}` is not honoured: a file grants itself nothing here");
            findings.warning(key.at, "not-honoured", message, None);
        } else if dialect == Dialect::Canonical && !IGNORED.contains(&key.text.as_str()) {
            let known = CANONICAL_ONLY.iter().chain(CANONICAL_SHARED).copied();
            let hint = suggest::did_you_mean(&key.text, known)
                .unwrap_or_else(|| "it is ignored; remove it".to_owned());
            let message = format!("`{name}` is not a field of an agent definition");
            findings.warning(key.at, "unknown-field", message, Some(hint));
            if !limits && slip(&key.text, limits).is_some() {
                not_kept.push(NotKept::of(&key.text, key, node));
            }
        } else if let Some(meant) = slip(&key.text, limits) {
            // Left out without a word, a slip here would give an agent more than its author meant.
            let message = format!("`{name}` is not a field, and so narrows nothing");
            let hint = format!("did you mean `{meant}`?");
            findings.warning(key.at, "unknown-field", message, Some(hint));
            if !limits {
                not_kept.push(NotKept::of(&key.text, key, node));
            }
        } else if !limits {
            first = first.or(Some(key.at));
            ignored.push(format!("`{name}`"));
        }
    }
    narrowed::say(not_kept, findings);
    if let Some(at) = first {
        ignored.truncate(MAX_NAMED);
        findings.note(at, "ignored-fields", format!("ignored: {}", ignored.join(", ")));
    }
}

fn is_of_others(key: &Key, node: &Node) -> bool {
    LIMITS_OF_OTHERS.contains(&flat(&key.text).as_str()) && Says::of(node) != Says::No
}

/// The field that takes something away for which this key was probably meant.
fn slip(key: &str, limits: bool) -> Option<&'static str> {
    // A field that is spelt right and means nothing in this program's files is no slip.
    let is_other = limit_words::is_harmless(key) || !limits && limit_words::is_spelt_right(key);
    if NARROWING.contains(&key) || IGNORED.contains(&key) || is_other {
        return None;
    }
    let words = NARROWING.iter().copied().filter(|field| !SHORT.contains(field));
    suggest::nearest(key, words)
}
