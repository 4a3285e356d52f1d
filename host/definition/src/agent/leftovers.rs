//! Reports unknown fields.

use belljar_policy::ShownText;

use super::keys::{IGNORED, NARROWING, NOT_HONOURED};
use super::says::ValueMeaning;
use super::words::flatten_text;
use super::{NotKept, limit_words, narrowed, stated};
use crate::dialect::{CANONICAL_ONLY, CANONICAL_SHARED};
use crate::fields::UnreadFields;
use crate::yaml::{YamlKey, YamlNode};
use crate::{Dialect, suggest};

/// The most fields named in one note.
const MAX_NAMED: usize = 20;

/// Narrowing fields that resemble too many other words, so that they are never suggested.
const SHORT: &[&str] = &["agents", "disable", "steps"];

/// Fields about features that do not exist here, so that no limit on them can be lost; written without
/// joining characters.
const LIMITS_OF_OTHERS: &[&str] = &["mcpservers", "handoffs", "skills"];

/// Reports the unknown fields, and adds those that may be limits to `not_kept`.
pub(super) fn report_unknown_fields(
    fields: UnreadFields<'_, '_>,
    dialect: Dialect,
    not_kept: &mut Vec<NotKept>,
) {
    let (left, findings) = fields.into_rest();
    let mut ignored = Vec::new();
    let mut first = None;
    for (key, node) in &left {
        let name = ShownText::clip_line(&key.text, 64).to_string();
        let speaks = match is_of_others(key, node) {
            true => Vec::new(),
            false => limit_words::find_limits("", key, node),
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
            let slips = || {
                misspelt_narrowing_field(&key.text, limits)
                    .or_else(|| misspelt_limit_field(key, node))
            };
            if !limits && slips().is_some() {
                not_kept.push(NotKept::from_field(&key.text, key, node));
            }
        } else if let Some(meant) =
            misspelt_narrowing_field(&key.text, limits).or_else(|| misspelt_limit_field(key, node))
        {
            // Without the report, a misspelling would leave an agent with more rights than its
            // author meant.
            let message = format!("`{name}` is not a field, and so narrows nothing");
            let hint = format!("did you mean `{meant}`?");
            findings.warning(key.at, "unknown-field", message, Some(hint));
            if !limits {
                not_kept.push(NotKept::from_field(&key.text, key, node));
            }
        } else if !limits {
            first = first.or(Some(key.at));
            ignored.push(format!("`{name}`"));
        }
    }
    narrowed::report_not_kept(not_kept, findings);
    if let Some(at) = first {
        ignored.truncate(MAX_NAMED);
        findings.note(at, "ignored-fields", format!("ignored: {}", ignored.join(", ")));
    }
}

fn is_of_others(key: &YamlKey, node: &YamlNode) -> bool {
    LIMITS_OF_OTHERS.contains(&flatten_text(&key.text).as_str())
        && ValueMeaning::from_node(node) != ValueMeaning::No
}

/// The limiting field that a key with a boolean or a number misspells.
fn misspelt_limit_field(key: &YamlKey, node: &YamlNode) -> Option<&'static str> {
    let says = matches!(
        ValueMeaning::from_node(node),
        ValueMeaning::Yes | ValueMeaning::No | ValueMeaning::Number
    );
    (says && !limit_words::is_harmless(&key.text))
        .then(|| stated::find_misspelt_field(&key.text))
        .flatten()
}

/// The narrowing field that was probably meant by this key.
fn misspelt_narrowing_field(key: &str, limits: bool) -> Option<&'static str> {
    // A correctly spelt word without effect here is not a misspelling.
    let is_other = limit_words::is_harmless(key) || !limits && limit_words::is_spelt_right(key);
    if NARROWING.contains(&key) || IGNORED.contains(&key) || is_other {
        return None;
    }
    let words = NARROWING.iter().copied().filter(|field| !SHORT.contains(field));
    suggest::find_nearest(key, words)
}
