//! Loads compiled code. No other module turns bytes into code that runs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::component::in_place::SMALLEST_PAGE;

/// Machine code of a component that comes with the program.
#[derive(Debug, Clone, Copy)]
pub enum StockCode {
    /// The output of [`belljar_engine::pack_code`]: half as large as the code, and unpacked by each process
    /// that uses it.
    Packed(&'static [u8]),
    /// Executable code, aligned to a page. The first sandbox of a process that loads it executes it in
    /// place; code not aligned does not load.
    InPlace(&'static [u8]),
}

/// Machine code from a trusted source: the compiler of the host, in the current process or in its child; an
/// entry of the cache that this host wrote; or the program itself.
pub(crate) struct CompiledArtifact(Cow<'static, [u8]>);

impl CompiledArtifact {
    /// Wraps the output of the compiler or of the cache. Nothing else may be passed.
    pub(crate) fn from_trusted(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }

    /// Wraps code that comes with the program; `None`: malformed.
    pub(crate) fn from_stock(code: StockCode) -> Option<Self> {
        match code {
            StockCode::Packed(bytes) => belljar_engine::unpack_code(bytes).map(Self::from_trusted),
            StockCode::InPlace(bytes) => {
                let fits = bytes.as_ptr().addr().is_multiple_of(SMALLEST_PAGE);
                (fits && !bytes.is_empty()).then_some(Self(Cow::Borrowed(bytes)))
            }
        }
    }

    /// The code, for storing it in the cache.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the code, and uses this value up.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_owned()
    }

    /// Loads the code into an engine. The engine copies the code, so later changes on disk have no effect;
    /// code that is part of the program stays where it is.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub(crate) fn load_into(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` requires bytes from `Engine::precompile_component`, and cannot
        // check them: other code would run with all rights of this process. An `CompiledArtifact` is the
        // compiler's output, a cache entry with a keyed digest by which this host proves that it
        // wrote the entry after compiling, or part of the program from build time
        // (`Sandbox::know_code`). So safety rests on three facts. First, the compiler child is
        // honest: an attacker who controls the child through a stranger's component chooses the
        // code that runs here, and wall and limits only bound the child's other effects. Second,
        // only this host has the cache's key. Third, `trusted` has no other callers. wasmtime
        // itself checks only that version and settings fit.
        match &self.0 {
            Cow::Borrowed(bytes) if IN_PLACE.mark_in_use(bytes) => {
                let memory = NonNull::from(*bytes);
                // SAFETY: `deserialize_raw` also requires memory that lives as long as the component and is
                // never written: the memory is `'static`, borrowed as read-only, and page-aligned.
                let loaded = unsafe { Component::deserialize_raw(engine, memory) };
                if loaded.is_err() {
                    IN_PLACE.give_back(bytes);
                }
                loaded
            }
            bytes => unsafe { Component::deserialize(engine, bytes) },
        }
    }
}

/// The code the current process executes in place. A piece of code serves one component only: a second load
/// in the same process uses a copy, even after the first is dropped.
static IN_PLACE: InUse = InUse(Mutex::new(BTreeSet::new()));

/// The addresses of the code that was loaded in place.
struct InUse(Mutex<BTreeSet<usize>>);

impl InUse {
    fn mark_in_use(&self, code: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(code.as_ptr().addr())
    }

    fn give_back(&self, code: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&code.as_ptr().addr());
    }
}
