//! The configuration of a model, and its conversion to a [`ChatModel`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderName};
use url::Url;

use crate::key::{KeyError, KeySource};
use crate::limits::MAX_TRANSCRIPT_BYTES;
use crate::scripted::{ScriptError, ScriptedModel};
use crate::wire::{
    Endpoint, EndpointError, MaxTokensField, RequestSettings, WireDialect, WireModel,
};
use crate::{ChatModel, Effort};

/// The address of OpenAI's own API.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The address of Anthropic's own API.
const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com/v1";

/// The version of Anthropic's API in requests.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The configuration of one model: where it is and how requests are made.
///
/// Differs from `ModelSetting` of the crate `definition`, which is the table `[models.NAME]` as written in a
/// file: `definition` has no HTTP client, and this crate reads no settings.
///
/// `Debug` shows neither keys nor header values.
#[derive(Clone)]
pub struct ModelConfig {
    /// The kind of API.
    pub provider: ModelProvider,
    /// The base URL of the API, for example `http://127.0.0.1:8080/v1`. Absent: the provider's own. For
    /// `anthropic` a missing `/v1` at its end is added.
    pub base_url: Option<Url>,
    /// The model's name at the provider, sent unchanged; for `scripted` the path of a transcript.
    pub model: String,
    /// Where the key comes from. Absent: no key is sent.
    pub key: KeySource,
    /// The most output tokens of one answer, unless a request has its own number. Absent: the server decides
    /// (`anthropic`: [`crate::limits::ANTHROPIC_MAX_OUTPUT_TOKENS`]).
    pub max_output_tokens: Option<u64>,
    /// The tokens that a request and its answer may have together, as the provider states. Absent: unknown,
    /// and requests are not shortened to fit. Not sent to the server.
    pub context_tokens: Option<u64>,
    /// True if subagents of this model get small prompts. Default: false. Not sent to the server.
    pub small: bool,
    /// True if the model reads images. Absent: true for Anthropic's and OpenAI's own APIs and for `scripted`,
    /// false for every other server.
    pub images: Option<bool>,
    /// The amount of reasoning, unless a request has its own. Absent: the server decides.
    pub effort: Option<Effort>,
    /// The sampling temperature, 0 to 2, unless a request has its own. Absent: the server decides.
    pub temperature: Option<f64>,
    /// Further headers of each request. They are treated as secrets and never shown.
    pub headers: BTreeMap<String, String>,
    /// True if a key or headers may be sent over plain http to another machine. Default: false.
    pub allow_insecure: bool,
    /// The field of a request that contains the output limit, for `openai`. Absent: `max_completion_tokens`
    /// for OpenAI's own API, otherwise `max_tokens`.
    pub max_tokens_field: Option<MaxTokensField>,
    /// True if a stream is requested with `stream_options`, so it reports its usage, for `openai`. Absent:
    /// true, until the server refuses that field by name.
    pub stream_options: Option<bool>,
    /// Further fields in the body of every request, known only to this server, for example
    /// `chat_template_kwargs` or `tool_choice` (left out of requests without tools). Fields that the client
    /// writes itself are errors. A request with a stranger's text gets none of them.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// Fields of a request that [`ModelConfig::extra_body`] cannot set, because they have a setting of their own
/// or belong to the conversation.
const RESERVED_FIELDS: [&str; 12] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "output_config",
    "reasoning_effort",
    "stream",
    "stream_options",
    "system",
    "temperature",
    "tools",
];

/// The kind of API of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ModelProvider {
    /// Chat completions, as offered by OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and others.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
    /// Plays a transcript file. Never chosen unless a configuration or a flag names it.
    Scripted,
}

