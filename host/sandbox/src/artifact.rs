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

    /// Loads it into an engine. The bytes are copied, so nothing on disk can change them
    /// afterwards.
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` asks for bytes that `Engine::precompile_component` made. An
        // `Artifact` comes from the compiler directly, or from a cache entry whose keyed
        // digest says that this host wrote it after compiling. wasmtime itself checks that
        // version and settings fit.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
