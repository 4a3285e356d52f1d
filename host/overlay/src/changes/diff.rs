//! Compares two texts line by line, with bounded work.
//!
//! Texts come from an agent, so the worst input counts, for example a file of 4 million empty lines, or a
//! reversed file of single letters. A comparison has at most [`MAX_LINES`] lines on each side and uses at
//! most [`MAX_STEPS`] steps; lines beyond either bound count as replaced. It has three parts:
//!
//! 1. Lines that both texts begin and end with are left out. Linear in bytes.
//! 2. A line that occurs once on each side is an anchor (patience). Linear in lines, per level.
//! 3. Between anchors: Myers's greedy search, for [`MAX_EDITS`] edits at a time, from the furthest point
//!    reached.
//!
//! Steps, not seconds, limit the work, so that two comparisons of the same texts have the same result: the
//! merge that a person was shown is the one that is written.

use std::collections::HashMap;
use std::ops::Range;

use belljar_work::{StopSignal, WorkStopped};

/// Compared lines of one text, without the common beginning and end.
pub(crate) const MAX_LINES: usize = 1 << 18;

/// Steps of one comparison: a step compares two lines, or visits a point of the search.
pub(crate) const MAX_STEPS: u64 = 1 << 25;

/// The most edits of one search step, because the memory of a step grows with the square of the edits.
const MAX_EDITS: usize = 512;

/// Steps between two checks of the signal.
const LOOK_EVERY: u64 = 1 << 16;

/// Lines of the first text, and the lines of the second text that replace them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) before: Range<u32>,
    pub(crate) after: Range<u32>,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct LineComparison {
    pub(crate) hunks: Vec<Hunk>,
    /// Whether a bound was reached, so that some equal lines count as replaced.
    pub(crate) is_coarse: bool,
}

/// The remaining steps, and the signal that stops the work.
#[derive(Debug)]
pub(crate) struct StepMeter<'a> {
    left: u64,
    unlooked: u64,
    stop: &'a StopSignal,
}

impl<'a> StepMeter<'a> {
    /// The steps of one comparison.
    pub(crate) fn new(stop: &'a StopSignal) -> Self {
        Self::with_steps(MAX_STEPS, stop)
    }

    pub(crate) fn with_steps(steps: u64, stop: &'a StopSignal) -> Self {
        Self { left: steps, unlooked: 0, stop }
    }

    pub(crate) fn steps_left(&self) -> u64 {
        self.left
    }

    /// Uses steps. `false` = too few are left.
    fn spend_steps(&mut self, steps: u64) -> Result<bool, WorkStopped> {
        self.unlooked = self.unlooked.saturating_add(steps);
        if self.unlooked >= LOOK_EVERY {
            self.unlooked = 0;
            self.stop.check_raised()?;
        }
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        Ok(enough)
    }
}

/// The lines of a text, addressed by number.
pub(crate) struct TextLines<'a> {
    text: &'a [u8],
    /// The start of each line, and the end of the last.
    starts: Vec<u32>,
}

impl<'a> TextLines<'a> {
    /// Splits a text of at most 4 GiB: see [`crate::changes::MAX_TEXT`].
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut starts = vec![0];
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        starts.extend(ends.map(|(at, _)| to_offset(at + 1)));
        if text.last().is_some_and(|byte| *byte != b'\n') {
            starts.push(to_offset(text.len()));
        }
        Self { text, starts }
    }

    pub(crate) fn line_count(&self) -> u32 {
        to_offset(self.starts.len() - 1)
    }

    /// The text of these lines.
    pub(crate) fn lines_text(&self, lines: Range<u32>) -> &'a [u8] {
        let at = |line: u32| self.starts.get(line as usize).or(self.starts.last());
        let (start, end) = (at(lines.start), at(lines.end));
        let bytes = start.zip(end).map(|(start, end)| *start as usize..*end as usize);
        bytes.and_then(|bytes| self.text.get(bytes)).unwrap_or_default()
    }

    /// The lines of the text without line ends.
    fn each_line(&self) -> impl Iterator<Item = &'a [u8]> {
        let ends = self.starts.get(1..).unwrap_or_default();
        self.starts
            .iter()
            .zip(ends)
            .map(|(start, end)| self.text.get(*start as usize..*end as usize).unwrap_or_default())
    }
}

