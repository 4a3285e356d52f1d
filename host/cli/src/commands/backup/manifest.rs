//! The manifest of a backup: the first entry of the archive, which lists all others. A restore trusts only
//! what it lists.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use belljar_policy::ShownText;
use serde::{Deserialize, Serialize};

use crate::setup::exit::Failure;
use crate::setup::home::{STORE, STORE_FILE};

/// The version of the archive's format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u64 = 1;

/// The name of the manifest in the archive. Each other entry is named by its number, from 0.
pub(super) const NAME: &str = "manifest.json";

/// The file with the lines typed in `chat`, beside the command line's store.
pub(super) const HISTORY: &str = "chat_history";

/// Most bytes of a manifest, which then lists some hundred thousand files.
pub(super) const MAX_MANIFEST: u64 = 64 << 20;

/// Most bytes of a path: the limit of common systems.
const MAX_PATH: usize = 4096;

/// Most files of a backup, and most directories; more would take minutes to make and to remove.
pub(super) const MAX_NAMES: usize = 500_000;

/// Most names in a path.
const MAX_PARTS: usize = 64;

/// The part of belljar's data to which a path belongs: the first name of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BackupPart {
    /// The home, without `sessions` and `cache`.
    Home,
    /// The data root of the server.
    Data,
    /// The command line's own sessions, if the data root is another directory.
    Sessions,
}

/// The list of a backup's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupManifest {
    pub(super) format: u64,
    /// The version of belljar that made the backup.
    pub(super) belljar: String,
    /// The version of the stores' schema.
    pub(super) schema: i64,
    /// The time of the backup, in milliseconds since 1970.
    pub(super) made: i64,
    /// True if the workspaces of tenants' agents are included.
    pub(super) workspaces: bool,
    /// The directories, parents before their children.
    pub(super) directories: Vec<String>,
    /// The files, in the order of the archive.
    pub(super) files: Vec<ManifestEntry>,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManifestEntry {
    /// The place of the file, for example `home/belljar.toml` or `data/store/belljar.db`.
    pub(super) path: String,
    /// The size of the file in bytes.
    pub(super) size: u64,
    /// The SHA-256 of the file's content, in hexadecimal.
    pub(super) sha256: String,
    /// True if the owner may execute the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) executable: bool,
}

/// The format of the archive, which is read before anything else.
#[derive(Deserialize)]
struct ManifestForm {
    format: u64,
}

impl BackupPart {
    /// All parts of a backup.
    pub(super) const ALL: [Self; 3] = [Self::Home, Self::Data, Self::Sessions];

    /// The name of the part, as in paths.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Data => "data",
            Self::Sessions => "sessions",
        }
    }
}

impl BackupManifest {
    /// Parses and checks a manifest.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Failure> {
        let unfit = |error: serde_json::Error| {
            let why = error.to_string();
            broken_archive(&format!(
                "its manifest is not valid: {}",
                ShownText::clip_line(&why, 200)
            ))
        };
        let ManifestForm { format } = serde_json::from_slice(bytes).map_err(unfit)?;
        if format > FORMAT {
            return Err(broken_archive(&format!(
                "it has format {format}, and this program reads {FORMAT} and older"
            ))
            .with_hint("restore it with the belljar that made it, or a newer one"));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(unfit)?;
        if manifest.schema > belljar_store::SCHEMA_VERSION {
            let (found, known) = (manifest.schema, belljar_store::SCHEMA_VERSION);
            return Err(broken_archive(&format!(
                "its stores have schema {found}, and this program knows {known} and older"
            )));
        }
        manifest.check_paths()?;
        Ok(manifest)
    }

    /// INV-158: every path belongs to one of the three parts, occurs once, and is not both a file and a
    /// directory. A parent comes before its content. Beside a store only the history of chats is allowed,
    /// because SQLite would apply other files to the store, and delete files named in them.
    ///
    /// Names that differ only in letter case are different, because agents may make both; if the target
    /// treats them as one, the second does not overwrite the first.
    pub(super) fn check_paths(&self) -> Result<(), Failure> {
        if self.files.len() > MAX_NAMES || self.directories.len() > MAX_NAMES {
            return Err(broken_archive(&format!(
                "it names more than {MAX_NAMES} files or directories"
            )));
        }
        // Each path, and whether it is a directory.
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        let parts = BackupPart::ALL.map(|part| (part.as_str().to_owned(), true));
        seen.extend(parts);
        let directories = self.directories.iter().map(|path| (path, true));
        let files = self.files.iter().map(|file| (&file.path, false));
        for (path, is_directory) in directories.chain(files) {
            let shown = || ShownText::clip_line(path, 200).to_string();
            if !is_plain(path) || is_reserved(path) || !fits_store(path, is_directory) {
                return Err(broken_archive(&format!("`{}` is not a path of a backup", shown())));
            }
            let above = path.rsplit_once('/').and_then(|(above, _)| seen.get(above).copied());
            if above != Some(true) {
                return Err(broken_archive(&format!("`{}` lies in no directory of it", shown())));
            }
            if seen.insert(path.clone(), is_directory).is_some() {
                return Err(broken_archive(&format!("`{}` is there twice", shown())));
            }
        }
        let hex =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        match self.files.iter().find(|file| !hex(&file.sha256)) {
            None => Ok(()),
            Some(file) => {
                let shown = ShownText::clip_line(&file.path, 200);
                Err(broken_archive(&format!("`{shown}` has no SHA-256")))
            }
        }
    }

