//! Finds plain texts in a stream of bytes, by comparing sums: each window of the stream that is as long as a
//! text has a rolling sum, as in the Rabin-Karp search.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The texts to find, grouped by their length.
pub(crate) struct RollingSums {
    /// The base of the sums: an odd random number, unknown outside of the current process.
    base: u64,
    groups: Vec<SumGroup>,
}

/// The texts to find that have the same length, so one rolling window serves them all.
struct SumGroup {
    length: usize,
    /// The base to the power of the length: the factor of the byte that leaves the window.
    leaving: u64,
    /// The sum and the bytes of each text, in lower case.
    forms: Vec<(u64, Vec<u8>)>,
}

impl RollingSums {
    /// Prepares the search. The texts must be in lower case.
    pub(crate) fn from_texts(texts: BTreeSet<Vec<u8>>) -> Self {
        let mut by_length = BTreeMap::<usize, Vec<_>>::new();
        let base = RandomState::new().build_hasher().finish() | 1;
        for text in texts {
            let sum = text.iter().fold(0, |sum, byte| add_byte(sum, base, *byte));
            by_length.entry(text.len()).or_default().push((sum, text));
        }
        let group = |(length, forms)| {
            let leaving = (0..length).fold(1_u64, |power, _| power.wrapping_mul(base));
            SumGroup { length, leaving, forms }
        };
        Self { base, groups: by_length.into_iter().map(group).collect() }
    }

    pub(crate) fn longest_length(&self) -> usize {
        self.groups.last().map_or(0, |group| group.length)
    }

    /// The sums at the start, when every window is zeros: one for each length.
    pub(crate) fn zero_windows(&self) -> Vec<u64> {
        vec![0; self.groups.len()]
    }

    /// Moves the windows over `text` from the position `from` on. Before `from`, `text` has at least as many
    /// bytes as the longest searched text; `seen` bytes of the stream were searched before. Returns whether a
    /// searched text ends in this part.
    pub(crate) fn move_windows(
        &self,
        windows: &mut [u64],
        text: &[u8],
        from: usize,
        seen: usize,
    ) -> bool {
        let passes = self.groups.iter().zip(windows);
        passes.fold(false, |found, (group, sum)| {
            group.move_window(self.base, sum, text, from, seen) | found
        })
    }
}

fn add_byte(sum: u64, base: u64, byte: u8) -> u64 {
    sum.wrapping_mul(base).wrapping_add(u64::from(byte))
}

impl SumGroup {
    fn move_window(&self, base: u64, sum: &mut u64, text: &[u8], from: usize, seen: usize) -> bool {
        let behind = from.saturating_sub(self.length);
        let (leaves, enters) = (text.get(behind..), text.get(from..));
        let (leaves, enters) = (leaves.unwrap_or_default(), enters.unwrap_or_default());
        let mut window = *sum;
        let mut found = false;
        // A window that begins before the stream's start is not a match.
        let early = self.length.saturating_sub(1).saturating_sub(seen);
        for (at, (old, new)) in leaves.iter().zip(enters).enumerate() {
            let left = u64::from(*old).wrapping_mul(self.leaving);
            window = add_byte(window, base, *new).wrapping_sub(left);
            for (sum, form) in &self.forms {
                if *sum == window && at >= early {
                    // Different bytes can have equal sums by chance, so the bytes are compared.
                    let place = behind.saturating_add(at).saturating_add(1);
                    let end = place.saturating_add(self.length);
                    found |= text.get(place..end).is_some_and(|text| text == form);
                }
            }
        }
        *sum = window;
        found
    }
}
