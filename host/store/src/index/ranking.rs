//! What an entry may gain by its own words, and the order of found entries.

use std::collections::HashSet;

use super::IndexEntry;
use super::terms::{distinct_terms, fold_text, split_terms};

/// Distinct terms of a name, of a description and of the text behind. A list of words beyond a bound is not
/// found by its later words.
const MAX_NAME_TERMS: usize = 12;
const MAX_ABOUT_TERMS: usize = 60;
const MAX_MORE_TERMS: usize = 100;

/// Words of a description without a loss of rank. Nine of ten public descriptions have fewer.
const FREE_WORDS: f64 = 80.0;

/// The facts about an entry that its rank depends on besides the score of the database.
#[derive(Debug, Clone)]
pub(super) struct EntryTraits {
    /// The name, and its last part where the name has a path.
    names: [String; 2],
    /// The name and the description, equal for copies of one entry.
    copy_of: [u8; 8],
    /// The share of the score that counts: less for a description with more than [`FREE_WORDS`].
    share: f64,
}

/// The terms of an entry, and its facts.
pub(super) fn prepare_entry(entry: &IndexEntry) -> ([String; 3], EntryTraits) {
    let last = entry.name.rsplit(['/', ':']).next().unwrap_or_default();
    let names = [fold_text(&entry.name), fold_text(last)];
    let about = split_terms(&entry.about);
    let words = f64::from(u32::try_from(about.len().max(1)).unwrap_or(u32::MAX));
    let copy_of = digest_text(&format!("{}\n{}", names[1], about.join(" ")));
    let name = distinct_terms(split_terms(&entry.name), MAX_NAME_TERMS, &mut HashSet::new());
    let mut known = HashSet::new();
    let about = distinct_terms(about, MAX_ABOUT_TERMS, &mut known);
    let more = distinct_terms(split_terms(&entry.more), MAX_MORE_TERMS, &mut known);
    let share = (FREE_WORDS / words).min(1.0);
    ([name, about, more], EntryTraits { names, copy_of, share })
}

/// The order of the found entries: those whose name is the search, then by score.
pub(super) fn rank_entries(
    traits: &[EntryTraits],
    words: &str,
    permitted: &[usize],
    scored: Vec<(usize, f64)>,
    limit: usize,
) -> Vec<usize> {
    let searched = fold_text(words);
    let named = |place: &&usize| {
        let names = traits.get(**place).map(|it| &it.names);
        !searched.is_empty() && names.is_some_and(|names| names.contains(&searched))
    };
    let mut ranked: Vec<(usize, f64)> =
        permitted.iter().filter(named).map(|place| (*place, f64::NEG_INFINITY)).collect();
    ranked.extend(
        scored
            .into_iter()
            .map(|(place, score)| (place, score * traits.get(place).map_or(1.0, |it| it.share))),
    );
    ranked.sort_by(|(a, left), (b, right)| left.total_cmp(right).then(a.cmp(b)));
    let mut copies = HashSet::new();
    let mut kept = HashSet::new();
    let first = |place: &usize| {
        // Two entries of one search by name are two: the person means one of them.
        let copy = traits.get(*place).is_none_or(|it| copies.insert(it.copy_of));
        kept.insert(*place) && copy
    };
    ranked.into_iter().map(|(place, _)| place).filter(first).take(limit).collect()
}

/// A short digest of a text, for telling copies apart; a clash costs one entry of a list.
fn digest_text(text: &str) -> [u8; 8] {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish().to_be_bytes()
}
