//! Loading compiled code: the one place where bytes become code that runs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::component::in_place::SMALLEST_PAGE;

/// Machine code of a component that is a part of the program.
#[derive(Debug, Clone, Copy)]
pub enum StockCode {
    /// As [`belljar_engine::pack`] gives it: half as large, and unpacked in each process.
    Packed(&'static [u8]),
    /// As it runs: it begins on a page and is executed where it lies, by the first sandbox of a
    /// process that loads it. What begins elsewhere does not load.
    InPlace(&'static [u8]),
}

/// Machine code that this host's compiler made, in this process or in its child, that the cache
/// vouches for, or that is a part of the program. Nothing else makes one.
pub(crate) struct Artifact(Cow<'static, [u8]>);

impl Artifact {
    /// Takes what the compiler gave, or the cache: nothing else may call this.
    pub(crate) fn trusted(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }

    /// Takes what the program brings along; `None` = it is not what it should be.
    pub(crate) fn stock(code: StockCode) -> Option<Self> {
        match code {
            StockCode::Packed(bytes) => belljar_engine::unpack(bytes).map(Self::trusted),
            StockCode::InPlace(bytes) => {
                let fits = bytes.as_ptr().addr().is_multiple_of(SMALLEST_PAGE);
                (fits && !bytes.is_empty()).then_some(Self(Cow::Borrowed(bytes)))
            }
        }
    }

    /// The bytes, for the cache.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes themselves.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0.into_owned()
    }

    /// Loads it into an engine. The bytes are copied, so nothing on disk can change them
    /// afterwards; those that are a part of the program stay where they are.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` asks for bytes that `Engine::precompile_component` made, and
        // cannot tell: code of any other origin would run with all rights of this process. An
        // `Artifact` is what the compiler gave, a cache entry whose keyed digest says that this host
        // wrote it after compiling, or a part of the program, made when that was built
        // (`Sandbox::know_code`). So this rests on three things: the compiler child
        // is honest (whoever takes it over while it reads a stranger's component chooses the
        // code that runs here; its wall and limits keep it from everything but this answer), the
        // cache's key is known to this host alone, and `trusted` has no other callers. wasmtime
        // itself checks that version and settings fit, and no more.
        match &self.0 {
            Cow::Borrowed(bytes) if IN_PLACE.take(bytes) => {
                let memory = NonNull::from(*bytes);
                // SAFETY: besides, `deserialize_raw` asks for memory that lives as long as the
                // component and is never written: it is `'static`, borrowed as read-only, and begins
                // on a page.
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

/// Code that runs where it lies. One place can be one component only, so whoever loads it again in
/// the same process gets a copy, also when the first is gone.
static IN_PLACE: InUse = InUse(Mutex::new(BTreeSet::new()));

/// The addresses of code that was loaded in place.
struct InUse(Mutex<BTreeSet<usize>>);

impl InUse {
    fn take(&self, code: &[u8]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(code.as_ptr().addr())
    }

    fn give_back(&self, code: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&code.as_ptr().addr());
    }
}
