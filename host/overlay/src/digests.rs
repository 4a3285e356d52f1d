//! Makes the digests of copied files in the background, so that a guest that writes does not wait.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::bases::{self, BaseTexts};
use super::record::LowerState;

/// The most files that wait for a digest; each is open. For a further file, the writer waits.
const MOST: usize = 64;
/// The most bytes of a file that gets a digest. A larger file is recognized by size and times only.
const LARGEST: u64 = 256 << 20;
/// The bytes that are read at a time.
const STEP: usize = 256 << 10;

/// The files that wait for a digest, and the finished digests.
#[derive(Debug)]
pub(super) struct DigestQueue {
    shared: Arc<DigestShared>,
}

#[derive(Debug)]
struct DigestShared {
    state: Mutex<DigestState>,
    idle: Condvar,
    bases: Arc<BaseTexts>,
}

#[derive(Debug, Default)]
struct DigestState {
    /// The files whose digest is still to be computed.
    waiting: VecDeque<(LowerState, File)>,
    /// The finished digests, which are not in the index yet.
    made: Vec<(LowerState, [u8; 32])>,
    /// Whether a thread works on the queue; it ends when no file waits.
    works: bool,
}

impl DigestQueue {
    pub(super) fn new(bases: Arc<BaseTexts>) -> Self {
        let (state, idle) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(DigestShared { state, idle, bases }) }
    }

    /// Queues an open file for a digest by the background thread, which is started if none runs. A file above
    /// [`LARGEST`] gets no digest; if the queue is full, the digest is made at once. `seen` is the state of the
    /// file when opened.
    pub(super) fn add_file(&self, seen: LowerState, file: File) {
        if seen.size > LARGEST {
            return;
        }
        let mut state = self.shared.lock_state();
        if state.waiting.len() >= MOST {
            drop(state);
            return self.shared.make_digest(seen, &file);
        }
        state.waiting.push_back((seen, file));
        if !state.works {
            state.works = true;
            drop(state);
            let shared = Arc::clone(&self.shared);
            let work = move || shared.run_worker();
            let thread = std::thread::Builder::new().name("overlay-digests".to_owned());
            #[expect(
                clippy::disallowed_methods,
                reason = "one for an overlay, with a queue of its own; a tree is changed without a runtime"
            )]
            let begun = thread.spawn(work);
            if begun.is_err() {
                self.shared.run_worker();
            }
        }
    }

    /// Returns the digests finished since the last call.
    pub(super) fn drain_digests(&self) -> Vec<(LowerState, [u8; 32])> {
        std::mem::take(&mut self.shared.lock_state().made)
    }

    /// Waits until all files of the queue have digests.
    pub(super) fn wait_idle(&self) {
        let mut state = self.shared.lock_state();
        while state.works {
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for DigestQueue {
    /// Empties the queue, so that the thread ends after its present file.
    fn drop(&mut self) {
        self.shared.lock_state().waiting.clear();
    }
}

impl DigestShared {
    fn lock_state(&self) -> MutexGuard<'_, DigestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes the digests of the waiting files, until no file waits.
    fn run_worker(&self) {
        loop {
            let mut state = self.lock_state();
            let Some((seen, file)) = state.waiting.pop_front() else {
                state.works = false;
                self.idle.notify_all();
                return;
            };
            drop(state);
            self.make_digest(seen, &file);
        }
    }

    fn make_digest(&self, seen: LowerState, file: &File) {
        if let Some(digest) = digest_file(&seen, file, &self.bases) {
            self.lock_state().made.push((seen, digest));
        }
    }
}

/// The SHA-256 of a file; `None`: the file is too large, or changed meanwhile. A text is also stored, for
/// merges.
pub(super) fn digest_file(seen: &LowerState, file: &File, bases: &BaseTexts) -> Option<[u8; 32]> {
    let same = || rustix::fs::fstat(file).is_ok_and(|stat| LowerState::from_stat(&stat) == *seen);
    if seen.size > LARGEST || !same() {
        return None;
    }
    let mut sum = Sha256::new();
    let mut buffer = vec![0; STEP];
    let mut at = 0;
    let mut base = Vec::new();
    while at <= seen.size {
        match file.read_at(&mut buffer, at) {
            Ok(0) => break,
            Ok(read) => {
                let part = buffer.get(..read)?;
                sum.update(part);
                if seen.size <= bases::LARGEST {
                    base.extend_from_slice(part);
                }
                at += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let digest = same().then(|| sum.finalize().into())?;
    if seen.size <= bases::LARGEST {
        bases.store_base(digest, &base);
    }
    Some(digest)
}