fn to_offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The number of lines in a text.
pub(crate) fn count_lines(text: &[u8]) -> u32 {
    let whole = text.iter().filter(|byte| **byte == b'\n').count();
    to_offset(whole + usize::from(text.last().is_some_and(|byte| *byte != b'\n')))
}

/// Compares two texts by lines.
///
/// # Errors
///
/// The signal is raised.
pub(crate) fn compare_lines(
    before: &[u8],
    after: &[u8],
    meter: &mut StepMeter<'_>,
) -> Result<LineComparison, WorkStopped> {
    meter.stop.check_raised()?;
    let lead = common_lead(before, after);
    let trail = common_trail(text_between(before, lead, 0), text_between(after, lead, 0));
    let (old, new) = (text_between(before, lead, trail), text_between(after, lead, trail));
    let begin = count_lines(before.get(..lead).unwrap_or_default());
    let (removed, added) = (count_lines(old), count_lines(new));
    if removed == 0 && added == 0 {
        return Ok(LineComparison::default());
    }
    let whole = |is_coarse| {
        let (before, after) = (begin..begin + removed, begin..begin + added);
        Ok(LineComparison { hunks: vec![Hunk { before, after }], is_coarse })
    };
    if removed == 0 || added == 0 {
        return whole(false);
    }
    if removed.max(added) as usize > MAX_LINES || !meter.spend_steps(u64::from(removed + added))? {
        return whole(true);
    }
    let mut search = LineSearch::new(old, new, meter);
    search.run_search()?;
    let is_coarse = search.is_coarse;
    Ok(LineComparison { hunks: hunks_from_marks(&search.changed, begin), is_coarse })
}

fn text_between(text: &[u8], lead: usize, trail: usize) -> &[u8] {
    text.get(lead..text.len().saturating_sub(trail)).unwrap_or_default()
}

/// Bytes of the common whole lines at the beginning.
fn common_lead(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    if same == one.len() && same == other.len() {
        return same;
    }
    let part = one.get(..same).unwrap_or_default();
    part.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Bytes of the common whole lines at the end. Both texts begin with a whole line.
fn common_trail(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let begins_line = |text: &[u8]| match text.len().checked_sub(same + 1) {
        None => true,
        Some(at) => text.get(at) == Some(&b'\n'),
    };
    if begins_line(one) && begins_line(other) {
        return same;
    }
    let part = one.get(one.len() - same..).unwrap_or_default();
    part.iter().position(|byte| *byte == b'\n').map_or(0, |at| same - at - 1)
}

/// The marked lines, as ranges.
fn hunks_from_marks([gone, new]: &[Vec<bool>; 2], begin: u32) -> Vec<Hunk> {
    let run = |marks: &[bool], from: usize| {
        let rest = marks.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|mark| **mark).count()
    };
    let (mut hunks, mut old, mut now) = (Vec::new(), 0, 0);
    while old < gone.len() || now < new.len() {
        let (old_end, now_end) = (run(gone, old), run(new, now));
        if (old_end, now_end) == (old, now) {
            (old, now) = (old + 1, now + 1);
            continue;
        }
        let range = |from: usize, to: usize| begin + to_offset(from)..begin + to_offset(to);
        hunks.push(Hunk { before: range(old, old_end), after: range(now, now_end) });
        (old, now) = (old_end, now_end);
    }
    hunks
}

/// A box that is not compared yet: a range of lines of each side.
#[derive(Debug, Clone)]
struct CompareBox {
    old: Range<usize>,
    new: Range<usize>,
}

impl CompareBox {
    fn is_flat(&self) -> bool {
        self.old.is_empty() || self.new.is_empty()
    }

    fn line_count(&self) -> u64 {
        (self.old.len() + self.new.len()) as u64
    }
}

