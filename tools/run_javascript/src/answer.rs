//! The text that the model gets of a script.

/// Bytes of an answer's text: some eight thousand tokens. More is a sign that the script should have
/// counted or filtered.
const MAX_BYTES: usize = 30_000;

/// Bytes that are collected of what a script prints: the head and the tail of it are shown.
const COLLECTED: usize = 1 << 20;

/// What a script has printed.
#[derive(Default)]
pub(crate) struct Printed {
    text: String,
    /// Bytes that were printed after the collection was full.
    more: usize,
}

impl Printed {
    /// One line more.
    pub(crate) fn line(&mut self, line: &str) {
        if self.text.len() + line.len() < COLLECTED {
            self.text.push_str(line);
            self.text.push('\n');
        } else {
            self.more += line.len() + 1;
        }
    }

    /// The answer of a script that ended, with the value of its last expression.
    pub(crate) fn with_value(mut self, value: Option<&str>) -> String {
        let value = value.map(|value| format!("=> {}\n", cut(value, 0)));
        if value.is_none() && self.text.is_empty() && self.more == 0 {
            return "[belljar: no output]\n".to_owned();
        }
        self.finish(&value.unwrap_or_default())
    }

    /// The answer of a script that an exception ended.
    pub(crate) fn with_error(mut self, error: &str) -> String {
        self.finish(&cut(error, 0))
    }

    fn finish(&mut self, end: &str) -> String {
        let text = cut(&self.text, self.more);
        format!("{text}{end}")
    }
}

/// Keeps the head and the tail: the first lines say what it is, the last how it ended.
fn cut(text: &str, more: usize) -> String {
    if text.len() <= MAX_BYTES && more == 0 {
        return text.to_owned();
    }
    let keep = text.len().min(MAX_BYTES) / 2;
    let head = text.get(..text.floor_char_boundary(keep)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - keep)..).unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len() + more;
    format!("{head}\n[belljar: {left_out} bytes left out; print less]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_come_before_the_value_or_the_error() {
        let printed = |lines: &[&str]| {
            let mut printed = Printed::default();
            lines.iter().for_each(|line| printed.line(line));
            printed
        };
        assert_eq!(printed(&[]).with_value(None), "[belljar: no output]\n");
        assert_eq!(printed(&["a", "b"]).with_value(Some("3")), "a\nb\n=> 3\n");
        assert_eq!(printed(&["a"]).with_error("Error: x"), "a\nError: x");
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let mut printed = Printed::default();
        for _ in 0..100_000 {
            printed.line("0123456789abcdef");
        }
        let text = printed.with_value(Some("the end"));
        assert!(text.len() < MAX_BYTES + 200);
        assert!(text.starts_with("0123") && text.ends_with("=> the end\n"));
        assert!(text.contains("1670000 bytes left out"), "{}", text.len());
    }
}
