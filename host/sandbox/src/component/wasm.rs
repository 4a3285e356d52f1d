//! The bytes of a component, and the digest that identifies it.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use belljar_overlay::Digest;

use crate::component::command_form::CommandForm;

/// The bytes of a component. Clones share the bytes; the digest is computed once, on first use.
#[derive(Clone)]
pub struct Wasm(Arc<WasmInner>);

struct WasmInner {
    bytes: WasmSource,
    digest: OnceLock<Digest>,
    /// A name to show to people, for example `file_read`.
    name: OnceLock<String>,
    /// If the component is a command: how a call's arguments become a command line.
    form: OnceLock<Arc<CommandForm>>,
}

enum WasmSource {
    Here(Cow<'static, [u8]>),
    /// Bytes packed in the program, with the function that unpacks them, and the unpacked bytes after the
    /// first use.
    Packed(&'static [u8], Unpack, OnceLock<Vec<u8>>),
    /// The bytes would be in the file, which is missing.
    Missing(&'static str),
}

/// Unpacks a component's bytes; `None`: the packed bytes are malformed.
type Unpack = fn(&[u8]) -> Option<Vec<u8>>;

impl Wasm {
    /// A component whose bytes are embedded in the program.
    pub fn from_static(bytes: &'static [u8]) -> Self {
        Self::from_source(WasmSource::Here(Cow::Borrowed(bytes)), OnceLock::new())
    }

    /// A component packed in the program: the packed bytes, the function that unpacks them, and the digest
    /// from build time. A process that has the machine code never unpacks the bytes.
    pub fn from_packed(
        bytes: &'static [u8],
        unpack: fn(&[u8]) -> Option<Vec<u8>>,
        digest: Digest,
    ) -> Self {
        Self::from_source(
            WasmSource::Packed(bytes, unpack, OnceLock::new()),
            OnceLock::from(digest),
        )
    }

    /// A component of the program whose installed file is missing or not trustworthy. It loads only if its
    /// machine code is part of the program; otherwise the error names `file`.
    pub fn from_missing(file: &'static str, digest: Digest) -> Self {
        Self::from_source(WasmSource::Missing(file), OnceLock::from(digest))
    }

    /// A component whose bytes are in memory.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self::from_source(WasmSource::Here(Cow::Owned(bytes)), OnceLock::new())
    }

    /// The bytes of the component. Empty, an invalid component, for [`Wasm::from_missing`], and if the
    /// packed bytes of [`Wasm::from_packed`] are malformed.
    pub fn bytes(&self) -> &[u8] {
        match &self.0.bytes {
            WasmSource::Here(bytes) => bytes,
            WasmSource::Packed(packed, unpack, whole) => {
                whole.get_or_init(|| unpack(packed).unwrap_or_default())
            }
            WasmSource::Missing(_) => &[],
        }
    }

    /// The name of the file that is missing, if the component was made by [`Wasm::from_missing`].
    pub(crate) fn missing_file(&self) -> Option<&'static str> {
        match self.0.bytes {
            WasmSource::Missing(file) => Some(file),
            WasmSource::Here(_) | WasmSource::Packed(..) => None,
        }
    }

    /// The digest that identifies the component.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| Digest::hash_bytes(self.bytes()))
    }

    /// Sets the name to show to people, for all clones of the value. The first name stays.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        let _ = self.0.name.set(name.into());
        self
    }

    /// The name to show to people, if set. Foreign text: escape before display.
    pub fn name(&self) -> Option<&str> {
        self.0.name.get().map(String::as_str)
    }

    /// Sets how a command's arguments become a command line, for all clones of the value. The first form
    /// stays. Default: [`CommandForm::default`].
    #[must_use]
    pub fn with_form(self, form: CommandForm) -> Self {
        let _ = self.0.form.set(Arc::new(form));
        self
    }

    pub(crate) fn command_form(&self) -> Arc<CommandForm> {
        // One value for all jars, because every jar needs it.
        static DEFAULT: LazyLock<Arc<CommandForm>> = LazyLock::new(Arc::default);
        Arc::clone(self.0.form.get().unwrap_or(&DEFAULT))
    }

    fn from_source(bytes: WasmSource, digest: OnceLock<Digest>) -> Self {
        Self(Arc::new(WasmInner { bytes, digest, name: OnceLock::new(), form: OnceLock::new() }))
    }
}

/// Displays lower-case hexadecimal, 64 characters.
impl fmt::Debug for Wasm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.bytes {
            WasmSource::Here(bytes) => write!(f, "Wasm({} bytes)", bytes.len()),
            WasmSource::Packed(..) | WasmSource::Missing(_) => {
                write!(f, "Wasm({:?})", self.digest())
            }
        }
    }
}
