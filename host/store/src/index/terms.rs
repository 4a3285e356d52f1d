//! From text to terms: words in lower case, without the words that every text has.

use std::collections::HashSet;

/// Most bytes of a text that are split.
const MAX_SPLIT: usize = 16 << 10;

/// Most bytes of one term; a longer one is cut.
const MAX_TERM: usize = 40;

/// Most terms of one search.
const MAX_SEARCHED: usize = 64;

/// Words that say nothing about the subject of a text: of English, and of descriptions of agents.
const STOP_WORDS: &str = " a about agent agents all also an and any are as assistant at be been being but by can \
    could do does did for from get has have help how i id if im in into is it its ive just let lets like make me \
    more must my need needs no not now of on or our out please should so some task tasks that the their them then \
    there these they this to up us use used user users using want wants was we were what when where which who \
    will with work working would you your ";

/// Words that descriptions of agents have besides.
const STOP_WORDS_OF_ENTRIES: &str =
    " example examples expert proactively specialist specialized specializes specializing ";

/// The terms of a text in their order, repetitions included.
pub(super) fn split_terms(text: &str) -> Vec<String> {
    let mut end = text.len().min(MAX_SPLIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut terms = Vec::new();
    let mut term = String::new();
    for c in text.get(..end).unwrap_or_default().chars() {
        if is_own_word(c) {
            finish_term(&mut term, &mut terms);
            terms.push(c.to_string());
        } else if c.is_alphanumeric() {
            if term.len() < MAX_TERM {
                term.extend(c.to_lowercase());
            }
        } else if matches!(c, '.' | '+' | '#') && !term.is_empty() {
            // As in `next.js`, `c++`, `c#`.
            term.push(c);
        } else {
            finish_term(&mut term, &mut terms);
        }
    }
    finish_term(&mut term, &mut terms);
    terms
}

fn finish_term(term: &mut String, terms: &mut Vec<String>) {
    let kept = term.trim_end_matches('.');
    if !kept.is_empty() {
        terms.push(kept.to_owned());
    }
    term.clear();
}

/// Returns whether a character is a word by itself, as in Chinese and Japanese.
fn is_own_word(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Distinct terms of an entry, at most `most`, without stop words and `known` ones.
pub(super) fn distinct_terms(
    terms: Vec<String>,
    most: usize,
    known: &mut HashSet<String>,
) -> String {
    let mut text = String::new();
    let kept = terms.into_iter().filter(|term| {
        !is_in(STOP_WORDS, term)
            && !is_in(STOP_WORDS_OF_ENTRIES, term)
            && known.insert(term.clone())
    });
    for term in kept.take(most) {
        text.push_str(&term);
        text.push(' ');
    }
    text
}

/// A search for any of the words, in the notation of FTS5. Each term is quoted, so no word is an operator.
/// `None` = there is no word.
pub(super) fn match_expression(words: &str) -> Option<String> {
    let all = split_terms(words);
    let mut seen = HashSet::new();
    let searched = |stops: bool, seen: &mut HashSet<String>| -> Vec<String> {
        let wanted = all.iter().filter(|term| !(stops && is_in(STOP_WORDS, term)));
        let distinct = wanted.filter(|term| seen.insert((*term).clone()));
        distinct.take(MAX_SEARCHED).map(|term| format!("\"{term}\"")).collect()
    };
    let mut terms = searched(true, &mut seen);
    if terms.is_empty() {
        terms = searched(false, &mut seen);
    }
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// A name or a description for comparison: its terms in one line.
pub(super) fn fold_text(text: &str) -> String {
    split_terms(text).join(" ")
}

fn is_in(list: &str, term: &str) -> bool {
    // A term has no blank.
    list.match_indices(term).any(|(at, found)| {
        let before = list.as_bytes().get(at.wrapping_sub(1));
        let after = list.as_bytes().get(at + found.len());
        before == Some(&b' ') && after == Some(&b' ')
    })
}
