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
    (concat!("host", " tool"), "a built-in tool"),
    (concat!("host", "-provided"), "built-in"),
    (concat!("Session", "Journal"), "SavedSession"),
    (concat!("log of", " steps"), "the journal"),
    (concat!("log of", " its steps"), "its journal"),
    (concat!("struct ", "Desk"), "a name that says what it holds"),
];

/// Where our own words stand.
const OURS: &[&str] = &["host/", "tests/", "README.md", "Cargo.toml"];

/// Where the words of others stand; and a guest, whose component is built from every byte of it.
const FOREIGN: &[&str] = &["tests/fuzz/", "tests/oracle/", "tests/peers/", "host/prove/guests/"];

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

/// Documentation that opens with a question's word, in any of its paragraphs.
fn openings(file: &File) -> Vec<String> {
    let (mut breaches, mut begins) = (Vec::new(), true);
    for (line, at) in file.text.lines().zip(1..) {
        let marked = line.trim_start();
        let said = marked.strip_prefix("///").or_else(|| marked.strip_prefix("//!"));
        let said = said.map(str::trim_start).filter(|said| !said.is_empty());
        if begins && said.is_some_and(|said| said.starts_with("What ")) {
            let path = &file.path;
            breaches.push(format!("{path}:{at}: a comment opens with `What`: say the noun"));
        }
        begins = said.is_none();
    }
    breaches
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
    }

    #[test]
    fn documentation_that_asks_is_a_breach_and_a_line_amid_it_is_none() {
        let found = |text: &str| {
            breaches(&[File { path: "tests/a/src/b.rs".into(), text: text.to_owned() }])
        };
        for asks in ["    /// What it is.\n", "//! A file.\n//!\n//! What it is.\n"] {
            let found = found(asks);
            assert!(found.len() == 1 && found[0].contains("say the noun"), "{found:?}");
        }
        let amid = "/// The noun, and the rest of it.\n/// What it is not.\nstruct A;\n";
        assert_eq!(found(amid), [""; 0]);
        assert_eq!(found("// What nobody reads in the documentation.\n"), [""; 0]);
    }
}
