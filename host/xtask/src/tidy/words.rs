//! One vocabulary: words that were in use once, and those that say the same now. A reader who meets
//! both would look for two things.

use super::File;

/// What is not said any more, and what is in its place. Split so that this table does not match
/// itself.
const OLD: &[(&str, &str)] = &[
    (concat!("gone on", " with"), "resumed"),
    (concat!("goes on", " with"), "resumes"),
    (concat!("hangs", " off"), "belongs to"),
    (concat!("what came", " of"), "the outcome, the result"),
    (concat!("how-many", "-eth"), "an index, or how many there were before"),
    (concat!("the second", " wall"), "the OS sandbox"),
    (concat!("Host", "Tool"), "BuiltinTool"),
    (concat!("Fa", "cade"), "Aliases"),
    (concat!("Turn", "Desk"), "TurnQuestions"),
    (concat!("Spawn", "Order"), "SpawnArguments"),
];

/// Where the words of others stand.
const FOREIGN: &[&str] = &["tests/fuzz/", "tests/oracle/", "tests/peers/"];

pub(super) fn breaches(files: &[File]) -> Vec<String> {
    let ours = files.iter().filter(|file| {
        (file.path.starts_with("host/") || file.path.starts_with("tests/"))
            && !FOREIGN.iter().any(|folder| file.path.starts_with(folder))
    });
    let mut breaches = Vec::new();
    for file in ours {
        for (number, line) in file.text.lines().enumerate() {
            for (old, new) in OLD.iter().filter(|(old, _)| line.contains(old)) {
                let place = format!("{}:{}", file.path, number + 1);
                breaches.push(format!("{place}: `{old}`: say `{new}`"));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_word_is_a_breach_where_it_is_ours() {
        let file = |path: &str| File { path: path.into(), text: OLD[0].0.to_owned() };
        assert_eq!(breaches(&[file("host/a/src/b.rs")]).len(), 1);
        assert!(breaches(&[file("tests/fuzz/corpus/a.md"), file("agents/a.md")]).is_empty());
    }
}
