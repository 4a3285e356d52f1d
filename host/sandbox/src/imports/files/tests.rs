//! Tests call the host traits as a guest would, on a real directory, without a guest.

mod closed;
mod limits;
mod names;
mod os_sandbox;
mod overlay;
mod random;
mod routes;
mod shapes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, DenyCode, GuestPath, Limits, MountAccess};
use tempfile::TempDir;
use types::{DescriptorFlags, ErrorCode, HostDescriptor, OpenFlags, PathFlags};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};

use super::{ClosedPaths, FilesCtx, FilesView, OpenMount};
use crate::receipt::record::CallRecord;

/// The file context of a store over temporary directories: `/rw` and `/ro`, with a file in each.
struct Rig {
    ctx: FilesCtx,
    table: ResourceTable,
    record: Arc<CallRecord>,
    budget: Budget,
    home: TempDir,
    rw: u32,
    ro: u32,
}

const NOTE: &str = "a note\n";

impl Rig {
    fn new() -> Self {
        Self::with(&Limits::default())
    }

    fn with(limits: &Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        for name in ["rw", "ro"] {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::write(home.path().join(name).join("note.txt"), NOTE).unwrap();
        }
        std::fs::write(home.path().join("outside.txt"), "outside").unwrap();
        let budget = Budget::new_root(BudgetLevel::Subagent, BudgetCaps::for_agent(limits));
        let record = Arc::new(CallRecord::new(budget.clone(), 10));
        let mounts = [
            mount("/rw", MountAccess::ReadWrite, &home.path().join("rw")),
            mount("/ro", MountAccess::Read, &home.path().join("ro")),
        ];
        let ctx = FilesCtx::new(&mounts, limits, Arc::clone(&record));
        let table = ResourceTable::new();
        let mut rig = Self { ctx, table, record, budget, home, rw: 0, ro: 0 };
        let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
        let by = |name: &str| found.iter().find(|(_, n)| n == name).map_or(0, |(fd, _)| fd.rep());
        (rig.rw, rig.ro) = (by("/rw"), by("/ro"));
        rig
    }

    fn view(&mut self) -> FilesView<'_> {
        FilesView { ctx: &mut self.ctx, table: &mut self.table }
    }

    fn host(&self, path: &str) -> std::path::PathBuf {
        self.home.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.host(path)).unwrap()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.host(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn symlink(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.host(path)).unwrap();
    }

    async fn open(&mut self, dir: u32, path: &str, how: How) -> FsResult<Resource<Descriptor>> {
        let (open, flags) = how.flags();
        let follow = PathFlags::SYMLINK_FOLLOW;
        self.view().open_at(fd(dir), follow, path.to_owned(), open, flags).await
    }

    /// Opens a small file, and reads the whole content.
    async fn read(&mut self, dir: u32, path: &str) -> FsResult<String> {
        let file = self.open(dir, path, How::Read).await?;
        let rep = file.rep();
        let result = self.view().read(file, 1 << 16, 0).await;
        HostDescriptor::drop(&mut self.view(), own(rep)).unwrap();
        Ok(String::from_utf8(result?.0).unwrap())
    }

    /// Opens a file, created or truncated, and writes the text.
    async fn write(&mut self, dir: u32, path: &str, text: &str) -> FsResult<()> {
        let file = self.open(dir, path, How::Replace).await?;
        let rep = file.rep();
        let result = self.view().write(file, text.into(), 0).await;
        HostDescriptor::drop(&mut self.view(), own(rep)).unwrap();
        result.map(drop)
    }

    /// The codes of the refusals so far, oldest first. Clears the list.
    fn denials(&self) -> Vec<DenyCode> {
        self.record.drain_lists().0.denials.into_iter().map(|denial| denial.code).collect()
    }

    /// Checks after a refusal that an ordinary file can still be written and read.
    async fn assert_works(&mut self) {
        self.write(self.rw, "neighbour.txt", "fine").await.unwrap();
        assert_eq!(self.read(self.rw, "neighbour.txt").await.unwrap(), "fine");
        self.denials();
    }
}

/// How a test opens a file.
#[derive(Debug, Clone, Copy)]
enum How {
    Read,
    Write,
    Create,
    Exclusive,
    Truncate,
    Replace,
    Directory,
}

impl How {
    fn flags(self) -> (OpenFlags, DescriptorFlags) {
        let write = DescriptorFlags::READ | DescriptorFlags::WRITE;
        match self {
            Self::Read => (OpenFlags::empty(), DescriptorFlags::READ),
            Self::Write => (OpenFlags::empty(), write),
            Self::Create => (OpenFlags::CREATE, DescriptorFlags::READ),
            Self::Exclusive => (OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write),
            Self::Truncate => (OpenFlags::TRUNCATE, DescriptorFlags::READ),
            Self::Replace => (OpenFlags::CREATE | OpenFlags::TRUNCATE, write),
            Self::Directory => (OpenFlags::DIRECTORY, DescriptorFlags::READ),
        }
    }
}

fn mount(guest: &str, access: MountAccess, host: &Path) -> OpenMount {
    mount_in(guest, access, host, &[])
}

/// A mount like `mount`, with directories that belljar made for agents to work in.
fn mount_in(guest: &str, access: MountAccess, host: &Path, work: &[PathBuf]) -> OpenMount {
    mount_beside(guest, access, host, work, &[])
}

/// A mount like `mount_in`, with some closed directories.
fn mount_beside(
    guest: &str,
    access: MountAccess,
    host: &Path,
    work: &[PathBuf],
    closed: &[PathBuf],
) -> OpenMount {
    let mount = belljar_policy::Mount {
        guest: GuestPath::new(guest).unwrap(),
        host: host.to_owned(),
        access,
    };
    OpenMount::open(&mount, work, &ClosedPaths::from_paths(closed)).unwrap()
}

fn fd(rep: u32) -> Resource<Descriptor> {
    Resource::new_borrow(rep)
}

fn own(rep: u32) -> Resource<Descriptor> {
    Resource::new_own(rep)
}

/// The error code that the guest gets.
fn code<T: std::fmt::Debug>(result: FsResult<T>) -> ErrorCode {
    result.expect_err("refused").downcast().expect("an error code, not a trap")
}
