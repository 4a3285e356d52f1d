//! Finds the certificates of the machine that a process in the OS sandbox may read, without the private keys
//! beside them.
//!
//! If belljar runs as root, file modes refuse nothing: then belljar and an MCP server can read every file
//! that their OS sandbox allows. The machine's keys are beside its certificates (`/etc/ssl/private`,
//! `/etc/pki/tls/private`), and now and then among them: a proxy's guide, for example, advises one file in
//! `/etc/ssl/certs` for certificate and key.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Where certificates and the settings of TLS libraries are. The directories above are not allowed, because
/// `/etc/pki` also has keys of package managers, subscriptions and databases.
pub(crate) const PLACES: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/java",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/ct_log_list.cnf",
    "/etc/pki/tls/fips_local.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/tls/openssl.d",
    "/etc/pki/trust",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/openssl.cnf.d",
    "/usr/local/share/ca-certificates",
    "/var/lib/ca-certificates",
];

/// Directories of certificates inside of directories that are allowed as a whole, for example `/usr`.
pub(crate) const WITHIN: &[&str] =
    &["/usr/local/share/ca-certificates", "/usr/share/ca-certificates", "/usr/share/pki"];

/// The name of a directory for private keys.
const KEYS: &str = "private";

/// The endings of binary files that contain keys, for example `p12`.
const KEY_ENDINGS: &[&str] = &["jks", "key", "keystore", "p12", "pfx"];

/// A text that is in every private key in text form.
const KEY: &[u8] = b"PRIVATE KEY-----";

/// A text that is in every certificate in text form.
const CERTIFICATE: &[u8] = b"CERTIFICATE-----";

/// The most bytes of a file that is checked; a bundle of all authorities has half a MiB.
const MAX_FILE: u64 = 8 << 20;

/// The most bytes checked below a path.
const MAX_BYTES: u64 = 32 << 20;

/// The most entries checked below a path; a large store of certificates has a thousand.
const MAX_ENTRIES: usize = 10_000;

/// The deepest nesting of directories that is checked.
const MAX_DEPTH: usize = 6;

/// Returns the files and directories at the path without private key. A directory is returned as a whole if
/// no file below it has a key. Links are not followed: the target has to be allowed by itself. A file beyond
/// a limit, or one that cannot be read, is left out.
pub(crate) fn without_keys(place: &Path) -> Vec<PathBuf> {
    let Ok(place) = place.canonicalize() else { return Vec::new() };
    let mut look = KeySearch::default();
    if look.is_whole(&place, 0) {
        return vec![place];
    }
    look.found
}

/// Returns what [`without_keys`] leaves out at the path: files with keys, and directories that could not be
/// checked.
pub(crate) fn key_paths(place: &Path) -> Vec<PathBuf> {
    let Ok(place) = place.canonicalize() else { return Vec::new() };
    let mut look = KeySearch::default();
    look.is_whole(&place, 0);
    look.keys
}

/// A search for private keys below a path, with the limits left.
struct KeySearch {
    entries: usize,
    bytes: u64,
    /// The parts without keys, of directories with a key somewhere.
    found: Vec<PathBuf>,
    /// The files with keys, and the directories that could not be checked.
    keys: Vec<PathBuf>,
}

impl Default for KeySearch {
    fn default() -> Self {
        Self { entries: MAX_ENTRIES, bytes: MAX_BYTES, found: Vec::new(), keys: Vec::new() }
    }
}

