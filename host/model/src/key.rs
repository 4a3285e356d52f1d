//! API keys of models: their sources, and a type that never shows its key.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use crate::limits::MAX_KEY_BYTES;
use crate::text::quote_text;

/// The text that replaces a key.
pub(crate) const REDACTED: &str = "[key]";

/// The fewest bytes of a key for which texts are searched, because a shorter key would be found by chance.
const MIN_BYTES: usize = 8;

/// The most bytes of a key that may be a placeholder if it consists of words. Providers' keys are longer, and
/// contain digits.
const MAX_WORDS: usize = 24;

/// The source of a model's key: `{ env = "NAME" }`, `{ file = "/path" }`, or `"none"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// No key is sent; the default.
    #[default]
    None,
    /// An environment variable, for example `OPENAI_API_KEY`.
    Env(String),
    /// A file that contains only the key.
    File(PathBuf),
}

/// The reason why a model's key is missing or unusable.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The configured name of an environment variable has an impossible form; it may be a key pasted by
    /// mistake.
    #[error("`key.env` must be the name of an environment variable, not the key itself")]
    EnvName,
    /// The variable is not set, or empty.
    #[error("the environment variable `{name}` is not set; it should hold the key")]
    EnvUnset {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    #[error("failed to read the key file `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not a key file.
    #[error("the key file `{}` {reason}", path.display())]
    FileContent {
        /// The file.
        path: PathBuf,
        /// The fault of the key.
        reason: &'static str,
    },
}

/// A key. `Debug` does not show it, and its memory is overwritten on drop.
pub(crate) struct ApiKey(SecretString);

impl ApiKey {
    pub(crate) fn new(key: String) -> Self {
        Self(SecretString::from(key))
    }

    /// The value of the header `name` that contains the key; `None` if the key has letters that no header may
    /// contain.
    pub(crate) fn header_value(&self, name: &HeaderName) -> Option<HeaderValue> {
        let key = self.0.expose_secret();
        let mut value = if *name == AUTHORIZATION {
            HeaderValue::from_str(&format!("Bearer {key}")).ok()?
        } else {
            HeaderValue::from_str(key).ok()?
        };
        value.set_sensitive(true);
        Some(value)
    }

    /// The text of an error or log line with every occurrence of the key replaced. If the text was cut and
    /// ends in the beginning of the key, that ending is replaced too.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let key = self.0.expose_secret();
        if key.len() < MIN_BYTES {
            return Cow::Borrowed(text);
        }
        let mut whole = Cow::Borrowed(text);
        if text.contains(key) {
            whole = Cow::Owned(text.replace(key, REDACTED));
        }
        if let Some(cut) = whole.strip_suffix('…') {
            let begun = begun_key_len(cut, key);
            if begun >= MIN_BYTES / 2 {
                let kept = cut.get(..cut.len() - begun).unwrap_or_default();
                whole = Cow::Owned(format!("{kept}{REDACTED}…"));
            }
        }
        whole
    }

    /// INV-473: the key for which answers are searched; `None` for a placeholder, which is no secret and may
    /// be a word of the answer.
    pub(crate) fn in_answers(&self) -> Option<&str> {
        Some(self.0.expose_secret()).filter(|key| why_no_secret(key).is_none())
    }
}

/// The number of bytes at the end of `text` that are the beginning of `key`, but not the whole key.
pub(crate) fn begun_key_len(text: &str, key: &str) -> usize {
    let most = key.len().saturating_sub(1).min(text.len());
    let begins = |count: &usize| {
        let end = text.as_bytes().get(text.len() - count..);
        end.is_some() && end == key.as_bytes().get(..*count)
    };
    (1..=most).rev().find(begins).unwrap_or_default()
}

/// The reason why a key is not treated as a secret: it is too short, or a placeholder such as
/// `no-key-required`. `None` if it is a secret.
fn why_no_secret(key: &str) -> Option<&'static str> {
    if key.len() < MIN_BYTES {
        return Some("has fewer than 8 bytes");
    }
    let mut chars = key.chars();
    let first = chars.next();
    if chars.all(|c| Some(c) == first) {
        return Some("is one character again and again");
    }
    let word = |word: &str| {
        let mut tail = word.chars().skip(1);
        word.chars().all(|c| c.is_ascii_uppercase())
            || (word.starts_with(|c: char| c.is_ascii_alphabetic())
                && tail.all(|c| c.is_ascii_lowercase()))
    };
    let words = key.split(['-', '_', '.', ' ', '/', ':']).filter(|word| !word.is_empty());
    (key.len() <= MAX_WORDS && words.into_iter().all(word)).then_some("is made of words alone")
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl KeySource {
    /// A remark for the operator: the key is a placeholder or too short for a secret, so answers are not
    /// searched for it. `None` if there is no key, or nothing to remark.
    pub fn key_remark(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let key = self.load_key(env, &mut Vec::new()).ok()??;
        let why = why_no_secret(key.0.expose_secret())?;
        Some(format!(
            "its key {why}, so answers are not searched for it; if the server needs no key, leave \
             `key` out"
        ))
    }

    /// Reads the key from its source. Remarks for the operator are added to `warnings`.
    pub(crate) fn load_key(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<ApiKey>, KeyError> {
        match self {
            Self::None => Ok(None),
            Self::Env(name) => from_env(name, env).map(Some),
            Self::File(path) => from_file(path, warnings).map(Some),
        }
    }
}

/// Reads the key from an environment variable.
fn from_env(name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<ApiKey, KeyError> {
    // If the name may be a key pasted by mistake, the error does not repeat it. Names are upper case by
    // custom, keys hardly ever.
    let is_name = name.len() <= 64
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        return Err(KeyError::EnvName);
    }
    match env(name).map(|key| key.trim().to_owned()) {
        Some(key) if !key.is_empty() => Ok(ApiKey::new(key)),
        Some(_) | None => Err(KeyError::EnvUnset { name: name.to_owned() }),
    }
}

/// Reads the key from a file, which must be a regular file with a single word; warns if other users can read
/// it.
fn from_file(path: &Path, warnings: &mut Vec<String>) -> Result<ApiKey, KeyError> {
    let io = |source| KeyError::File { path: path.to_owned(), source };
    let content = |reason| KeyError::FileContent { path: path.to_owned(), reason };
    // Checked before opening, because opening a FIFO would wait for its writer.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(content("is not a regular file"));
    }
    let file = File::open(path).map_err(io)?;
    if is_public(&file.metadata().map_err(io)?) {
        let path = quote_text(&path.to_string_lossy());
        warnings.push(format!(
            "other users can read or change the key file `{path}`; run `chmod 600` on it"
        ));
    }
    let mut key = String::new();
    let limit = u64::try_from(MAX_KEY_BYTES).unwrap_or(u64::MAX);
    file.take(limit + 1).read_to_string(&mut key).map_err(io)?;
    if key.len() > MAX_KEY_BYTES {
        return Err(content("is too large for a key"));
    }
    match key.trim() {
        "" => Err(content("is empty")),
        key if key.contains(char::is_whitespace) => Err(content("holds more than one word")),
        key => Ok(ApiKey::new(key.to_owned())),
    }
}

