//! What an index finds, in which order, and what it never finds.

use belljar_store::{IndexEntry, MAX_INDEX_ENTRIES, PreparedEntries, TextIndex};

async fn index(entries: &[(&str, &str)]) -> TextIndex {
    let entries = entries.iter().map(|(name, about)| IndexEntry {
        name: (*name).to_owned(),
        about: (*about).to_owned(),
        more: String::new(),
    });
    TextIndex::build(PreparedEntries::prepare(entries, || false).unwrap()).await.unwrap()
}

async fn found(index: &TextIndex, words: &str) -> Vec<usize> {
    let all: Vec<usize> = (0..index.entry_count()).collect();
    index.find_entries(words, &all, 5).await.unwrap()
}

#[tokio::test]
async fn an_entry_is_found_by_words_of_its_name_and_description_in_other_forms() {
    let index = index(&[
        ("scout", "Finds the files that matter."),
        ("postgres-tuner", "Makes slow queries faster by better indexes."),
        ("next.js-writer", "Writes pages in C# and C++."),
        ("翻译", "把文章翻译成英文"),
    ])
    .await;
    for (words, place) in [
        ("why is this query of Postgres so slow?", 1),
        ("find a file", 0),
        ("NEXT.JS", 2),
        ("c++", 2),
        ("请翻译这段", 3),
    ] {
        assert_eq!(found(&index, words).await.first(), Some(&place), "{words}");
    }
    for words in ["", " \n", "zzz", "\"", "the and of", "*", "^"] {
        assert!(found(&index, words).await.is_empty(), "{words:?}");
    }
}

#[tokio::test]
async fn operators_quotes_and_long_texts_are_words() {
    let index = index(&[("scout", "Finds files."), ("baker", "Bakes bread.")]).await;
    for words in [
        "name:scout AND NOT x) OR (\"bread",
        "files\" OR entries MATCH \"x",
        "NEAR(files, 2) {name} : ^files*",
        &"files ".repeat(100_000),
    ] {
        assert!(!found(&index, words).await.is_empty(), "{}", words.get(..40).unwrap_or(words));
    }
    let many: String = (0..5_000).map(|n| format!("w{n} ")).collect();
    assert!(found(&index, &many).await.is_empty());
}

#[tokio::test]
async fn what_is_not_permitted_is_not_found_even_by_its_name() {
    let index =
        index(&[("scout", "Finds files."), ("scout-two", "Finds files too."), ("x", "y")]).await;
    assert_eq!(index.find_entries("scout", &[0, 2], 5).await.unwrap(), [0]);
    assert_eq!(index.find_entries("scout", &[1, 2], 5).await.unwrap(), [1]);
    assert!(index.find_entries("scout", &[2], 5).await.unwrap().is_empty());
    assert!(index.find_entries("scout", &[], 5).await.unwrap().is_empty());
    assert!(index.find_entries("scout", &[7, usize::MAX >> 1], 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_entry_of_the_searched_name_is_first_and_copies_count_once() {
    let index = index(&[
        ("library/a/code-reviewer", "Reviews code, code reviews, review of code, reviewer."),
        ("library/b/reviewer", "Reads."),
        ("library/c/reviewer", "Reads."),
        ("library/d/reviewer", "Writes."),
    ])
    .await;
    assert_eq!(found(&index, "reviewer").await, [1, 3, 0]);
    assert_eq!(found(&index, "library/c/reviewer").await.first(), Some(&2));
}

#[tokio::test]
async fn twenty_stuffed_descriptions_never_outrank_an_honest_match() {
    let honest = [
        ("postgres-tuner", "Makes slow PostgreSQL queries faster by better indexes."),
        ("release-writer", "Writes release notes from the commits since the last tag."),
        ("tax-clerk", "Fills in the yearly tax form from receipts."),
        ("bee-keeper", "Answers questions about hives, swarms and honey."),
    ];
    let tasks = [
        "make this slow postgres query faster",
        "write the release notes since the last tag",
        "fill in my tax form",
        "my bees swarm, what about the hive?",
    ];
    let words = "make slow postgres query faster write release notes since last tag fill tax form bees swarm \
        hive code review test security database python rust design deploy write fast best any everything ";
    let lists = [
        words.repeat(50),
        format!("{words}{}", (0..400).map(|n| format!("term{n} ")).collect::<String>()),
        "query ".repeat(3_000) + words,
    ];
    let names: Vec<String> = (0..20).map(|n| format!("best-of-all-{n}")).collect();
    let stuffed = names.iter().enumerate();
    let stuffed = stuffed.map(|(n, name)| (name.as_str(), lists[n % lists.len()].as_str()));
    let entries: Vec<(&str, &str)> = stuffed.chain(honest).collect();
    let index = index(&entries).await;
    for (place, task) in tasks.iter().enumerate() {
        assert_eq!(found(&index, task).await.first(), Some(&(20 + place)), "{task}");
    }
}

#[tokio::test]
async fn thousands_of_entries_are_searched_and_the_right_one_is_among_the_first_three() {
    let areas = [
        "kafka",
        "terraform",
        "swift",
        "cobol",
        "excel",
        "drupal",
        "lua",
        "unity",
        "redis",
        "fpga",
    ];
    let roles = [
        ("tester", "Writes and runs tests for", "run the tests of"),
        ("tuner", "Finds what is slow and makes it faster in", "what is so slow about"),
        ("teacher", "Explains to beginners, with exercises,", "explain to a beginner"),
        (
            "auditor",
            "Looks for mistakes in the security settings of",
            "are there mistakes in the settings of",
        ),
        (
            "migrator",
            "Moves installations to a new version without loss:",
            "move the installation to the new version of",
        ),
    ];
    let mut entries = Vec::new();
    let mut tasks = Vec::new();
    for copy in 0..56 {
        for area in areas {
            for (role, about, task) in roles {
                if copy == 0 {
                    tasks.push((entries.len(), format!("Could you please {task} {area}?")));
                }
                let name =
                    if copy == 0 { format!("{area}-{role}") } else { format!("{role}-{copy}") };
                let area = if copy == 0 { area.to_owned() } else { format!("{area}{copy}") };
                entries.push((name, format!("{about} {area}.")));
            }
        }
    }
    assert_eq!(entries.len(), 2_800);
    let entries: Vec<(&str, &str)> =
        entries.iter().map(|(name, about)| (name.as_str(), about.as_str())).collect();
    let index = index(&entries).await;
    let all: Vec<usize> = (0..entries.len()).collect();
    let mut right = 0;
    for (place, task) in &tasks {
        right += usize::from(index.find_entries(task, &all, 3).await.unwrap().contains(place));
    }
    assert!(right * 10 >= tasks.len() * 9, "{right} of {}", tasks.len());
}

#[tokio::test]
async fn preparing_ends_when_it_is_stopped_and_an_index_has_a_bounded_number_of_entries() {
    let entries = || std::iter::repeat_with(IndexEntry::default);
    assert!(PreparedEntries::prepare(entries(), || true).is_none());
    let all = PreparedEntries::prepare(entries(), || false).unwrap();
    let index = TextIndex::build(all).await.unwrap();
    assert_eq!(index.entry_count(), MAX_INDEX_ENTRIES);
}