impl ModelProvider {
    /// The name in a configuration and in model ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The reason why a configured model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The key is not usable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The address or a header is not accepted.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// `model` is empty.
    #[error("`model` is empty; give the model's name at the provider")]
    NoModelName,
    /// The temperature is outside of 0 to 2, the range that providers accept.
    #[error("`temperature` must be a number from 0 to 2")]
    Temperature,
    /// `extra_body` has a field that the client itself writes.
    #[error("`extra_body` cannot set `{field}`: the client writes that field itself")]
    ExtraBody {
        /// The field.
        field: &'static str,
    },
    /// The transcript file cannot be read.
    #[error("failed to read the transcript `{}`: {source}", path.display())]
    ReadTranscript {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The transcript file is not a transcript.
    #[error(transparent)]
    Transcript(#[from] ScriptError),
}

impl ModelConfig {
    /// A configuration with this provider and model, and every other field absent.
    #[must_use]
    pub fn new(provider: ModelProvider, model: impl Into<String>) -> Self {
        Self {
            provider,
            base_url: None,
            model: model.into(),
            key: KeySource::None,
            max_output_tokens: None,
            context_tokens: None,
            small: false,
            images: None,
            effort: None,
            temperature: None,
            headers: BTreeMap::new(),
            allow_insecure: false,
            max_tokens_field: None,
            stream_options: None,
            extra_body: serde_json::Map::new(),
        }
    }

    /// Builds the model: reads the key, through `env` or from its file, and for `scripted` the transcript;
    /// opens no connection. Remarks for the operator are added to `warnings`.
    ///
    /// # Errors
    /// [`ConfigError`], which never contains a key.
    pub fn build_model(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<dyn ChatModel>, ConfigError> {
        match self.provider {
            ModelProvider::OpenAi | ModelProvider::Anthropic => {
                Ok(Arc::new(self.build_wire(env, warnings)?))
            }
            ModelProvider::Scripted => Ok(Arc::new(self.build_scripted()?)),
        }
    }

    /// Builds a model that is reached over HTTP; otherwise like [`Self::build_model`].
    ///
    /// # Errors
    /// [`ConfigError`], also for `scripted`, which is not reached over HTTP.
    pub fn build_wire(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<WireModel, ConfigError> {
        if self.model.trim().is_empty() {
            return Err(ConfigError::NoModelName);
        }
        if !self.temperature.is_none_or(|value| (0.0..=2.0).contains(&value)) {
            return Err(ConfigError::Temperature);
        }
        let reserved = RESERVED_FIELDS.iter().find(|field| self.extra_body.contains_key(**field));
        if let Some(field) = reserved {
            return Err(ConfigError::ExtraBody { field });
        }
        let settings = RequestSettings {
            model: self.model.clone(),
            identity: String::new(),
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            effort: self.effort,
            extra: self.extra_body.clone(),
        };
        let key = self.key.load_key(env, warnings)?;
        let endpoint = |base: &Url, path: &[&str], header: HeaderName| {
            let key = key.map(|key| (header, key));
            Endpoint::new(base, path, key, &self.headers, self.allow_insecure)
        };
        match self.provider {
            ModelProvider::OpenAi => {
                let base = self.base_url_or(OPENAI_BASE_URL)?;
                let field = self.max_tokens_field.unwrap_or_else(|| default_field(&base));
                let endpoint = endpoint(&base, &["chat", "completions"], AUTHORIZATION)?;
                let images = self.images.unwrap_or_else(|| is_openai(&base));
                let model = WireModel::new(WireDialect::OpenAi(field), settings, endpoint);
                let options = self.stream_options.unwrap_or(true);
                Ok(model.with_images(images).with_stream_options(options))
            }
            ModelProvider::Anthropic => {
                let base = self.base_url_or(ANTHROPIC_BASE_URL)?;
                let versioned = base.path().trim_end_matches('/').ends_with("/v1");
                let path: &[&str] = if versioned { &["messages"] } else { &["v1", "messages"] };
                let endpoint = endpoint(&base, path, HeaderName::from_static("x-api-key"))?
                    .with_default_header("anthropic-version", ANTHROPIC_VERSION);
                let images = self.images.unwrap_or(true);
                Ok(WireModel::new(WireDialect::Anthropic, settings, endpoint).with_images(images))
            }
            ModelProvider::Scripted => {
                Err(EndpointError::BaseUrl("has no meaning for a scripted model").into())
            }
        }
    }

    /// Reads the transcript, and builds the scripted model.
    fn build_scripted(&self) -> Result<ScriptedModel, ConfigError> {
        use std::io::Read as _;
        let path = PathBuf::from(&self.model);
        let read = || {
            let mut text = String::new();
            let limit = u64::try_from(MAX_TRANSCRIPT_BYTES).unwrap_or(u64::MAX);
            // One byte more than allowed, so the size check sees an excess.
            std::fs::File::open(&path)?.take(limit + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        let text =
            read().map_err(|source| ConfigError::ReadTranscript { path: path.clone(), source })?;
        let model = ScriptedModel::from_yaml(&text, &path)?;
        Ok(match self.images {
            Some(images) => model.with_images(images),
            None => model,
        })
    }

    /// The configured base URL, or the default one.
    fn base_url_or(&self, default: &str) -> Result<Url, EndpointError> {
        match &self.base_url {
            Some(url) => Ok(url.clone()),
            None => Url::parse(default).map_err(|_| EndpointError::BaseUrl("is missing")),
        }
    }
}

fn default_field(base: &Url) -> MaxTokensField {
    if is_openai(base) { MaxTokensField::MaxCompletionTokens } else { MaxTokensField::MaxTokens }
}

fn is_openai(base: &Url) -> bool {
    base.host_str() == Some("api.openai.com")
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        let extra: Vec<&String> = self.extra_body.keys().collect();
        f.debug_struct("ModelConfig")
            .field("provider", &self.provider)
            .field("host", &self.base_url.as_ref().and_then(Url::host_str))
            .field("model", &self.model)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("effort", &self.effort)
            .field("temperature", &self.temperature)
            .field("headers", &headers)
            .field("allow_insecure", &self.allow_insecure)
            .field("extra_body", &extra)
            .finish_non_exhaustive()
    }
}
