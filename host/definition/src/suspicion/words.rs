//! Finds words of a text that address the loader, try to avoid the person, or are hidden from a reader.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    ENCODED_TEXT, HIDDEN_COMMENT, KEEPS_FROM_USER, OVERRIDES_INSTRUCTIONS, ROLE_MARKERS,
    SKIPS_APPROVAL, SPEAKS_TO_LOADER, SuspicionCollector, warned,
};

/// A gap between two words: blanks, line ends, and the marks of bold, italic and code.
const GAP: &str = r"[\s*_`>]+";

/// The shortest reported run of encoded characters: longer than any digest or key id in usual examples, and
/// about a hundred characters when decoded.
const MIN_ENCODED: usize = 140;

/// The patterns, in lower case. `_` is replaced by [`GAP`].
const PATTERNS: &[(&str, &str)] = &[
    (
        OVERRIDES_INSTRUCTIONS,
        r"\b(ignore|disregard|forget|override|bypass)_((all|any|every|the|your|my|of|and|other|these|those)_){0,3}(previous|prior|above|earlier|preceding|existing|original|system|safety)_((system|safety|developer|user|or|and|prior)_){0,3}(instructions?|prompts?|rules?|messages?|directives?|guidelines|constraints)\b",
    ),
    (
        KEEPS_FROM_USER,
        r"\b(do_not|don['’]t|never|must_not|without)_(ever_)?(tell|telling|inform|informing|alert|alerting|notify|notifying|warn|warning)_(the_)?(user|human|operator|person|developer|owner)s?\b",
    ),
    (
        KEEPS_FROM_USER,
        r"\b(hide|conceal|keep)_(this|that|it|them|these|everything|the_[a-z]+)_(hidden_|secret_)?from_(the_)?(user|human|operator|owner)s?\b",
    ),
    (
        KEEPS_FROM_USER,
        r"\bwithout_the_(user|human|operator|owner)(['’]s)?_(knowing|knowledge|noticing)\b",
    ),
    (SPEAKS_TO_LOADER, r"\bbelljar(\.toml|\s+(grant|agents|drafts|init|run)\b)"),
    (SPEAKS_TO_LOADER, r"(^|[\s`'\x22(/~])\.belljar\b"),
    (SPEAKS_TO_LOADER, r"\bbelljar_(home|cache)\b|--no-os-sandbox\b"),
    (SPEAKS_TO_LOADER, r"\bbelljar\b[^\n]{0,80}--yes\b"),
    (
        SKIPS_APPROVAL,
        r"--dangerously-[a-z-]+|--yolo\b|\bbypasspermissions\b|\bskip-permissions\b|--full-auto\b|--auto-approve\b|--trust-all-tools\b",
    ),
    (
        ROLE_MARKERS,
        r"<\|(im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>|<</?sys>>|\[/?inst\]|</?start_of_turn>",
    ),
];

/// Words by which a comment orders something instead of describing the page.
const ORDERS: &str = r"\b(you_(must|should|are|will|have_to)|(ignore|disregard)_(all|any|every|the|your|what)|never|do_not|don['’]t|must_not|run_the|send|upload|exfiltrate|secretly|assistant|system_prompt|instructions?_(for|to)|important:)\b";

