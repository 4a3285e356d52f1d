//! Cases as data: one TOML file for each topic.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub topic: String,
    /// The subject of the case; unique in its topic.
    pub name: String,
    /// The script.
    pub script: String,
    /// Files in the workspace before it runs; a name that ends in `/` is a directory.
    #[serde(default)]
    pub files: BTreeMap<String, Content>,
}

/// The thing that stands at a path.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// A file with this text.
    Text(String),
    /// A symbolic link.
    Link {
        /// Where it leads.
        link: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// Files that every case of the topic finds.
    #[serde(default)]
    files: BTreeMap<String, Content>,
    case: Vec<Case>,
}

impl Case {
    /// `topic: name`, which known failures are listed by.
    pub fn title(&self) -> String {
        format!("{}: {}", self.topic, self.name)
    }

    /// Makes the files of the case.
    pub fn fill(&self, workspace: &Path) {
        for (name, content) in &self.files {
            let path = workspace.join(name);
            if name.ends_with('/') {
                fs::create_dir_all(path).expect("make a directory");
                continue;
            }
            fs::create_dir_all(path.parent().expect("a parent")).expect("make the parent");
            match content {
                Content::Text(text) => fs::write(path, text).expect("write a file"),
                Content::Link { link } => symlink(link, path).expect("make a link"),
            }
        }
    }
}

/// All cases, by topic.
pub fn load() -> Vec<Case> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder().join("scripts"))
        .expect("the scripts are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    paths.sort();
    paths.iter().flat_map(|path| topic(path)).collect()
}

fn topic(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).expect("a topic is text");
    let topic: Topic =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut cases = topic.case;
    for case in &mut cases {
        case.topic.clone_from(&name);
        for (path, content) in &topic.files {
            case.files.entry(path.clone()).or_insert_with(|| content.clone());
        }
    }
    cases
}

/// The folder of the scripts and of the known failures.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/shell/tests")
}
