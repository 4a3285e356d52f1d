//! Loading compiled code: the one place where bytes become code that runs.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Machine code that this host's compiler made, in this process or in its child, or that the
/// cache vouches for. Only those two make one.
pub(crate) struct Artifact(Vec<u8>);

impl Artifact {
    /// Takes what the compiler gave, or the cache: nothing else may call this.
    pub(crate) fn trusted(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes, for the cache.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes themselves.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Loads it into an engine. The bytes are copied, so nothing on disk can change them
    /// afterwards.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` asks for bytes that `Engine::precompile_component` made, and
        // cannot tell: code of any other origin would run with all rights of this process. An
        // `Artifact` is what the compiler gave, or a cache entry whose keyed digest says that
        // this host wrote it after compiling. So this rests on three things: the compiler child
        // is honest (whoever takes it over while it reads a stranger's component chooses the
        // code that runs here; its wall and limits keep it from everything but this answer), the
        // cache's key is known to this host alone, and `trusted` has no other callers. wasmtime
        // itself checks that version and settings fit, and no more.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
