//! One vocabulary: words that were in use once, and those that say the same now. A reader who meets
//! both would look for two things.

use super::File;

/// Words that are not used any more, and those in their place. Split so that this table does not
/// match itself.
const OLD: &[(&str, &str)] = &[
    (concat!("gone on", " with"), "resumed"),
    (concat!("goes on", " with"), "resumes"),
    (concat!("hangs", " off"), "belongs to"),
    (concat!("came", " of it"), "the outcome, the result"),
    (concat!("what came", " of"), "the outcome, the result"),
    (concat!("how-many", "-eth"), "an index, or how many there were before"),
    (concat!("second", " wall"), "the OS sandbox"),
    (concat!("second", "_wall"), "os_sandbox"),
    (concat!("Host", "Tool"), "BuiltinTool"),
    (concat!("Fa", "cade"), "Aliases"),
    (concat!("Turn", "Desk"), "TurnQuestions"),
    (concat!("Spawn", "Order"), "SpawnArguments"),
    (concat!("model", "_turn"), "a step"),
    (concat!("process", " died in"), "an interrupted turn"),
    (concat!("carries", " out"), "executes"),
    (concat!("carry", " out"), "execute"),
    (concat!("Open", "Turn"), "Turn<Open>"),
    (concat!("Past", "Turn"), "Turn"),
    (concat!("Run", "Record"), "Turn"),
    (concat!("Turn", "Handle"), "RunningTurn"),
    (concat!("Turn", "End"), "Outcome"),
    (concat!("host", "_tools"), "builtin_tools"),
];

/// Where our own words stand.
const OURS: &[&str] = &["host/", "tests/", "README.md", "Cargo.toml"];

/// Where the words of others stand; and a guest, whose component is built from every byte of it.
const FOREIGN: &[&str] = &["tests/fuzz/", "tests/oracle/", "tests/peers/", "host/prove/guests/"];

/// Crates whose documentation opens with the noun itself, and not with a question's word.
const OPENED: &[&str] = &["host/agent/", "host/session/", "host/store/"];

pub(super) fn breaches(files: &[File]) -> Vec<String> {
    let ours = files.iter().filter(|file| {
        OURS.iter().any(|folder| file.path.starts_with(folder))
            && !FOREIGN.iter().any(|folder| file.path.starts_with(folder))
    });
    ours.flat_map(|file| {
        let (text, starts) = flat(&file.text);
        let mut breaches = openings(file);
        for (old, new) in OLD {
            for (at, _) in text.match_indices(&old.to_lowercase()) {
                let line = starts.partition_point(|start| *start <= at);
                breaches.push(format!("{}:{line}: `{old}`: say `{new}`", file.path));
            }
        }
        breaches
    })
    .collect()
}

/// Documentation that opens with a question's word.
fn openings(file: &File) -> Vec<String> {
    let is_opened = OPENED.iter().any(|folder| file.path.starts_with(folder));
    let asks = |line: &str| {
        let line = line.trim_start();
        let begun = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        begun.is_some_and(|begun| begun.starts_with("What "))
    };
    let lines = file.text.lines().zip(1..).filter(|(line, _)| is_opened && asks(line));
    lines
        .map(|(_, at)| format!("{}:{at}: a comment opens with `What`: say the noun", file.path))
        .collect()
}

/// The text in small letters and as one line, without the marks that comments begin with; and where
/// each of its lines begins there. Words that stand on two lines are words too.
fn flat(text: &str) -> (String, Vec<usize>) {
    let (mut flat, mut starts) = (String::with_capacity(text.len()), Vec::new());
    for line in text.lines() {
        starts.push(flat.len());
        let words = line.trim_start().trim_start_matches(['/', '!', '#', '>', '*']).trim();
        flat.push_str(&words.to_lowercase());
        flat.push(' ');
    }
    (flat, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_word_is_a_breach_where_it_is_ours() {
        let file = |path: &str| File { path: path.into(), text: OLD[0].0.to_owned() };
        assert_eq!(breaches(&[file("host/a/src/b.rs")]).len(), 1);
        let in_two = concat!("/// Goes", " on\n    /// with it.\n").to_owned();
        let found = breaches(&[File { path: "host/a/src/b.rs".into(), text: in_two }]);
        assert!(found.len() == 1 && found[0].starts_with("host/a/src/b.rs:1:"), "{found:?}");
        assert!(breaches(&[file("tests/fuzz/corpus/a.md"), file("agents/a.md")]).is_empty());
        let asks = concat!("    /// Wh", "at it is.\n").to_owned();
        let found = breaches(&[File { path: "host/store/src/b.rs".into(), text: asks }]);
        assert!(found.len() == 1 && found[0].contains("say the noun"), "{found:?}");
    }
}
