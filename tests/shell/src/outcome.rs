//! The effects of a script, and how two runs of it differ.

use crate::Tree;

/// The visible effects of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The script's output.
    pub said: Said,
    /// The exit code.
    pub code: i32,
    /// The workspace after it.
    pub tree: Tree,
}

/// The output of a script. The words of error messages are nobody's contract: only whether there
/// are any is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The streams apart.
    Apart {
        /// Standard output.
        stdout: String,
        /// Whether anything came on standard error.
        complained: bool,
    },
    /// Standard output, then standard error, in one text.
    Together(String),
}

impl Outcome {
    /// How this differs from what a real shell did; empty when it does not.
    pub fn faults(&self, expected: &Outcome) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.said.is(&expected.said) {
            faults.push(format!("said {:?}\n      not  {:?}", self.said, expected.said));
        }
        if self.code != expected.code {
            faults.push(format!("exit code {}, not {}", self.code, expected.code));
        }
        faults.extend(self.tree.differences(&expected.tree));
        faults
    }
}

impl Said {
    fn is(&self, expected: &Said) -> bool {
        match (self, expected) {
            (Said::Together(text), Said::Apart { stdout, complained }) => {
                let Some(rest) = text.strip_prefix(stdout.as_str()) else { return false };
                // What follows an unfinished line begins a new one.
                let unfinished = !stdout.is_empty() && !stdout.ends_with('\n');
                let rest = if unfinished { rest.strip_prefix('\n').unwrap_or(rest) } else { rest };
                rest.is_empty() != *complained
            }
            (said, expected) => said == expected,
        }
    }
}