struct SuspicionPatterns {
    rules: Vec<(&'static str, Regex)>,
    orders: Option<Regex>,
}

/// Every pattern compiles: a test proves that each finds its example.
static COMPILED: LazyLock<SuspicionPatterns> = LazyLock::new(|| SuspicionPatterns {
    rules: PATTERNS
        .iter()
        .filter_map(|(rule, pattern)| Some((*rule, compile_pattern(pattern)?)))
        .collect(),
    orders: compile_pattern(ORDERS),
});

fn compile_pattern(pattern: &str) -> Option<Regex> {
    Regex::new(&expand_pattern(pattern)).ok()
}

/// The pattern with [`GAP`] for each `_`, except in the names of special tokens.
fn expand_pattern(pattern: &str) -> String {
    const NAMES: &[&str] = &[
        "im_start",
        "im_end",
        "eot_id",
        "start_header_id",
        "end_header_id",
        "start_of_turn",
        "belljar_(home",
    ];
    let mut text = pattern.to_owned();
    for name in NAMES {
        text = text.replace(name, &name.replace('_', r"\x5f"));
    }
    text.replace('_', GAP)
}

/// Finds all patterns in a text, except in warnings against an injection.
pub(super) fn find_suspicious_words(text: &str, found: &mut SuspicionCollector<'_>) {
    // ASCII lower case has the same length, so positions stay valid.
    let lower = text.to_ascii_lowercase();
    for (rule, regex) in &COMPILED.rules {
        for hit in regex.find_iter(&lower) {
            let hit = trim_hit(&lower, hit.start(), hit.end());
            if *rule == OVERRIDES_INSTRUCTIONS && warned::is_warning(&lower, &hit) {
                continue;
            }
            found.push_quote(rule, hit.start, text.get(hit.clone()).unwrap_or(""));
            if found.is_full(rule) {
                break;
            }
        }
    }
    find_order_comments(text, &lower, found);
    find_encoded_text(text, found);
}

/// The match without leading white space and code marks, so that its position is on the right line.
fn trim_hit(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let hit = text.get(start..end).unwrap_or("");
    let skipped = hit.len() - hit.trim_start_matches([' ', '\t', '\r', '\n', '`']).len();
    start + skipped..end
}

/// Finds HTML comments that order something. A comment inside a code fence is visible code.
fn find_order_comments(text: &str, lower: &str, found: &mut SuspicionCollector<'_>) {
    let Some(orders) = &COMPILED.orders else { return };
    let (mut offset, mut fence, mut open) = (0, None, None);
    for line in lower.split_inclusive('\n') {
        if open.is_none() {
            fence = next_fence(line.trim_start(), fence);
        }
        let mut at = 0;
        while fence.is_none() && at < line.len() {
            let rest = line.get(at..).unwrap_or("");
            let mark = if open.is_some() { "-->" } else { "<!--" };
            let Some(next) = rest.find(mark) else { break };
            at += next + mark.len();
            match open.take() {
                None => open = Some(offset + at - mark.len()),
                Some(start) => {
                    check_comment(text, lower, start..offset + at, orders, found);
                }
            }
        }
        offset += line.len();
    }
    // An unclosed comment extends to the end of the page.
    if let Some(start) = open {
        check_comment(text, lower, start..lower.len(), orders, found);
    }
}

/// Reports a comment that gives orders.
fn check_comment(
    text: &str,
    lower: &str,
    range: std::ops::Range<usize>,
    orders: &Regex,
    found: &mut SuspicionCollector<'_>,
) {
    if found.is_full(HIDDEN_COMMENT) {
        return;
    }
    if lower.get(range.clone()).is_some_and(|comment| orders.is_match(comment)) {
        found.push_quote(HIDDEN_COMMENT, range.start, text.get(range).unwrap_or(""));
    }
}

/// The code fence that is open after this line.
fn next_fence(line: &str, open: Option<&'static str>) -> Option<&'static str> {
    let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
    match (open, mark) {
        (None, mark) => mark,
        (Some(open), Some(mark)) if open == mark => None,
        (Some(open), _) => Some(open),
    }
}

/// Finds long runs of base64 or hexadecimal digits.
fn find_encoded_text(text: &str, found: &mut SuspicionCollector<'_>) {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (part(c), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                let run = text.get(from..at).unwrap_or("");
                if !found.is_full(ENCODED_TEXT) && is_encoded(run) {
                    found.push_quote(ENCODED_TEXT, from, run);
                }
                start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

/// Whether a run of characters is encoded data. Rules, paths and long names have few digits, or few letters
/// of one case, or many separators.
fn is_encoded(run: &str) -> bool {
    if run.len() < MIN_ENCODED {
        return false;
    }
    let number = |wanted: fn(&u8) -> bool| run.bytes().filter(wanted).count();
    let separators = number(|b| matches!(b, b'-' | b'_' | b'/' | b'='));
    let (upper, lower) = (number(u8::is_ascii_uppercase), number(u8::is_ascii_lowercase));
    let digits = number(u8::is_ascii_digit);
    let hexadecimal = number(u8::is_ascii_hexdigit) == run.len() && digits > run.len() / 4;
    let mixed = upper > run.len() / 10 && lower > run.len() / 10 && digits > run.len() / 25;
    hexadecimal || mixed && separators < run.len() / 12
}