/// The count of a line in a box, and its last position, on each side.
#[derive(Debug, Clone, Copy, Default)]
struct LineOccurrences {
    times: [u32; 2],
    last: [usize; 2],
}

/// The lines that occur in both texts, as numbers.
struct SharedLines {
    numbers: Vec<u32>,
    /// The position of each line in the text.
    places: Vec<u32>,
}

struct LineSearch<'a, 'b> {
    old: SharedLines,
    new: SharedLines,
    /// Whether a line of each side has no partner.
    changed: [Vec<bool>; 2],
    /// The counts in the current box, by line number.
    seen: Vec<LineOccurrences>,
    is_coarse: bool,
    meter: &'b mut StepMeter<'a>,
}

impl<'a, 'b> LineSearch<'a, 'b> {
    /// Prepares the search for differences between two lists of lines.
    fn new(old: &[u8], new: &[u8], meter: &'b mut StepMeter<'a>) -> Self {
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let mut is_there: Vec<[bool; 2]> = Vec::new();
        let texts = [TextLines::new(old), TextLines::new(new)];
        let numbered = [0, 1].map(|side: usize| {
            let Some(lines) = texts.get(side) else { return Vec::new() };
            let number = |line| {
                let number = *known.entry(line).or_insert(to_offset(is_there.len()));
                if number as usize == is_there.len() {
                    is_there.push([false; 2]);
                }
                let sides = is_there.get_mut(number as usize);
                sides.and_then(|sides| sides.get_mut(side)).into_iter().for_each(|it| *it = true);
                number
            };
            lines.each_line().map(number).collect::<Vec<u32>>()
        });
        let in_both = |number: u32| is_there.get(number as usize) == Some(&[true; 2]);
        let changed = |all: &Vec<u32>| all.iter().map(|number| !in_both(*number)).collect();
        let side = |all: &Vec<u32>| {
            let shared = all.iter().enumerate().filter(|(_, number)| in_both(**number));
            let (places, numbers) = shared.map(|(at, number)| (to_offset(at), *number)).unzip();
            SharedLines { numbers, places }
        };
        let [old, new] = &numbered;
        Self {
            changed: [changed(old), changed(new)],
            old: side(old),
            new: side(new),
            seen: vec![LineOccurrences::default(); is_there.len()],
            is_coarse: false,
            meter,
        }
    }

    /// Searches all boxes until none is left or the steps are used up.
    fn run_search(&mut self) -> Result<(), WorkStopped> {
        let all = CompareBox { old: 0..self.old.numbers.len(), new: 0..self.new.numbers.len() };
        let mut open = vec![all];
        while let Some(part) = open.pop() {
            let part = self.trim_box(part);
            if part.is_flat() {
                self.mark_box(&part);
            } else if !self.meter.spend_steps(part.line_count())? {
                self.give_up(&part);
            } else {
                let anchors = self.find_anchors(&part);
                if anchors.is_empty() {
                    self.compare_greedily(part)?;
                } else {
                    split_at_anchors(&part, &anchors, &mut open);
                }
            }
        }
        Ok(())
    }

    /// A box without its common lines at the beginning and the end.
    fn trim_box(&self, CompareBox { mut old, mut new }: CompareBox) -> CompareBox {
        let is_same = |one: usize, other: usize| {
            self.old.numbers.get(one).is_some_and(|it| self.new.numbers.get(other) == Some(it))
        };
        while !old.is_empty() && !new.is_empty() && is_same(old.start, new.start) {
            (old.start, new.start) = (old.start + 1, new.start + 1);
        }
        while !old.is_empty() && !new.is_empty() && is_same(old.end - 1, new.end - 1) {
            (old.end, new.end) = (old.end - 1, new.end - 1);
        }
        CompareBox { old, new }
    }

    /// Marks all lines of a box as having no partner.
    fn mark_box(&mut self, part: &CompareBox) {
        let [gone, new] = &mut self.changed;
        part.old.clone().for_each(|at| mark_line(gone, &self.old, at));
        part.new.clone().for_each(|at| mark_line(new, &self.new, at));
    }

    fn give_up(&mut self, part: &CompareBox) {
        self.is_coarse = true;
        self.mark_box(part);
    }