    /// The bytes of all files together.
    pub(super) fn total_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Returns whether a file or directory of the part is listed.
    pub(super) fn has_part(&self, part: BackupPart) -> bool {
        let files = self.files.iter().map(|file| file.path.as_str());
        let mut all = self.directories.iter().map(String::as_str).chain(files);
        all.any(|path| split_path(path).is_some_and(|(of, _)| of == part))
    }
}

/// Splits a path into its part and the path below the part; `None` = it begins with no part's name.
pub(super) fn split_path(path: &str) -> Option<(BackupPart, PathBuf)> {
    let (part, below) = path.split_once('/')?;
    let part = BackupPart::ALL.into_iter().find(|known| known.as_str() == part)?;
    Some((part, PathBuf::from(below)))
}

/// Returns whether a path is the name of a part and plain names below it: no `..`, no root, no backslash,
/// and not too long.
pub(super) fn is_plain(path: &str) -> bool {
    let names = Path::new(path).components();
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| !name.is_empty()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    path.len() <= MAX_PATH
        && names.clone().count() <= MAX_PARTS
        && names.clone().all(plain)
        // The path has no doubled and no final slash.
        && names.filter_map(|part| part.as_os_str().to_str()).collect::<Vec<_>>().join("/") == path
        && !path.contains(['\0', '\\'])
        && split_path(path).is_some()
}

/// Returns whether a path is in the home's `sessions` or `cache`, which the home's part does not include.
fn is_reserved(path: &str) -> bool {
    let folded = path.to_lowercase();
    let mut names = folded.split('/');
    names.next() == Some(BackupPart::Home.as_str())
        && matches!(names.next(), Some("sessions" | "cache"))
}

/// Returns whether a path may be in a backup, judged by the rules for the store's directory: only the
/// directory, the store, and the history of chats.
fn fits_store(path: &str, is_directory: bool) -> bool {
    let Some((part, below)) = path.split_once('/') else { return true };
    let first = below.split('/').next().unwrap_or_default();
    if part == BackupPart::Home.as_str() || !first.eq_ignore_ascii_case(STORE) {
        return true;
    }
    match below.strip_prefix(STORE) {
        Some("") => is_directory,
        Some(name) => {
            !is_directory && [STORE_FILE, HISTORY].contains(&name.trim_start_matches('/'))
        }
        None => false,
    }
}

/// The failure of an archive that cannot be restored.
pub(super) fn broken_archive(why: &str) -> Failure {
    Failure::new(format!("the backup cannot be restored: {why}")).with_hint("nothing is changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(directories: &[&str], files: &[&str]) -> BackupManifest {
        let file = |path: &&str| ManifestEntry {
            path: (*path).to_owned(),
            size: 1,
            sha256: "0".repeat(64),
            executable: false,
        };
        BackupManifest {
            format: FORMAT,
            belljar: "0".to_owned(),
            schema: 1,
            made: 0,
            workspaces: false,
            directories: directories.iter().map(|path| (*path).to_owned()).collect(),
            files: files.iter().map(file).collect(),
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_or_are_there_twice_are_refused() {
        let good = manifest(&["home/agents"], &["home/agents/a.md", "data/b", "home/a b"]);
        good.check_paths().unwrap();
        for bad in [
            "../x",
            "home/../x",
            "/etc/x",
            "home//x",
            "home/",
            "home",
            "elsewhere/x",
            "home/./x",
            "home/a\0",
            "home/a\\b",
            "",
            "home/missing/x",
            "home/sessions",
            "home/Sessions/x",
            "home/cache",
        ] {
            assert!(manifest(&[], &[bad]).check_paths().is_err(), "{bad}");
            assert!(manifest(&[bad], &[]).check_paths().is_err(), "{bad}");
        }
        assert!(manifest(&[], &["home/a", "home/a"]).check_paths().is_err());
        assert!(manifest(&["home/a", "home/a"], &[]).check_paths().is_err());
        assert!(manifest(&["home/a"], &["home/a"]).check_paths().is_err());
        // Agents may make both directories on one disk, so a backup may have both.
        manifest(&["data/files"], &["data/files/a", "data/files/A"]).check_paths().unwrap();
        assert!(manifest(&[], &["home/a", "home/a/b"]).check_paths().is_err());
    }

    #[test]
    fn beside_a_store_lies_nothing_that_is_played_into_it() {
        for part in ["data", "sessions"] {
            let store = format!("{part}/store");
            for name in ["belljar.db", "chat_history"] {
                manifest(&[&store], &[&format!("{store}/{name}")]).check_paths().unwrap();
            }
            for name in
                ["belljar.db-journal", "belljar.db-wal", "belljar.db-shm", "other", "Belljar.db"]
            {
                assert!(
                    manifest(&[&store], &[&format!("{store}/{name}")]).check_paths().is_err(),
                    "{name}"
                );
                assert!(
                    manifest(&[&store, &format!("{store}/{name}")], &[]).check_paths().is_err()
                );
            }
            let other = format!("{part}/Store");
            assert!(manifest(&[&other], &[]).check_paths().is_err());
            assert!(manifest(&[], &[&store]).check_paths().is_err());
        }
    }

    #[test]
    fn a_newer_form_is_refused_whatever_else_it_holds() {
        let newer = br#"{"format": 2, "and": "more"}"#;
        assert!(BackupManifest::read(newer).unwrap_err().message.contains("format 2"));
        let unknown = br#"{"format": 1, "and": "more"}"#;
        assert!(BackupManifest::read(unknown).unwrap_err().message.contains("not valid"));
    }
}
