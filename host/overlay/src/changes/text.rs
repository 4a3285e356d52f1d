//! Texts: counts of changed lines, patches, and merges of two versions.
//!
//! Every comparison is bounded: see `diff.rs`.

use std::ops::Range;

use belljar_work::{StopSignal, WorkStopped};

use crate::changes::diff::{
    Hunk, LineComparison, StepMeter, TextLines, compare_lines, count_lines,
};

/// The largest text that is compared, in bytes. A larger one is treated as binary, so that memory and time
/// stay bounded, whatever an agent writes.
pub(crate) const MAX_TEXT: u64 = 4 << 20;

/// The first bytes of a file, in which a zero byte marks it as binary, as in git.
const LOOKED_AT: usize = 8000;

/// Lines around a difference in a patch.
const CONTEXT: u32 = 3;

/// Whether a content is binary.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    content.get(..LOOKED_AT).unwrap_or(content).contains(&0)
}

/// The numbers of different lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) added: u64,
    pub(crate) removed: u64,
    /// Whether the comparison reached its bound, so that equal lines may be included.
    pub(crate) is_coarse: bool,
}

/// Counts new and removed lines.
pub(crate) fn count_differences(
    before: &[u8],
    after: &[u8],
    meter: &mut StepMeter<'_>,
) -> Result<LineCounts, WorkStopped> {
    let counted = |added: u32, removed: u32| LineCounts {
        added: added.into(),
        removed: removed.into(),
        is_coarse: false,
    };
    if before.is_empty() || after.is_empty() {
        return Ok(counted(count_lines(after), count_lines(before)));
    }
    let LineComparison { hunks, is_coarse } = compare_lines(before, after, meter)?;
    let sum = |of: fn(&Hunk) -> &Range<u32>| hunks.iter().map(|hunk| of(hunk).len() as u64).sum();
    Ok(LineCounts { added: sum(|hunk| &hunk.after), removed: sum(|hunk| &hunk.before), is_coarse })
}

fn diff_lines(before: &[u8], after: &[u8], stop: &StopSignal) -> Result<Vec<Hunk>, WorkStopped> {
    Ok(compare_lines(before, after, &mut StepMeter::new(stop))?.hunks)
}

/// The differences as a unified diff without names; empty if the texts are equal.
pub(crate) fn unified_diff(
    before: &[u8],
    after: &[u8],
    stop: &StopSignal,
) -> Result<Vec<u8>, WorkStopped> {
    let hunks = diff_lines(before, after, stop)?;
    let (old, new) = (TextLines::new(before), TextLines::new(after));
    let mut out = Vec::new();
    let mut rest = hunks.as_slice();
    while let Some(first) = rest.first() {
        // Hunks with overlapping context are joined.
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
        let end = (last.before.end + CONTEXT).min(old.line_count());
        let trail = end - last.before.end;
        let begin_new = first.after.start - lead.min(first.after.start);
        let end_new = last.after.end + trail;
        write_hunk_header(&mut out, begin..end, begin_new..end_new);
        let mut at = begin;
        for hunk in group {
            write_lines(&mut out, b' ', old.lines_text(at..hunk.before.start));
            write_lines(&mut out, b'-', old.lines_text(hunk.before.clone()));
            write_lines(&mut out, b'+', new.lines_text(hunk.after.clone()));
            at = hunk.before.end;
        }
        write_lines(&mut out, b' ', old.lines_text(at..end));
    }
    Ok(out)
}

/// Writes the header of a hunk, for example `@@ -1,3 +1,4 @@`.
fn write_hunk_header(out: &mut Vec<u8>, before: Range<u32>, after: Range<u32>) {
    let range = |range: &Range<u32>| match range.len() {
        // The format of diff: an empty range is placed after a line.
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    };
    out.extend(format!("@@ -{} +{} @@\n", range(&before), range(&after)).bytes());
}

/// Writes lines, each with the mark ` `, `+` or `-`.
fn write_lines(out: &mut Vec<u8>, mark: u8, lines: &[u8]) {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// Lines that both versions changed differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeClash {
    /// The first line in the workspace's version, from 1.
    pub line: u64,
    /// The workspace's version.
    pub ours: Vec<u8>,
    /// The agent's version.
    pub theirs: Vec<u8>,
}

