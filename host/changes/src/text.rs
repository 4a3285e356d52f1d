//! Texts: which lines differ, and merging two versions of one.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Bytes of a text whose lines are compared. What is larger is treated as binary: memory and time
/// stay bounded, whatever an agent writes.
pub(crate) const MAX_TEXT: u64 = 4 << 20;

/// Bytes in which a zero says that it is no text, as git has it.
const LOOKED_AT: usize = 8000;

/// Lines around a difference in a patch.
const CONTEXT: u32 = 3;

/// Whether it is no text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.get(..LOOKED_AT).unwrap_or(content).contains(&0)
}

/// Lines that are new and lines that are gone.
pub(crate) fn count(before: &[u8], after: &[u8]) -> (u64, u64) {
    let lines = |text: &[u8]| {
        let whole = text.iter().filter(|byte| **byte == b'\n').count();
        (whole + usize::from(text.last().is_some_and(|byte| *byte != b'\n'))) as u64
    };
    match (before.is_empty(), after.is_empty()) {
        (true, _) => (lines(after), 0),
        (_, true) => (0, lines(before)),
        (false, false) => {
            let diff = Diff::compute(Algorithm::Histogram, &InternedInput::new(before, after));
            (diff.count_additions().into(), diff.count_removals().into())
        }
    }
}

struct Hunk {
    before: Range<u32>,
    after: Range<u32>,
}

fn hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    diff.hunks().map(|hunk| Hunk { before: hunk.before, after: hunk.after }).collect()
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn part<'a, 'b>(lines: &'b [&'a [u8]], range: Range<u32>) -> &'b [&'a [u8]] {
    lines.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// The differences as a unified diff, without names; nothing where there are none.
pub(crate) fn unified(before: &[u8], after: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(before), lines(after));
    let hunks = hunks(before, after);
    let mut out = Vec::new();
    let mut rest = hunks.as_slice();
    while let Some(first) = rest.first() {
        // Those whose context would overlap are one.
        let apart = |pair: &[Hunk]| match pair {
            [one, next] => next.before.start.saturating_sub(one.before.end) > 2 * CONTEXT,
            _ => false,
        };
        let many = rest.windows(2).position(apart).map_or(rest.len(), |at| at + 1);
        let (group, after) = rest.split_at(many);
        rest = after;
        let Some(last) = group.last() else { break };
        let begin = first.before.start.saturating_sub(CONTEXT);
        let lead = first.before.start - begin;
        let end = (last.before.end + CONTEXT).min(old.len() as u32);
        let trail = end - last.before.end;
        let begin_new = first.after.start - lead.min(first.after.start);
        let end_new = last.after.end + trail;
        head(&mut out, begin..end, begin_new..end_new);
        let mut at = begin;
        for hunk in group {
            part(&old, at..hunk.before.start).iter().for_each(|line| put(&mut out, b' ', line));
            part(&old, hunk.before.clone()).iter().for_each(|line| put(&mut out, b'-', line));
            part(&new, hunk.after.clone()).iter().for_each(|line| put(&mut out, b'+', line));
            at = hunk.before.end;
        }
        part(&old, at..end).iter().for_each(|line| put(&mut out, b' ', line));
    }
    out
}

fn head(out: &mut Vec<u8>, before: Range<u32>, after: Range<u32>) {
    let range = |range: &Range<u32>| match range.len() {
        // As diff counts: an empty range stands after a line.
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    };
    out.extend(format!("@@ -{} +{} @@\n", range(&before), range(&after)).bytes());
}

fn put(out: &mut Vec<u8>, mark: u8, line: &[u8]) {
    out.push(mark);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

/// Lines that both versions of a text changed, each in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The first of them in the workspace's version, from 1.
    pub line: u64,
    /// The workspace's version.
    pub ours: Vec<u8>,
    /// The agent's version.
    pub theirs: Vec<u8>,
}

/// The places that keep two versions of a text from being merged; none where they merge.
pub(crate) fn clashes(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<Clash> {
    let (one, other) = (lines(ours), lines(theirs));
    let (mine, yours) = (hunks(base, ours), hunks(base, theirs));
    let (mut mine, mut yours) = (mine.as_slice(), yours.as_slice());
    let mut found = Vec::new();
    while let (Some((a, after_a)), Some((b, after_b))) = (mine.split_first(), yours.split_first()) {
        if a.before.end < b.before.start {
            mine = after_a;
            continue;
        }
        if b.before.end < a.before.start {
            yours = after_b;
            continue;
        }
        let is_same =
            a.before == b.before && part(&one, a.after.clone()) == part(&other, b.after.clone());
        if is_same {
            (mine, yours) = (after_a, after_b);
            continue;
        }
        let start = a.before.start.min(b.before.start);
        let mut end = a.before.end.max(b.before.end);
        let (mut own, mut their) = (1, 1);
        while reach(mine, &mut own, &mut end) || reach(yours, &mut their, &mut end) {}
        let (group, after_a) = mine.split_at(own);
        let (group_b, after_b) = yours.split_at(their);
        let (ours, theirs) = (side(group, start..end), side(group_b, start..end));
        found.push(Clash {
            line: u64::from(ours.start) + 1,
            ours: part(&one, ours).concat(),
            theirs: part(&other, theirs).concat(),
        });
        (mine, yours) = (after_a, after_b);
    }
    found
}

/// Takes the hunks in that touch what ends there, and moves the end behind them. Whether there were any.
fn reach(hunks: &[Hunk], taken: &mut usize, end: &mut u32) -> bool {
    let before = *taken;
    while let Some(next) = hunks.get(*taken).filter(|next| next.before.start <= *end) {
        *end = next.before.end.max(*end);
        *taken += 1;
    }
    *taken > before
}

/// The lines of one version that stand for lines of the base, between which all these hunks lie.
fn side(hunks: &[Hunk], base: Range<u32>) -> Range<u32> {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return base };
    let start = first.after.start.saturating_sub(first.before.start.saturating_sub(base.start));
    start..last.after.end.saturating_add(base.end.saturating_sub(last.before.end))
}

