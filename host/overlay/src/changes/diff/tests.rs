//! Tests of comparisons: correct, minimal if possible, and bounded otherwise.

use belljar_work::StopSignal;
use proptest::prelude::*;

use super::*;

/// Compares two texts; returns the comparison and the number of steps.
fn compared(before: &[u8], after: &[u8]) -> (LineComparison, u64) {
    let stop = StopSignal::never_raised();
    let mut meter = StepMeter::new(&stop);
    let compared = compare_lines(before, after, &mut meter).unwrap();
    (compared, MAX_STEPS - meter.steps_left())
}

/// The second text, made of the first one by the hunks.
fn patched(before: &[u8], after: &[u8], hunks: &[Hunk]) -> Vec<u8> {
    let (old, new) = (TextLines::new(before), TextLines::new(after));
    let mut text = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        text.extend_from_slice(old.lines_text(at..hunk.before.start));
        text.extend_from_slice(new.lines_text(hunk.after.clone()));
        at = hunk.before.end;
    }
    text.extend_from_slice(old.lines_text(at..old.line_count()));
    text
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec("[a-d]{0,2}\n?", 0..40).prop_map(|lines| lines.concat().into_bytes())
}

/// The fewest lines that can differ.
fn fewest(before: &[u8], after: &[u8]) -> usize {
    let (old, new) = (TextLines::new(before), TextLines::new(after));
    let (old, new): (Vec<_>, Vec<_>) = (old.each_line().collect(), new.each_line().collect());
    let mut row: Vec<usize> = (0..=new.len()).collect();
    for (above, line) in old.iter().enumerate() {
        let mut next = vec![above + 1];
        for (at, other) in new.iter().enumerate() {
            let best = if line == other { row[at] } else { 1 + row[at + 1].min(next[at]) };
            next.push(best);
        }
        row = next;
    }
    row[new.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_hunks_make_the_second_text_of_the_first(before in text(), after in text()) {
        let (found, _) = compared(&before, &after);
        prop_assert!(!found.is_coarse);
        prop_assert_eq!(patched(&before, &after, &found.hunks), after);
        for pair in found.hunks.windows(2) {
            prop_assert!(pair[0].before.end < pair[1].before.start || pair[0].after.end < pair[1].after.start);
        }
    }

    #[test]
    fn lines_without_anchors_are_compared_with_the_fewest_edits(before in text(), after in text()) {
        let stop = StopSignal::never_raised();
        let mut meter = StepMeter::new(&stop);
        let mut search = LineSearch::new(&before, &after, &mut meter);
        let all = CompareBox { old: 0..search.old.numbers.len(), new: 0..search.new.numbers.len() };
        search.compare_greedily(all).unwrap();
        let edits = search.changed.iter().flatten().filter(|changed| **changed).count();
        prop_assert_eq!(edits, fewest(&before, &after));
    }

    #[test]
    fn steps_that_run_out_leave_hunks_that_are_true(before in text(), after in text(), steps in 0_u64..200) {
        let stop = StopSignal::never_raised();
        let found = compare_lines(&before, &after, &mut StepMeter::with_steps(steps, &stop)).unwrap();
        prop_assert_eq!(patched(&before, &after, &found.hunks), after);
    }
}

/// Texts of nearly 4 MiB that other comparisons took minutes for, before and after.
fn worst() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let most = crate::changes::MAX_TEXT as usize;
    let made = |line: &dyn Fn(u64) -> String| {
        let mut text = String::new();
        for at in 0.. {
            let line = line(at);
            if text.len() + line.len() > most {
                break;
            }
            text.push_str(&line);
        }
        text.into_bytes()
    };
    let reversed = |text: &[u8]| {
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').rev().collect();
        lines.concat()
    };
    let mixed = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let letters = made(&|at| if mixed(at) % 2 == 0 { "\n".to_owned() } else { "x\n".to_owned() });
    let words = made(&|at| format!("{:016}\n", mixed(at) % 7));
    let pairs = made(&|at| format!("{:016}\n", mixed(at) % 60_000));
    let turned = made(&|at| format!("{:016}\n", mixed(at + 100_000) % 60_000));
    let other = made(&|at| format!("{:016}\n", (mixed(at) >> 7) % 5));
    let once = made(&|at| format!("{at:016}\n"));
    let (back, seven, back_once) = (reversed(&letters), reversed(&words), reversed(&once));
    vec![
        ("empty lines and letters, reversed", letters, back),
        ("seven words, reversed", words.clone(), seven),
        ("seven words and five", words, other),
        ("lines that stand there twice or more", pairs, turned),
        ("lines that stand there once, reversed", once, back_once),
    ]
}

#[test]
fn no_text_takes_more_steps_than_the_bound() {
    for (name, before, after) in worst() {
        let begun = std::time::Instant::now();
        let (found, steps) = compared(&before, &after);
        println!(
            "{name}: {steps} steps, {} hunks, coarse {}, {:?}",
            found.hunks.len(),
            found.is_coarse,
            begun.elapsed()
        );
        assert!(steps <= MAX_STEPS, "{name}: {steps}");
        assert!(patched(&before, &after, &found.hunks) == after, "{name}");
    }
}

#[test]
fn a_raised_signal_ends_a_comparison() {
    let stop = StopSignal::never_raised();
    stop.raise();
    assert!(compare_lines(b"a\n", b"b\n", &mut StepMeter::new(&stop)).is_err());
    // Also in the middle: the signal is first checked after some steps.
    let (_, before, after) = worst().swap_remove(1);
    let mut meter = StepMeter::with_steps(u64::MAX, &stop);
    assert!(matches!(meter.spend_steps(1), Ok(true)));
    let mut search = LineSearch::new(&before, &after, &mut meter);
    assert!(search.run_search().is_err());
}

#[test]
fn a_function_that_is_put_between_others_is_one_hunk() {
    let one = b"fn a() {\n    x();\n}\n\nfn c() {\n    z();\n}\n";
    let other = b"fn a() {\n    x();\n}\n\nfn b() {\n    y();\n}\n\nfn c() {\n    z();\n}\n";
    let (found, _) = compared(one, other);
    assert_eq!(found.hunks, [Hunk { before: 4..4, after: 4..8 }]);
    let (found, _) = compared(b"a\nb", b"a\nb\n");
    assert_eq!(found.hunks, [Hunk { before: 1..2, after: 1..2 }]);
    let (found, _) = compared(b"x", b"y\nx");
    assert_eq!(found.hunks, [Hunk { before: 0..0, after: 0..1 }]);
}
