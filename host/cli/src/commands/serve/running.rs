//! The facts of a running server, written for commands on the same machine: which files it can open behind
//! its OS sandbox, and its open tenants. Each server has one file in the directory of the store, and locks it
//! while it runs. Commands use the facts only for hints, because an attacker inside a server can write the
//! file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use belljar_definition::Settings;
use belljar_os_sandbox::WallReach;
use belljar_store::TENANT;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::late;
use crate::setup::data::DataRoot;
use crate::setup::home::{HomePaths, create_private};

/// The name of the directory of these files, beside the store.
const SERVING: &str = "serving";

/// The most servers of one data root that are read; further files are ignored.
const MAX_SERVERS: usize = 32;

/// Most bytes of such a file, which then has the directories and ids of ten thousand tenants.
const MAX_BYTES: u64 = 8 << 20;

/// The most attempts to make a file, because another server may remove it as a leftover.
const MAX_TRIES: usize = 8;

/// The first line of such a file, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct FileHead {
    /// The operator's workspace for this server.
    workspace: PathBuf,
    /// The files that the server can open; `None` = any, because it has no OS sandbox.
    reach: Option<WallReach>,
}

/// This server's own file with its facts; removed on drop.
#[derive(Debug)]
pub(crate) struct RunningServer {
    path: PathBuf,
    /// The open file, which holds the lock.
    file: File,
}

/// The facts of a running server, as a command reads them.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    workspace: PathBuf,
    /// The files that the server can open; `None` = any.
    reach: Option<WallReach>,
    /// The ids of the server's open tenants.
    open: BTreeSet<String>,
}

impl RunningServer {
    /// Writes the file with the process's reach, and removes the files of killed servers.
    pub(crate) fn write_facts(
        data: &DataRoot,
        workspace: &Path,
        reach: Option<&WallReach>,
    ) -> io::Result<Self> {
        let directory = facts_directory(data);
        create_private(&directory)?;
        for left in facts_files(&directory) {
            // The lock was released when its server was killed.
            if open_file(&left).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(&left);
            }
        }
        let path = directory.join(std::process::id().to_string());
        let mut head = serde_json::to_vec(&FileHead {
            workspace: workspace.to_owned(),
            reach: reach.cloned(),
        })?;
        head.push(b'\n');
        for _ in 0..MAX_TRIES {
            let mut file = create_file(&path)?;
            file.lock()?;
            file.set_len(0)?;
            file.write_all(&head)?;
            if is_at(&file, &path) {
                return Ok(Self { path, file });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Writes that a tenant was opened, once for each tenant.
    pub(crate) fn note_opened(&self, id: &str) {
        // If the write fails, a hint is only less exact.
        let _ = (&self.file).write_all(format!("{id}\n").as_bytes());
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // Removed while it is locked, so no other process uses the file.
        let _ = fs::remove_file(&self.path);
    }
}

impl ServerFacts {
    /// The settings that the server can apply only after a restart, one line each. `of` = the paths of the
    /// tenant, or of the operator.
    pub(crate) fn late_settings(
        &self,
        tenant: &str,
        mut settings: Settings,
        of: &HomePaths,
    ) -> Vec<String> {
        let reach = self.reach.as_ref();
        match tenant == TENANT {
            // The command may have been typed in another workspace than the server's.
            true => late::narrow_mounts(&mut settings, &self.workspace, |it| {
                late::possible_access(it, reach)
            }),
            false => late::narrow_mounts(&mut settings, &of.workspace, |it| {
                late::most_of_tenant(it, reach)
            }),
        }
    }

    /// Returns whether the server has opened this tenant, and so has valid settings of it.
    pub(crate) fn has_open(&self, id: &str) -> bool {
        self.open.contains(id)
    }
}

/// Reads the facts of the servers on this data root. Empty = no server runs, or the facts are unreadable.
pub(crate) fn read_server_facts(data: &DataRoot) -> Vec<ServerFacts> {
    facts_files(&facts_directory(data)).iter().filter_map(|path| read_facts(path)).collect()
}

fn facts_directory(data: &DataRoot) -> PathBuf {
    data.store_directory().join(SERVING)
}

/// The files in the directory whose names are process ids.
fn facts_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_number = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    let entries = entries.filter(|entry| is_number(&entry.file_name()));
    entries.take(MAX_SERVERS).map(|entry| entry.path()).collect()
}

/// Reads one file of facts; `None` = its server is not running, or the file is malformed.
fn read_facts(path: &Path) -> Option<ServerFacts> {
    let file = open_file(path).ok()?;
    let alive = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok().filter(|_| alive)?;
    let (head, ids) = text.split_once('\n')?;
    let FileHead { workspace, reach } = serde_json::from_str(head).ok()?;
    Some(ServerFacts { workspace, reach, open: ids.lines().map(str::to_owned).collect() })
}

/// Opens a regular file; a link is refused.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn create_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    matches!((file.metadata(), fs::symlink_metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::server::DataArg;

    #[test]
    fn a_server_tells_while_it_lives_and_what_one_has_left_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let places = HomePaths {
            home: root.clone(),
            cache: root.clone(),
            workspace: root.clone(),
            user_home: None,
        };
        let arg = DataArg { data: Some(root.join("data")) };
        let data = DataRoot::find_root(&arg, &Settings::default(), &places).unwrap();
        data.create_root(&places).unwrap();
        assert!(read_server_facts(&data).is_empty());
        let mut wall = belljar_os_sandbox::Wall::default();
        wall.allow_write(&data.workspaces_directory());
        let running =
            RunningServer::write_facts(&data, &root, Some(&wall.present_reach())).unwrap();
        running.note_opened("1f");
        let [told_now] = &read_server_facts(&data)[..] else { panic!("not one server") };
        let reach = told_now.reach.as_ref().unwrap();
        assert!(
            reach.can_write(&data.workspaces_directory().join("new"))
                && !reach.can_write(&data.tenants_directory())
        );
        assert!(told_now.has_open("1f") && !told_now.has_open("2f"));
        drop(running);
        assert!(read_server_facts(&data).is_empty());
        // The file of a killed server, and a link in the place of a file.
        let left = facts_directory(&data).join("77");
        fs::write(&left, "{\"workspace\":\"/\",\"reach\":null}\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("data"), facts_directory(&data).join("78")).unwrap();
        assert!(read_server_facts(&data).is_empty());
        let _running = RunningServer::write_facts(&data, &root, None).unwrap();
        assert!(!left.exists() && root.join("data").exists());
        assert!(read_server_facts(&data)[0].reach.is_none());
    }
}
