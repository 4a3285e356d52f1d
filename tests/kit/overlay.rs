//! The world of the overlays' tests: a workspace with files, and an overlay of it. The crates' unit tests take it in by
//! its path, because each of them has a type `Overlay` of its own.
#![allow(dead_code, reason = "no crate needs all of it")]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Overlay, OverlayQuota};

/// A directory with the workspace `ws` and its overlay's layer.
pub(crate) struct World {
    pub(crate) home: TempDir,
    pub(crate) overlay: Overlay,
}

impl World {
    /// A workspace with these files; a path that ends in `/` is a directory.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        for (path, text) in files {
            let to = workspace.join(path);
            if path.ends_with('/') {
                std::fs::create_dir_all(to).unwrap();
            } else {
                std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                std::fs::write(to, text).unwrap();
            }
        }
        let overlay = Self::open(home.path(), OverlayQuota::default());
        let world = Self { home, overlay };
        world.tick();
        world
    }

    /// Opens the overlay below a home.
    pub(crate) fn open(home: &Path, quota: OverlayQuota) -> Overlay {
        loop {
            match Overlay::open(home.join("ws"), home.join("layer"), quota) {
                Ok(overlay) => return overlay,
                // A child of another test may have its lock until it runs git.
                Err(error) if error.source.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// As the next process finds it.
    pub(crate) fn restarted(self) -> Self {
        let Self { home, overlay } = self;
        drop(overlay);
        let overlay = Self::open(home.path(), OverlayQuota::default());
        Self { home, overlay }
    }

    /// Waits until what happened before is earlier than what happens from now on, for the overlay's
    /// clock too, which goes in steps.
    pub(crate) fn tick(&self) {
        let probe = self.home.path().join("probe");
        std::fs::write(&probe, "x").unwrap();
        let meta = std::fs::metadata(&probe).unwrap();
        let now = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
            (now.tv_sec, now.tv_nsec)
        };
        while now() <= (meta.ctime(), meta.ctime_nsec()) {
            std::thread::yield_now();
        }
    }

    pub(crate) fn ws(&self) -> PathBuf {
        self.home.path().join("ws")
    }
}

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Numbers that differ from the first on, also between neighbouring seeds.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}
