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

/// How one model is reached.
///
/// Not `ModelSetting` of `definition`, the `[models.NAME]` table as it stands in a file: `definition` knows no
/// HTTP client, and this crate reads no settings.
///
/// `Debug` shows neither keys nor header values.
#[derive(Clone)]
pub struct ModelConfig {
    /// Which wire to speak.
    pub provider: ModelProvider,
    /// Base of the API, for example `http://127.0.0.1:8080/v1`. Absent: the provider's own. For `anthropic` a
    /// missing `/v1` at its end is added.
    pub base_url: Option<Url>,
    /// The model's name at the provider, sent as it is; for `scripted` the path of a
    /// transcript.
    pub model: String,
    /// Where the key comes from. Absent: no key is sent.
    pub key: KeySource,
    /// Most output tokens of one answer, unless a request says otherwise. Absent: the server
    /// decides (`anthropic`: [`crate::limits::ANTHROPIC_MAX_OUTPUT_TOKENS`]).
    pub max_output_tokens: Option<u64>,
    /// Tokens that a request and its answer may have together, as the provider states it.
    /// Absent: not known, and nothing is made to fit. Nothing is sent of it.
    pub context_tokens: Option<u64>,
    /// Whether subagents of this model are kept small. Default false. Nothing is sent of it.
    pub small: bool,
    /// Whether the model reads images. Absent: yes of Anthropic's and OpenAI's own API and of
    /// `scripted`, no of every other server.
    pub images: Option<bool>,
    /// How much to think, unless a request says otherwise. Absent: the server decides.
    pub effort: Option<Effort>,
    /// Sampling temperature, 0 to 2, unless a request says otherwise. Absent: the server
    /// decides.
    pub temperature: Option<f64>,
    /// More headers to send. They are treated as secrets: never shown.
    pub headers: BTreeMap<String, String>,
    /// Allows a key or headers to go over plain http to another machine. Default false.
    pub allow_insecure: bool,
    /// The field that carries the output limit on an `openai` wire. Absent:
    /// `max_completion_tokens` for OpenAI's own API, else `max_tokens`.
    pub max_tokens_field: Option<MaxTokensField>,
    /// Whether a stream is asked for its usage by `stream_options`, on an `openai` wire. Absent: yes,
    /// until the server refuses that field by name.
    pub stream_options: Option<bool>,
    /// More fields for the body of every request, known only to this server, for example
    /// `chat_template_kwargs` or `tool_choice` (left out of requests without tools). Fields that the client
    /// writes itself are errors. A request of a stranger's words has none of them.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// Fields of a request that have a separate setting or belong to the conversation.
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

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ModelProvider {
    /// Chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter and others.
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
    /// A model of `provider` called `model`, everything else absent.
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

    /// Makes the model. Reads the key, through `env` or from its file, and for `scripted` the transcript;
    /// opens no connection. Remarks for the operator are added to `warnings`.
    ///
    /// # Errors
    ///
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

    /// Makes a model that is reached over HTTP; as [`Self::build_model`] otherwise.
    ///
    /// # Errors
    ///
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

    fn build_scripted(&self) -> Result<ScriptedModel, ConfigError> {
        use std::io::Read as _;
        let path = PathBuf::from(&self.model);
        let read = || {
            let mut text = String::new();
            let limit = u64::try_from(MAX_TRANSCRIPT_BYTES).unwrap_or(u64::MAX);
            // One byte more than allowed, so that the size check sees an excess.
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