impl KeySearch {
    /// Whether nothing at or below the path is a key. If not, the parts of a directory without keys are
    /// recorded.
    fn is_whole(&mut self, path: &Path, depth: usize) -> bool {
        let whole = match fs::symlink_metadata(path) {
            _ if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(KEYS)) => false,
            Ok(about) if about.is_dir() => return self.is_whole_folder(path, depth),
            Ok(about) if about.is_file() => self.has_no_key(path, &about).unwrap_or(false),
            Ok(about) => about.is_symlink(),
            Err(_) => false,
        };
        if !whole {
            self.keys.push(path.to_path_buf());
        }
        whole
    }

    /// Whether a directory has no key at or below it, and was searched completely. If not, the entries
    /// without keys are recorded one by one.
    fn is_whole_folder(&mut self, folder: &Path, depth: usize) -> bool {
        let Ok(entries) = fs::read_dir(folder) else {
            self.keys.push(folder.to_path_buf());
            return false;
        };
        let before = self.found.len();
        let mut whole = depth < MAX_DEPTH;
        let mut parts = Vec::new();
        for entry in entries {
            let Some(left) = self.entries.checked_sub(1).filter(|_| depth < MAX_DEPTH) else {
                whole = false;
                self.keys.push(folder.to_path_buf());
                break;
            };
            self.entries = left;
            let Ok(path) = entry.map(|entry| entry.path()) else {
                whole = false;
                continue;
            };
            match self.is_whole(&path, depth + 1) {
                true if path.is_symlink() => {}
                true => parts.push(path),
                false => whole = false,
            }
        }
        if whole {
            self.found.truncate(before);
        } else {
            self.found.append(&mut parts);
        }
        whole
    }

    /// Whether a file surely has no private key: a small file without a key's ending or text, that is
    /// readable for everybody or contains a certificate.
    fn has_no_key(&mut self, path: &Path, about: &fs::Metadata) -> io::Result<bool> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let left = self.bytes.checked_sub(about.len()).filter(|_| about.len() <= MAX_FILE);
        let Some(left) = left.filter(|_| !KEY_ENDINGS.contains(&&*ending.to_ascii_lowercase()))
        else {
            return Ok(false);
        };
        self.bytes = left;
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
        let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        Ok(!has(KEY) && (is_everybodys(about) || has(CERTIFICATE)))
    }
}

/// Whether every user of the machine may read the file.
#[cfg(unix)]
fn is_everybodys(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    about.permissions().mode() & 0o004 != 0
}

#[cfg(not(unix))]
fn is_everybodys(_about: &fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const CERT: &str = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";
    const SECRET: &str = "-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\n";

    fn put(root: &Path, name: &str, text: &str, mode: u32) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn found(root: &Path) -> Vec<String> {
        let below = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let mut found: Vec<_> = without_keys(root).into_iter().map(below).collect();
        found.sort();
        found
    }

    #[test]
    fn a_folder_of_certificates_alone_is_let_through_whole() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(&root, "ca.crt", CERT, 0o644);
        put(&root, "java/cacerts", "a keystore without keys", 0o644);
        put(&root, "narrow.pem", CERT, 0o600);
        symlink("/nowhere", root.join("0a.0")).unwrap();
        assert_eq!(found(&root), [""]);
    }

    #[test]
    fn keys_beside_certificates_are_left_out_and_certificates_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(&root, "ca.crt", CERT, 0o644);
        put(&root, "proxy.pem", &format!("{CERT}{SECRET}"), 0o644);
        put(&root, "der", "a key that no text tells", 0o600);
        put(&root, "store.P12", "x", 0o644);
        put(&root, "private/a.pem", CERT, 0o644);
        put(&root, "more/ca.crt", CERT, 0o644);
        put(&root, "more/deep/key.pem", SECRET, 0o644);
        put(&root, "more/deep/ca.crt", CERT, 0o644);
        put(&root, "whole/ca.crt", CERT, 0o644);
        symlink("private/a.pem", root.join("link.pem")).unwrap();
        assert_eq!(found(&root), ["ca.crt", "more/ca.crt", "more/deep/ca.crt", "whole"]);
        assert_eq!(without_keys(&root.join("link.pem")), [root.join("private/a.pem")]);
        assert!(without_keys(&root.join("proxy.pem")).is_empty());
        let left: Vec<_> = key_paths(&root)
            .into_iter()
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(left, ["der", "more/deep/key.pem", "private", "proxy.pem", "store.P12"]);
    }
}
