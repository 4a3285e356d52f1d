//! `libraries/lock.toml`: the installed libraries, their sources, and the digest of every agreed file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use belljar_catalogue::limits::MAX_AGENT_FILES;
use belljar_definition::Slug;
use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::Digest;
use serde::{Deserialize, Serialize};

use super::gather::unfit_reason;
use super::plugin_lock::{
    InstalledPlugin, KnownMarket, MAX_MARKETS, MAX_PLUGINS, PluginKey, WrittenMarket, WrittenPlugin,
};
use super::source::LibrarySource;
use crate::setup::exit::Failure;
use crate::setup::home::read_bounded;

/// The name in the folder of libraries. Not in the home itself, because the OS sandbox opens directories, not
/// single files that are replaced.
const LOCK: &str = "lock.toml";

/// The written format. An older format would need a separate reader, and does not exist yet.
const VERSION: i64 = 1;

/// Most libraries.
pub(super) const MAX_LIBRARIES: usize = 100;

/// Most bytes of the file: many libraries of many hundred files.
const MAX_BYTES: u64 = 16 << 20;

/// All installed libraries by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LibraryLock {
    pub(crate) libraries: BTreeMap<Slug, InstalledLibrary>,
    /// The plugins, by market and name.
    pub(crate) plugins: BTreeMap<PluginKey, InstalledPlugin>,
    /// The known marketplaces.
    pub(crate) markets: BTreeMap<Slug, KnownMarket>,
}

/// One installed library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledLibrary {
    /// The directory below the folder of libraries: one plain name.
    pub(crate) directory: String,
    /// Where it came from.
    pub(crate) source: LibrarySource,
    /// The commit.
    pub(crate) revision: Option<String>,
    /// The files by path below the directory, with the agreed digests.
    pub(crate) files: BTreeMap<PathBuf, Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLock {
    version: i64,
    #[serde(default)]
    libraries: BTreeMap<String, WrittenLibrary>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    plugins: BTreeMap<String, WrittenPlugin>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    markets: BTreeMap<String, WrittenMarket>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLibrary {
    directory: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    source: LibrarySource,
    files: BTreeMap<String, String>,
}

impl LibraryLock {
    /// Reads the lock of this folder; a missing lock means no libraries.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(LOCK);
        let bad = |why: String| {
            Failure::usage(format!("the list of installed libraries cannot be used: {why}"))
                .with_hint(format!(
                    "correct `{0}`, or remove it and add the libraries again; until then none of \
                     them is loaded",
                    path.to_shown()
                ))
        };
        let bytes = match read_bounded(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(bad(error.to_string())),
        };
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
        Self::parse(&text).map_err(bad)
    }

    /// Parses a lock; all of it has to be in belljar's own form.
    fn parse(text: &str) -> Result<Self, String> {
        let of_toml = |error: toml::de::Error| {
            ShownText::clip_line(error.to_string().trim(), 300).to_string().replace("\\n", " ")
        };
        let table: toml::Table = text.parse().map_err(of_toml)?;
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(VERSION) => {}
            Some(other) => return Err(format!("its version is {other}, not {VERSION}")),
            None => return Err("it has no version".to_owned()),
        }
        let written: WrittenLock = toml::from_str(text).map_err(of_toml)?;
        if written.libraries.len() > MAX_LIBRARIES {
            return Err(format!("it has more than {MAX_LIBRARIES} libraries"));
        }
        let mut lock = Self::default();
        for (name, library) in written.libraries {
            let shown = ShownText::clip_line(&name, 80).to_string();
            let name = parse_exact_slug(&name)
                .ok_or_else(|| format!("`{shown}` is no name of a library"))?;
            let installed =
                library.into_installed().map_err(|why| format!("library `{shown}`: {why}"))?;
            if lock.has_directory(&installed.directory) {
                return Err(format!("library `{shown}` has the directory of another one"));
            }
            lock.libraries.insert(name, installed);
        }
        lock.read_plugins(written.plugins)?;
        lock.read_markets(written.markets)?;
        Ok(lock)
    }

    fn read_plugins(&mut self, written: BTreeMap<String, WrittenPlugin>) -> Result<(), String> {
        if written.len() > MAX_PLUGINS {
            return Err(format!("it has more than {MAX_PLUGINS} plugins"));
        }
        for (key, plugin) in written {
            let shown = ShownText::clip_line(&key, 160).to_string();
            let key = PluginKey::from_text(&key)
                .ok_or_else(|| format!("`{shown}` is no name of a plugin"))?;
            let installed =
                plugin.into_installed().map_err(|why| format!("plugin `{shown}`: {why}"))?;
            let taken = key.market.is_none() && self.libraries.contains_key(&key.plugin);
            if taken || self.has_directory(&installed.directory) {
                return Err(format!("plugin `{shown}` has the place of another one"));
            }
            self.plugins.insert(key, installed);
        }
        Ok(())
    }

    fn read_markets(&mut self, written: BTreeMap<String, WrittenMarket>) -> Result<(), String> {
        if written.len() > MAX_MARKETS {
            return Err(format!("it has more than {MAX_MARKETS} marketplaces"));
        }
        for (name, market) in written {
            let shown = ShownText::clip_line(&name, 80).to_string();
            let name = parse_exact_slug(&name)
                .ok_or_else(|| format!("`{shown}` is no name of a marketplace"))?;
            let market =
                market.into_market().map_err(|why| format!("marketplace `{shown}`: {why}"))?;
            if self.has_directory(&market.directory) {
                return Err(format!("marketplace `{shown}` has the place of another one"));
            }
            self.markets.insert(name, market);
        }
        Ok(())
    }

    /// Whether something is installed in this directory.
    pub(super) fn has_directory(&self, name: &str) -> bool {
        self.libraries.values().any(|it| it.directory == name)
            || self.plugins.values().any(|it| it.directory == name)
            || self.markets.values().any(|it| it.directory == name)
    }

    /// Replaces the lock atomically: a reader sees the old or the new list. The lock alone decides which
    /// libraries are installed, so a list that would not be read again is not written.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = self.to_text().map_err(io::Error::other)?;
        if text.len() as u64 > MAX_BYTES {
            let message = format!("the list of libraries would have more than {MAX_BYTES} bytes");
            return Err(io::Error::other(message));
        }
        Self::parse(&text).map_err(|why| {
            io::Error::other(format!("the list of libraries could not be read again: {why}"))
        })?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(folder.join(LOCK)).map_err(|error| error.error)?;
        // The rename itself; where a directory cannot be synced it is no reason to fail.
        let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    fn to_text(&self) -> Result<String, String> {
        let libraries = self
            .libraries
            .iter()
            .map(|(name, installed)| Ok((name.to_string(), installed.to_written()?)));
        let libraries = libraries.collect::<Result<_, String>>()?;
        let plugins = self.plugins.iter();
        let plugins =
            plugins.map(|(key, it)| Ok((key.to_string(), WrittenPlugin::from_installed(it)?)));
        let plugins = plugins.collect::<Result<_, String>>()?;
        let markets = self.markets.iter();
        let markets =
            markets.map(|(name, it)| (name.to_string(), WrittenMarket::from_market(it))).collect();
        let text = toml::to_string(&WrittenLock { version: VERSION, libraries, plugins, markets })
            .map_err(|error| error.to_string())?;
        Ok(format!(
            "# Written by `belljar agents`, `plugins` and `marketplaces`. A file that is not as it says is not used.\n{text}"
        ))
    }
}

