//! Everything that is not a mount: a bounded `/tmp` and `/dev` in memory, the commands as
//! programs under `/bin` and `/usr/bin`, and no more.

use super::errors::refused;
use crate::{limits, utilities};
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FsLimits, FsUsage, InMemoryFs, Metadata, Result,
    async_trait,
};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Writes anywhere else are refused, not kept in memory: a model that writes `/output/a.txt`
/// must not believe that the file is there for others.
pub(crate) struct Outside {
    memory: InMemoryFs,
}

impl Outside {
    pub(crate) fn new() -> Outside {
        Outside { memory: InMemoryFs::with_limits(limits::scratch()) }
    }

    /// Takes away what the filesystem in memory is born with and no sandbox has.
    pub(crate) async fn tidy(&self) -> Result<()> {
        self.memory.remove(Path::new("/home"), true).await?;
        for folder in PROGRAMS {
            self.memory.mkdir(Path::new(folder), true).await?;
        }
        Ok(())
    }
}

/// Where scripts look for programs by path: `/bin/sh x.sh`, `/usr/bin/env`, `which sed`.
const PROGRAMS: &[&str] = &["/bin", "/usr/bin"];

/// What stands at the path of a program: a script that runs the command of the same name.
fn program(path: &Path) -> Option<Vec<u8>> {
    let folder = path.parent()?.to_str()?;
    let name = path.file_name()?.to_str()?;
    let is_there = PROGRAMS.contains(&folder) && utilities::is_program(name);
    is_there.then(|| format!("#!/bin/sh\nexec {name} \"$@\"\n").into_bytes())
}

fn program_metadata(script: &[u8]) -> Metadata {
    Metadata {
        size: script.len() as u64,
        mode: 0o755,
        modified: SystemTime::UNIX_EPOCH,
        created: SystemTime::UNIX_EPOCH,
        ..Metadata::default()
    }
}

/// Whether a path may change.
fn writable(path: &Path) -> Result<()> {
    let below = |root: &str| path.starts_with(root) && path != Path::new(root);
    if below("/tmp") || below("/dev") {
        return Ok(());
    }
    Err(refused(ErrorKind::PermissionDenied))
}

#[async_trait]
impl FileSystemExt for Outside {
    fn usage(&self) -> FsUsage {
        self.memory.usage()
    }

    fn limits(&self) -> FsLimits {
        self.memory.limits()
    }

    async fn mkfifo(&self, path: &Path, mode: u32) -> Result<()> {
        writable(path)?;
        self.memory.mkfifo(path, mode).await
    }

    fn backend_kind(&self) -> &'static str {
        "memory"
    }
}

#[async_trait]
impl FileSystem for Outside {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        if let Some(script) = program(path) {
            return Ok(script);
        }
        self.memory.read_file(path).await
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        writable(path)?;
        self.memory.write_file(path, content).await
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        writable(path)?;
        self.memory.append_file(path, content).await
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        if !(recursive && self.memory.exists(path).await?) {
            writable(path)?;
        }
        self.memory.mkdir(path, recursive).await
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        writable(path)?;
        self.memory.remove(path, recursive).await
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        if let Some(script) = program(path) {
            return Ok(program_metadata(&script));
        }
        self.memory.stat(path).await
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.memory.read_dir(path).await
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        if program(path).is_some() {
            return Ok(true);
        }
        self.memory.exists(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        writable(from).and_then(|()| writable(to))?;
        self.memory.rename(from, to).await
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        writable(to)?;
        self.memory.copy(from, to).await
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        writable(link)?;
        self.memory.symlink(target, link).await
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.memory.read_link(path).await
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        writable(path)?;
        self.memory.chmod(path, mode).await
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        writable(path)?;
        self.memory.set_modified_time(path, time).await
    }
}