/// The lines that prevent a merge of two versions; empty if mergeable.
pub(crate) fn find_clashes(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    stop: &StopSignal,
) -> Result<Vec<MergeClash>, WorkStopped> {
    let (mine, yours) = (diff_lines(base, ours, stop)?, diff_lines(base, theirs, stop)?);
    let (one, other) = (TextLines::new(ours), TextLines::new(theirs));
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
        let is_same = a.before == b.before
            && one.lines_text(a.after.clone()) == other.lines_text(b.after.clone());
        if is_same {
            (mine, yours) = (after_a, after_b);
            continue;
        }
        let start = a.before.start.min(b.before.start);
        let mut end = a.before.end.max(b.before.end);
        let (mut own, mut their) = (1, 1);
        while extend_over_hunks(mine, &mut own, &mut end)
            || extend_over_hunks(yours, &mut their, &mut end)
        {}
        let (group, after_a) = mine.split_at(own);
        let (group_b, after_b) = yours.split_at(their);
        let (ours, theirs) = (version_range(group, start..end), version_range(group_b, start..end));
        found.push(MergeClash {
            line: u64::from(ours.start) + 1,
            ours: one.lines_text(ours).to_vec(),
            theirs: other.lines_text(theirs).to_vec(),
        });
        (mine, yours) = (after_a, after_b);
    }
    Ok(found)
}

/// Includes the hunks that touch `end`, and moves `end` after them. Returns whether any hunk did.
fn extend_over_hunks(hunks: &[Hunk], taken: &mut usize, end: &mut u32) -> bool {
    let before = *taken;
    while let Some(next) = hunks.get(*taken).filter(|next| next.before.start <= *end) {
        *end = next.before.end.max(*end);
        *taken += 1;
    }
    *taken > before
}

/// The lines of one version that correspond to lines of the base around all these hunks.
fn version_range(hunks: &[Hunk], base: Range<u32>) -> Range<u32> {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return base };
    let start = first.after.start.saturating_sub(first.before.start.saturating_sub(base.start));
    start..last.after.end.saturating_add(base.end.saturating_sub(last.before.end))
}

/// The merge of both versions; `None` if both changed the same or adjacent lines differently.
pub(crate) fn merge_texts(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    stop: &StopSignal,
) -> Result<Option<Vec<u8>>, WorkStopped> {
    let (mine, yours) = (diff_lines(base, ours, stop)?, diff_lines(base, theirs, stop)?);
    Ok(join_hunks(base, (ours, &mine), (theirs, &yours)))
}

/// Joins the hunks of both sides into one text; `None` = two hunks overlap, which is a conflict.
fn join_hunks(
    base: &[u8],
    (ours, mine): (&[u8], &[Hunk]),
    (theirs, yours): (&[u8], &[Hunk]),
) -> Option<Vec<u8>> {
    let (old, one, other) = (TextLines::new(base), TextLines::new(ours), TextLines::new(theirs));
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
                    && one.lines_text(a.after.clone()) == other.lines_text(b.after.clone());
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
        out.extend_from_slice(old.lines_text(at..hunk.before.start));
        out.extend_from_slice(from.lines_text(hunk.after.clone()));
        at = hunk.before.end;
    }
    out.extend_from_slice(old.lines_text(at..old.line_count()));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
        super::merge_texts(base, ours, theirs, &StopSignal::never_raised()).unwrap()
    }

    fn clashes(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<MergeClash> {
        super::find_clashes(base, ours, theirs, &StopSignal::never_raised()).unwrap()
    }

    fn count(before: &[u8], after: &[u8]) -> (u64, u64) {
        let stop = StopSignal::never_raised();
        let counted = super::count_differences(before, after, &mut StepMeter::new(&stop)).unwrap();
        (counted.added, counted.removed)
    }

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
                let lines = TextLines::new(&one);
                let from = u32::try_from(clash.line).unwrap() - 1;
                let rest = lines.lines_text(from..lines.line_count());
                prop_assert!(rest.starts_with(&clash.ours));
            }
        }

        #[test]
        fn lines_are_counted_as_the_diff_has_them(before in text(), after in text()) {
            let told = unified_diff(&before, &after, &StopSignal::never_raised()).unwrap();
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
        let clash = MergeClash { line: 3, ours: b"B\nc\n".to_vec(), theirs: b"b2\nC\n".to_vec() };
        assert_eq!(found, [clash]);
    }
}