impl InstalledLibrary {
    fn to_written(&self) -> Result<WrittenLibrary, String> {
        Ok(WrittenLibrary {
            directory: self.directory.clone(),
            revision: self.revision.clone(),
            source: self.source.clone(),
            files: write_files(&self.files)?,
        })
    }
}

impl WrittenLibrary {
    fn into_installed(self) -> Result<InstalledLibrary, String> {
        let Self { directory, revision, source, files } = self;
        check_place(&directory, &source, revision.as_deref())?;
        Ok(InstalledLibrary { directory, source, revision, files: read_files(files)? })
    }
}

/// Checks the directory, the source and the commit of something that is installed.
pub(super) fn check_place(
    directory: &str,
    source: &LibrarySource,
    revision: Option<&str>,
) -> Result<(), String> {
    if parse_exact_slug(directory).is_none() {
        return Err("its directory is no plain name".to_owned());
    }
    source.check_recorded()?;
    let is_id = |id: &str| id.len() <= 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
    if !revision.is_none_or(is_id) {
        return Err("its revision is no commit".to_owned());
    }
    Ok(())
}

/// The files as text, each with its digest.
pub(super) fn write_files(
    files: &BTreeMap<PathBuf, Digest>,
) -> Result<BTreeMap<String, String>, String> {
    let file = |(path, digest): (&PathBuf, &Digest)| {
        let path = path.to_str().ok_or("a path is not UTF-8")?;
        Ok((path.to_owned(), format!("sha256:{digest}")))
    };
    files.iter().map(file).collect()
}

/// The files with their digests, from text.
pub(super) fn read_files(
    files: BTreeMap<String, String>,
) -> Result<BTreeMap<PathBuf, Digest>, String> {
    if files.len() > MAX_AGENT_FILES {
        return Err(format!("it has more than {MAX_AGENT_FILES} files"));
    }
    let mut pinned = BTreeMap::new();
    for (path, digest) in files {
        let shown = ShownText::clip_line(&path, 100).to_string();
        let below = PathBuf::from(&path);
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        if unfit_reason(&path).is_some() || !plain {
            return Err(format!("`{shown}` is no path below its directory"));
        }
        let digest = digest.strip_prefix("sha256:").and_then(Digest::from_hex);
        let digest = digest.ok_or_else(|| format!("`{shown}` has no SHA-256"))?;
        pinned.insert(below, digest);
    }
    Ok(pinned)
}