    /// The lines that are unique on both sides of a box, as far as their order agrees.
    fn find_anchors(&mut self, part: &CompareBox) -> Vec<(usize, usize)> {
        let sides = [(&self.old, &part.old), (&self.new, &part.new)];
        for (side, (lines, range)) in sides.iter().enumerate() {
            for at in (*range).clone() {
                let number = lines.numbers.get(at).copied().unwrap_or_default();
                let Some(seen) = self.seen.get_mut(number as usize) else { continue };
                if let (Some(times), Some(last)) =
                    (seen.times.get_mut(side), seen.last.get_mut(side))
                {
                    (*times, *last) = (*times + 1, at);
                }
            }
        }
        let once = |at: usize| {
            let seen = self.seen.get(*self.old.numbers.get(at)? as usize)?;
            (seen.times == [1, 1]).then_some((at, seen.last[1]))
        };
        let pairs: Vec<_> = part.old.clone().filter_map(once).collect();
        for (lines, range) in sides {
            for at in range.clone() {
                let number = lines.numbers.get(at).copied().unwrap_or_default();
                if let Some(seen) = self.seen.get_mut(number as usize) {
                    *seen = LineOccurrences::default();
                }
            }
        }
        longest_rising(&pairs)
    }

    /// Compares a box without anchors.
    fn compare_greedily(&mut self, part: CompareBox) -> Result<(), WorkStopped> {
        let mut rest = part;
        loop {
            rest = self.trim_box(rest);
            if rest.is_flat() {
                self.mark_box(&rest);
                return Ok(());
            }
            match self.search_forward(&rest)? {
                Some((old, new)) => {
                    (rest.old.start, rest.new.start) = (rest.old.start + old, rest.new.start + new);
                }
                None => {
                    self.give_up(&rest);
                    return Ok(());
                }
            }
        }
    }

    /// Searches from the beginning of a box, and marks the differences on the best path. Returns the number
    /// of lines passed on each side; `None` = the steps are used up.
    fn search_forward(&mut self, part: &CompareBox) -> Result<Option<(usize, usize)>, WorkStopped> {
        let one = self.old.numbers.get(part.old.clone()).unwrap_or_default();
        let other = self.new.numbers.get(part.new.clone()).unwrap_or_default();
        let mut ways = EditPaths { rows: Vec::new(), size: (one.len() as i64, other.len() as i64) };
        let end = loop {
            let mut row = Vec::with_capacity(ways.rows.len() + 1);
            let mut steps = 0;
            let mut ended = None;
            for at in 0..=ways.rows.len() {
                let place = ways.entry_point(ways.rows.len(), at).map(|(x, y, _)| {
                    let same = common_length(one, other, x, y);
                    steps += same;
                    (x + same, y + same)
                });
                steps += 1;
                row.push(place.map(|(x, _)| x));
                if place == Some(ways.size) {
                    ended = Some(at);
                    break;
                }
            }
            ways.rows.push(row);
            if !self.meter.spend_steps(steps.unsigned_abs())? {
                return Ok(None);
            }
            if let Some(at) = ended {
                break at;
            }
            if ways.rows.len() > MAX_EDITS {
                break ways.furthest_place();
            }
        };
        let Some((old, new)) = ways.point_at(ways.rows.len() - 1, end) else { return Ok(None) };
        let [gone, come] = &mut self.changed;
        ways.each_edit(end, |(x, y), is_gone| match is_gone {
            true => mark_line(gone, &self.old, part.old.start + x),
            false => mark_line(come, &self.new, part.new.start + y),
        });
        Ok(Some((old, new)))
    }
}

/// Marks a line as changed.
fn mark_line(marks: &mut [bool], side: &SharedLines, at: usize) {
    let place = side.places.get(at).and_then(|place| marks.get_mut(*place as usize));
    if let Some(mark) = place {
        *mark = true;
    }
}