#[cfg(unix)]
fn is_public(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_public(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(source: &KeySource) -> (Result<Option<ApiKey>, KeyError>, Vec<String>) {
        let mut warnings = Vec::new();
        let env = |name: &str| (name == "GOOD").then(|| " sk-hunter2\n".to_owned());
        (source.load_key(&env, &mut warnings), warnings)
    }

    #[test]
    fn a_key_is_read_from_the_environment_and_trimmed() {
        let (key, _) = load(&KeySource::Env("GOOD".into()));
        assert_eq!(key.unwrap().unwrap().0.expose_secret(), "sk-hunter2");
        assert!(matches!(load(&KeySource::Env("OTHER".into())).0, Err(KeyError::EnvUnset { .. })));
    }

    #[test]
    fn a_key_written_into_the_configuration_is_refused_and_not_repeated() {
        for source in [KeySource::Env("sk-hunter2".into()), KeySource::Env("hunter2".into())] {
            let error = load(&source).0.unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_that_others_can_read_is_used_with_a_warning() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "sk-hunter2\n").unwrap();
        let source = KeySource::File(file.path().to_owned());
        for (mode, expected) in [(0o600, 0), (0o640, 1), (0o602, 1)] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let (key, warnings) = load(&source);
            assert_eq!(key.unwrap().unwrap().0.expose_secret(), "sk-hunter2");
            assert_eq!(warnings.len(), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_file_is_refused_and_not_repeated() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let source = KeySource::File(file.path().to_owned());
        for content in ["", "\n", "two words", &"hunter2".repeat(10_000)] {
            std::fs::write(file.path(), content).unwrap();
            let error = load(&source).0.unwrap_err();
            assert!(matches!(error, KeyError::FileContent { .. }), "{error:?}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
        let folder = KeySource::File(std::env::temp_dir());
        assert!(matches!(load(&folder).0, Err(KeyError::FileContent { .. })));
        let missing = KeySource::File("/nonexistent/key".into());
        assert!(matches!(load(&missing).0, Err(KeyError::File { .. })));
    }

    #[test]
    fn a_short_key_or_one_of_words_is_no_secret_and_stays_in_answers() {
        for placeholder in [
            "none",
            "ollama",
            "dummy",
            "content",
            "sk-1234",
            "assistant",
            "localhost",
            "not-needed",
            "no-key-required",
            "sk-placeholder",
            "lm-studio",
            "YOUR_API_KEY",
            "Your-Api-Key",
            "xxxxxxxxxxxx",
            "00000000",
        ] {
            let key = ApiKey::new(placeholder.into());
            assert_eq!(key.in_answers(), None, "{placeholder}");
            let source = KeySource::Env("K".into());
            let remark = source.key_remark(&|_| Some(placeholder.to_owned())).unwrap();
            assert!(!remark.contains(placeholder), "{remark}");
        }
        for secret in [
            "sk-hunter2",
            "12345678",
            "gsk_a8Zq0PLm",
            "aGkPwQzRtYuIoPLm",
            "correct-horse-battery-staple",
        ] {
            assert_eq!(ApiKey::new(secret.into()).in_answers(), Some(secret));
            assert_eq!(KeySource::Env("K".into()).key_remark(&|_| Some(secret.to_owned())), None);
        }
        assert_eq!(KeySource::None.key_remark(&|_| None), None);
    }

    #[test]
    fn an_error_hides_every_key_that_no_word_is_by_chance() {
        assert_eq!(ApiKey::new("none".into()).redact("no reason: none"), "no reason: none");
        assert_eq!(ApiKey::new("not-needed".into()).redact("key not-needed"), "key [key]");
        let key = ApiKey::new("sk-hunter2".into());
        assert_eq!(key.redact("cut here: sk-hu…"), "cut here: [key]…");
        assert_eq!(key.redact("cut here: sk…"), "cut here: sk…");
    }

    #[test]
    fn a_text_that_repeats_the_key_is_cleaned() {
        let key = ApiKey::new("sk-hunter2".into());
        assert_eq!(key.redact("bad key sk-hunter2!"), "bad key [key]!");
        assert_eq!(format!("{key:?}"), "[key]");
    }
}