/// A slug in its exact spelling: belljar's own file has no other.
pub(super) fn parse_exact_slug(text: &str) -> Option<Slug> {
    Slug::from_name(text).filter(|slug| slug.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> LibraryLock {
        let files = BTreeMap::from([(PathBuf::from("a/b c.md"), Digest::hash_bytes(b"x"))]);
        let source =
            LibrarySource::Git { path: "/srv/x".into(), rev: Some("main".into()), folder: None };
        let installed = InstalledLibrary {
            directory: "x-00ff".into(),
            source,
            revision: Some("0".repeat(40)),
            files,
        };
        let name = Slug::from_name("x").unwrap();
        LibraryLock { libraries: BTreeMap::from([(name, installed)]), ..LibraryLock::default() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LibraryLock::read(dir.path()).unwrap(), LibraryLock::default());
        lock().write(dir.path()).unwrap();
        assert_eq!(LibraryLock::read(dir.path()).unwrap(), lock());
        LibraryLock::default().write(dir.path()).unwrap();
        assert_eq!(LibraryLock::read(dir.path()).unwrap(), LibraryLock::default());
    }

    fn files(number: usize) -> BTreeMap<PathBuf, Digest> {
        let file = |at: usize| (PathBuf::from(format!("f{at}")), Digest::hash_bytes(b"x"));
        (0..number).map(file).collect()
    }

    fn add_plugins(lock: &mut LibraryLock, number: usize, of_files: usize) {
        for at in 0..number {
            let plugin = Slug::from_name(&format!("p{at}")).unwrap();
            let installed = InstalledPlugin {
                directory: format!("p{at}-00ff"),
                name: plugin.to_string(),
                enabled: true,
                version: None,
                source: LibrarySource::Directory { path: "/srv".into() },
                folder: String::new(),
                revision: None,
                files: files(of_files),
                agents: Vec::new(),
                skills: Vec::new(),
                commands: Vec::new(),
            };
            lock.plugins.insert(PluginKey { market: None, plugin }, installed);
        }
    }

    fn add_markets(lock: &mut LibraryLock, number: usize) {
        for at in 0..number {
            let source = LibrarySource::Directory { path: "/srv".into() };
            let directory = format!("m{at}-00ff");
            let market = KnownMarket { directory, source, revision: None, files: files(1) };
            lock.markets.insert(Slug::from_name(&format!("m{at}")).unwrap(), market);
        }
    }

    #[test]
    fn a_list_that_could_not_be_read_again_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut full = lock();
        add_plugins(&mut full, MAX_PLUGINS, 1);
        add_markets(&mut full, MAX_MARKETS);
        full.write(dir.path()).unwrap();
        assert_eq!(LibraryLock::read(dir.path()).unwrap(), full);
        let (mut plugins, mut markets, mut large) = (lock(), lock(), lock());
        add_plugins(&mut plugins, MAX_PLUGINS + 1, 1);
        add_markets(&mut markets, MAX_MARKETS + 1);
        add_plugins(&mut large, 1, MAX_AGENT_FILES + 1);
        for (bad, why) in [
            (plugins, "more than 200 plugins"),
            (markets, "more than 50 marketplaces"),
            (large, "plugin `p0`: it has more than 5000 files"),
        ] {
            let error = bad.write(dir.path()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(LibraryLock::read(dir.path()).unwrap(), full);
        }
    }

    #[test]
    fn a_lock_that_is_not_as_belljar_writes_it_is_one_error() {
        let good = lock().to_text().unwrap();
        assert!(LibraryLock::parse(&good).is_ok());
        for (from, to, why) in [
            ("version = 1", "version = 2", "its version is 2"),
            ("version = 1", "", "no version"),
            ("libraries.x", "libraries.\"../x\"", "no name of a library"),
            ("x-00ff", "../x", "no plain name"),
            ("/srv/x", "srv/x", "not absolute"),
            ("a/b c.md", "../b.md", "no path below"),
            ("a/b c.md", "/b.md", "no path below"),
            ("a/b c.md", "a//b.md", "no path below"),
            ("sha256:", "md5:", "no SHA-256"),
            ("directory =", "extra = 1\ndirectory =", "extra"),
            ("version = 1", "version = [", ""),
            (&"0".repeat(40), "-x", "no commit"),
        ] {
            let text = good.replace(from, to);
            assert_ne!(text, good, "{from}");
            let error = LibraryLock::parse(&text).unwrap_err();
            assert!(error.contains(why), "{from} -> {to}: {error}");
        }
    }
}