/// The number of equal lines from two positions on.
fn common_length(one: &[u32], other: &[u32], x: i64, y: i64) -> i64 {
    let from =
        |lines: &[u32], at: i64| usize::try_from(at).map_or(lines.len(), |at| at.min(lines.len()));
    let (one, other) = (one.get(from(one, x)..), other.get(from(other, y)..));
    let pairs = one.unwrap_or_default().iter().zip(other.unwrap_or_default());
    pairs.take_while(|(a, b)| a == b).count() as i64
}

/// Adds the boxes between anchors to `open`.
fn split_at_anchors(part: &CompareBox, anchors: &[(usize, usize)], open: &mut Vec<CompareBox>) {
    let (mut old, mut new) = (part.old.start, part.new.start);
    for (at, place) in anchors.iter().copied().chain([(part.old.end, part.new.end)]) {
        if at > old || place > new {
            open.push(CompareBox { old: old..at, new: new..place });
        }
        (old, new) = (at + 1, place + 1);
    }
}

/// The longest subsequence of pairs whose second positions increase; the first ones already do.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let place = |at: &usize| pairs.get(*at).map(|(_, new)| *new);
    // For each length, the last pair of the best subsequence; and for each pair, its predecessor.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (at, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| place(end) < Some(*new));
        before.push(length.checked_sub(1).and_then(|before| ends.get(before).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut way = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        way.extend(pairs.get(at));
        next = before.get(at).copied().flatten();
    }
    way.reverse();
    way
}

/// The furthest points for each number of edits, by Myers: in row `d`, entry `i` is on the diagonal `2i - d`,
/// where x counts lines of the old text and y lines of the new.
struct EditPaths {
    /// The x of each point; `None` = outside of the box.
    rows: Vec<Vec<Option<i64>>>,
    size: (i64, i64),
}

impl EditPaths {
    /// The point at which a path enters a diagonal in a row, before equal lines are passed. The flag is true
    /// for a removed line, from the previous diagonal, and false for a new one, from the next diagonal.
    fn entry_point(&self, row: usize, at: usize) -> Option<(i64, i64, bool)> {
        let Some(above) = row.checked_sub(1).and_then(|row| self.rows.get(row)) else {
            return Some((0, 0, false));
        };
        let diagonal = 2 * at as i64 - row as i64;
        let known = |at: Option<usize>| at.and_then(|at| above.get(at).copied().flatten());
        let inside = |x: i64| x <= self.size.0 && x - diagonal <= self.size.1;
        let new = known(Some(at)).filter(|x| inside(*x));
        let gone = known(at.checked_sub(1)).map(|x| x + 1).filter(|x| inside(*x));
        let (x, is_gone) = match (new, gone) {
            (Some(new), Some(gone)) if gone > new => (gone, true),
            (Some(new), _) => (new, false),
            (None, gone) => (gone?, true),
        };
        Some((x, x - diagonal, is_gone))
    }

    fn point_at(&self, row: usize, at: usize) -> Option<(usize, usize)> {
        let x = self.rows.get(row)?.get(at).copied().flatten()?;
        let y = x - (2 * at as i64 - row as i64);
        Some((usize::try_from(x).ok()?, usize::try_from(y).ok()?))
    }

    /// The entry of the last row with the most lines passed.
    fn furthest_place(&self) -> usize {
        let row = self.rows.len() - 1;
        let behind = |at: &usize| self.point_at(row, *at).map(|(x, y)| x + y);
        (0..=row).max_by_key(behind).unwrap_or_default()
    }

    /// Reports the edits on the path to an entry of the last row, from its end: the line's position on both
    /// sides, and whether it was removed.
    fn each_edit(&self, end: usize, mut tell: impl FnMut((usize, usize), bool)) {
        let mut at = end;
        for row in (1..self.rows.len()).rev() {
            let Some((x, y, is_gone)) = self.entry_point(row, at) else { return };
            let (x, y) = if is_gone { (x - 1, y) } else { (x, y - 1) };
            let line = |at: i64| usize::try_from(at).unwrap_or(usize::MAX);
            tell((line(x), line(y)), is_gone);
            at = if is_gone { at - 1 } else { at };
        }
    }
}

#[cfg(test)]
mod tests;
