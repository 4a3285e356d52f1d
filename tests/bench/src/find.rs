//! The search for agents by words: how often the right one is among the first three, and what index and search cost.
//!
//! The tasks are the example blocks of public agents' descriptions, which the index leaves out, without the agent's
//! own name. They lie beside the project in `../shared/corpus`; without that folder only the cost is measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use belljar_agent::{EntryKind, SearchEntry};
use belljar_definition::{KnownTools, ParsedAgentFile, parse_agent};
use belljar_store::{IndexEntry, PreparedEntries, TextIndex};

use crate::measure::{median, micros};
use crate::report::Row;

/// Entries of a large installation: 2,000 agents, 500 skills, 300 tools.
const ENTRIES: usize = 2_800;

/// The entries among which the right one has to be.
const FIRST: usize = 3;

/// What the index is told in the place of what a corpus does not fill.
const SUBJECTS: [&str; 14] = [
    "kubernetes",
    "terraform",
    "postgres",
    "kafka",
    "unity",
    "swift",
    "cobol",
    "excel",
    "drupal",
    "lua",
    "redis",
    "fpga",
    "matlab",
    "tableau",
];
const ROLES: [(&str, &str); 10] = [
    ("tester", "Writes and runs tests, and reports which fail, for"),
    ("migrator", "Moves installations to another version without loss:"),
    ("tuner", "Finds what is slow and makes it faster in"),
    ("auditor", "Looks for mistakes in the security settings of"),
    ("planner", "Plans capacity and cost for the next year of"),
    ("debugger", "Finds the cause of failures from logs and traces of"),
    ("teacher", "Explains to beginners, with exercises,"),
    ("architect", "Designs systems and weighs alternatives around"),
    ("installer", "Sets up on a new machine"),
    ("translator", "Rewrites in another language programs for"),
];

/// A task with the name of the agent that it was written for.
struct Task {
    name: String,
    text: String,
}

/// The rows of this part: at most `searches` tasks, each searched for once.
pub(crate) async fn rows(root: &Path, searches: usize) -> anyhow::Result<Vec<Row>> {
    let (mut entries, tasks) = read_corpus(&root.join("../shared/corpus"), searches);
    let public = entries.len();
    fill(&mut entries);
    let begun = Instant::now();
    let prepared = PreparedEntries::prepare(entries.iter().map(to_index_entry), || false);
    let prepared = prepared.ok_or_else(|| anyhow::anyhow!("the preparation was stopped"))?;
    let index = TextIndex::build(prepared).await?;
    let built = begun.elapsed();
    let all: Vec<usize> = (0..entries.len()).collect();
    let (mut times, mut right) = (Vec::new(), 0);
    for n in 0..searches.min(if tasks.is_empty() { searches } else { tasks.len() }) {
        let task = tasks.get(n);
        let words = match task {
            Some(task) => task.text.clone(),
            None => format!("what is slow about {}?", SUBJECTS[n % SUBJECTS.len()]),
        };
        let begun = Instant::now();
        let found = index.find_entries(&words, &all, FIRST).await?;
        times.push(begun.elapsed());
        let mut names = found.iter().filter_map(|place| entries.get(*place));
        right += usize::from(task.is_some_and(|task| names.any(|entry| entry.name == task.name)));
    }
    let mut rows = vec![
        Row::new(
            format!("index of {} entries", entries.len()),
            format!("{:.0} ms", built.as_secs_f64() * 1e3),
        ),
        Row::new("search in it, p50", micros(median(times))),
    ];
    if tasks.is_empty() {
        rows.push(Row::new(
            "the right agent among the first three",
            "skipped: no ../shared/corpus",
        ));
        return Ok(rows);
    }
    let share = right * 100 / tasks.len();
    let row = Row::new(
        format!("the right agent among the first three, of {} ({public} public)", entries.len()),
        format!("{right} of {} tasks", tasks.len()),
    );
    rows.push(row.verdict(format!("{share} %"), "90 %"));
    Ok(rows)
}

fn to_index_entry(SearchEntry { name, about, more, .. }: &SearchEntry) -> IndexEntry {
    IndexEntry { name: name.clone(), about: about.clone(), more: more.clone() }
}

/// The agents of a folder, each name and description once, and at most `most` tasks of their examples.
fn read_corpus(folder: &Path, most: usize) -> (Vec<SearchEntry>, Vec<Task>) {
    let mut files = Vec::new();
    list_files(folder, &mut files);
    files.sort();
    let (mut entries, mut tasks) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let read = parse_agent(&path, &bytes, &KnownTools::default());
        let ParsedAgentFile::Agent { definition: agent, .. } = read else { continue };
        if !known.insert((agent.name.clone(), agent.description.clone())) {
            continue;
        }
        tasks.extend(tasks_of(&agent.name, &agent.description));
        let (name, body) = (agent.name.clone(), agent.body.clone());
        entries.push(SearchEntry::new(EntryKind::Agent, name, &agent.description, body));
    }
    // Every n-th, so that no library has all of them.
    let step = tasks.len().div_ceil(most).max(1);
    (entries, tasks.into_iter().step_by(step).take(most).collect())
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(found) = std::fs::read_dir(folder) else { return };
    for path in found.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            list_files(&path, files);
        } else if path.extension().is_some_and(|it| it == "md") && !path.ends_with("SKILL.md") {
            files.push(path);
        }
    }
}

/// The examples in which a person says something, without the agent's name and without labels.
fn tasks_of(name: &str, description: &str) -> Vec<Task> {
    let text = description.replace("\\n", "\n");
    let blocks = text.split("<example>").skip(1);
    let blocks = blocks.map(|block| block.split("</example>").next().unwrap_or_default());
    let task = |block: &str| {
        let mut text = block.to_owned();
        for label in ["<commentary>", "</commentary>", "Context:", "user:", "assistant:"] {
            text = text.replace(label, " ");
        }
        let spaced = name.replace(['-', '_'], " ");
        for own in [name, &spaced] {
            text = replace_any_case(&text, own);
        }
        Task { name: name.to_owned(), text }
    };
    blocks.filter(|block| block.contains("user:")).map(task).collect()
}

fn replace_any_case(text: &str, word: &str) -> String {
    let (lower, word) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
    let mut kept = String::new();
    let mut from = 0;
    for (at, found) in lower.match_indices(&word) {
        kept.push_str(text.get(from..at).unwrap_or_default());
        kept.push(' ');
        from = at + found.len();
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    kept
}

/// Adds made entries until there are [`ENTRIES`].
fn fill(entries: &mut Vec<SearchEntry>) {
    let made = (0..).flat_map(|round: usize| {
        SUBJECTS.iter().flat_map(move |subject| {
            ROLES.iter().map(move |(role, about)| {
                let subject =
                    if round == 0 { (*subject).to_owned() } else { format!("{subject}{round}") };
                let about = format!("{about} {subject}.");
                let name = format!("{subject}-{role}");
                SearchEntry::new(EntryKind::Agent, name, &about, String::new())
            })
        })
    });
    let missing = ENTRIES.saturating_sub(entries.len());
    entries.extend(made.take(missing));
}
