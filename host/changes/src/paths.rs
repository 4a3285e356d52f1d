//! Paths as JSON has them: text, or bytes where they are no text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes(Vec<u8>),
}

impl Form {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    fn path(self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

/// A path that is written so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AnyPath(pub(crate) PathBuf);

impl Serialize for AnyPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for AnyPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Form::deserialize(from).map(|form| Self(form.path()))
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    Form::of(path).serialize(to)
}

/// For `serialize_with`.
pub(crate) fn some<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Form::of).serialize(to)
}

/// For `serialize_with`.
pub(crate) fn all<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| Form::of(path)))
}

/// For `serialize_with`: objects with a path and what is said of it.
pub(crate) fn each<S: Serializer, T: Serialize>(
    told: &[(PathBuf, T)],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Told<'a, T> {
        path: Form,
        why: &'a T,
    }
    to.collect_seq(told.iter().map(|(path, why)| Told { path: Form::of(path), why }))
}