/// Both versions of a text as one; `None` where they changed the same lines, or lines that touch,
/// in different ways.
pub(crate) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (old, one, other) = (lines(base), lines(ours), lines(theirs));
    let (mine, yours) = (hunks(base, ours), hunks(base, theirs));
    let (mut mine, mut yours) = (mine.iter().peekable(), yours.iter().peekable());
    let mut out = Vec::with_capacity(ours.len().max(theirs.len()));
    let mut at = 0;
    loop {
        let (hunk, from) = match (mine.peek(), yours.peek()) {
            (None, None) => break,
            (Some(_), None) => (mine.next()?, &one),
            (None, Some(_)) => (yours.next()?, &other),
            (Some(a), Some(b)) => {
                let same = a.before == b.before
                    && part(&one, a.after.clone()) == part(&other, b.after.clone());
                if same {
                    yours.next();
                    (mine.next()?, &one)
                } else if a.before.end < b.before.start {
                    (mine.next()?, &one)
                } else if b.before.end < a.before.start {
                    (yours.next()?, &other)
                } else {
                    return None;
                }
            }
        };
        part(&old, at..hunk.before.start).iter().for_each(|line| out.extend_from_slice(line));
        part(from, hunk.after.clone()).iter().for_each(|line| out.extend_from_slice(line));
        at = hunk.before.end;
    }
    part(&old, at..old.len() as u32).iter().for_each(|line| out.extend_from_slice(line));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec("[a-d]{0,2}\n?", 0..12).prop_map(|lines| lines.concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn merging_with_what_did_not_change_gives_the_other(base in text(), other in text()) {
            prop_assert_eq!(merge(&base, &base, &other), Some(other.clone()));
            prop_assert_eq!(merge(&base, &other, &base), Some(other.clone()));
            prop_assert_eq!(merge(&base, &other, &other), Some(other));
        }

        #[test]
        fn a_merge_has_no_side(base in text(), one in text(), other in text()) {
            prop_assert_eq!(merge(&base, &one, &other), merge(&base, &other, &one));
        }

        #[test]
        fn what_does_not_merge_clashes_somewhere(base in text(), one in text(), other in text()) {
            let found = clashes(&base, &one, &other);
            prop_assert_eq!(found.is_empty(), merge(&base, &one, &other).is_some());
            for clash in found {
                prop_assert!(clash.ours != clash.theirs);
                let lines: Vec<&[u8]> = lines(&one);
                let from = usize::try_from(clash.line).unwrap() - 1;
                let rest = lines.get(from..).unwrap_or_default().concat();
                prop_assert!(rest.starts_with(&clash.ours));
            }
        }

        #[test]
        fn lines_are_counted_as_the_diff_has_them(before in text(), after in text()) {
            let told = unified(&before, &after);
            let marked = |mark: u8| {
                let lines = told.split(|byte| *byte == b'\n');
                lines.filter(|line| line.first() == Some(&mark)).count() as u64
            };
            let (added, removed) = count(&before, &after);
            prop_assert_eq!(added as i64 - removed as i64, marked(b'+') as i64 - marked(b'-') as i64);
            prop_assert_eq!(told.is_empty(), before == after);
        }
    }

    #[test]
    fn changes_apart_merge_and_changes_that_touch_do_not() {
        let base = b"a\nb\nc\nd\ne\n";
        let merged = merge(base, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n");
        assert_eq!(merged.unwrap(), b"A\nb\nc\nd\nE\n");
        assert_eq!(merge(base, b"a\nB\nc\nd\ne\n", b"a\nb\nC\nd\ne\n"), None);
        assert_eq!(merge(base, b"a\nB\nc\nd\ne\n", b"a\nX\nc\nd\ne\n"), None);
        assert_eq!(merge(base, b"a\nc\nd\ne\n", b"a\nX\nc\nd\ne\n"), None);
        let inserted = merge(base, b"0\na\nb\nc\nd\ne\n", b"a\nb\nc\nd\ne\nf");
        assert_eq!(inserted.unwrap(), b"0\na\nb\nc\nd\ne\nf");
    }

    #[test]
    fn a_clash_has_the_lines_of_both_and_says_where() {
        let base = b"a\nb\nc\nd\ne\nf\ng\n";
        let found = clashes(base, b"0\na\nB\nc\nd\ne\nf\nG\n", b"a\nb2\nC\nd\ne\nf\ng\n");
        let clash = Clash { line: 3, ours: b"B\nc\n".to_vec(), theirs: b"b2\nC\n".to_vec() };
        assert_eq!(found, [clash]);
    }

    /// Time stays bounded on texts that agree nowhere.
    #[test]
    fn the_largest_texts_are_compared_in_bounded_time() {
        let many = |from: u64| {
            let lines = (from..).map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let mut text = String::new();
            for line in lines {
                text.push_str(&line);
                if text.len() as u64 > MAX_TEXT - 40 {
                    break;
                }
            }
            text.into_bytes()
        };
        let (one, other) = (many(0), many(1 << 40));
        let begun = std::time::Instant::now();
        let (added, removed) = count(&one, &other);
        assert!(added > 100_000 && removed > 100_000);
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
