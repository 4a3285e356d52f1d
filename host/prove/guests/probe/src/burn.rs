//! Using up the processor, the stack and the memory.

use std::hint::black_box;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::held::{self, Held};

/// One way.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Turns of a tight loop; `null` = without end.
    Spin { turns: Option<u64> },
    /// Calls within calls, each with a frame of some hundred bytes.
    Recurse { depth: u64 },
    /// Allocates and touches so many bytes, and keeps them.
    Allocate { bytes: usize },
    /// Matches `(a*)*b` against `len` letters `a`, as a naive matcher does: exponential.
    Backtrack { len: usize },
    /// Parses JSON that nests so deep.
    ParseJson { depth: usize },
    /// Ends with a panic of so many letters.
    Panic { text: String },
}

impl Step {
    pub(crate) fn run(self) -> Value {
        match self {
            Self::Spin { turns } => spin(turns.unwrap_or(u64::MAX)),
            Self::Recurse { depth } => json!(recurse(depth, [0; 32])),
            Self::Allocate { bytes } => {
                json!({ "held": held::keep(Held::Bytes(black_box(vec![1; bytes]))) })
            }
            Self::Backtrack { len } => json!(stars(&vec![b'a'; len])),
            Self::ParseJson { depth } => {
                let text = "[".repeat(depth) + &"]".repeat(depth);
                json!(serde_json::from_str::<Value>(&text).is_ok())
            }
            Self::Panic { text } => stop(&text),
        }
    }
}

fn spin(turns: u64) -> Value {
    let mut sum = 0_u64;
    for turn in 0..turns {
        sum = black_box(sum ^ turn);
    }
    json!(sum)
}

fn recurse(depth: u64, frame: [u64; 32]) -> u64 {
    if depth == 0 {
        return frame.iter().sum();
    }
    let mut next = black_box(frame);
    next[0] = depth;
    recurse(depth - 1, next) + black_box(next[0])
}

/// Whether the rest is `(a*)*b`, trying every split.
fn stars(rest: &[u8]) -> bool {
    if rest.first() == Some(&b'b') {
        return true;
    }
    let run = rest.iter().take_while(|byte| **byte == b'a').count();
    (1..=run).any(|taken| stars(rest.get(taken..).unwrap_or_default()))
}

#[expect(clippy::panic, reason = "this is what is tried")]
fn stop(text: &str) -> Value {
    panic!("{text}")
}
