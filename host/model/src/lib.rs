//! Chat models behind one trait, [`ChatModel`], which is all that the agent loop knows of a model. It has
//! three implementations:
//!
//! - [`WireModel`]: chat completions of OpenAI and of every server with the same wire (Ollama, vLLM,
//!   llama.cpp, OpenRouter), and Anthropic's messages API with prompt caching;
//! - [`ScriptedModel`]: plays a transcript (see [`scripted`] for the format) and fails loudly on a request
//!   that differs from the transcript;
//! - [`RecordingModel`]: wraps another model and writes such a transcript.
//!
//! [`ModelRegistry`] maps the names that people write (for example `main`, `sonnet`, `Compaction`, `strong`) to
//! configured models.
//!
//! Promises of this crate:
//!
//! - A peer is hostile until checked: every buffer that a peer can fill has a named bound in [`limits`], and
//!   a peer's texts are escaped before they enter an error.
//! - A key is held in a secret type, is sent only to the configured base URL (redirects are not followed,
//!   proxies are not used), and is in no error, log line or `Debug` output.
//! - A request whose history grew is serialised with the same leading bytes as the one before, so that the
//!   provider's prompt cache matches.
//! - A call is retried until its answer has begun. An answer that breaks off later is requested again only if
//!   no text was passed on, or if the caller can withdraw the text.
//! - A model's reasoning is sent back to that model alone, unchanged.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod config;
mod error;
mod image;
mod key;
pub mod limits;
mod model;
mod reasoning;
mod registry;
mod roles;
pub mod scripted;
mod text;
mod types;
mod wire;

pub use config::{ConfigError, ModelConfig, ModelProvider};
pub use error::{ModelError, TimeoutPhase};
pub use image::{Image, ImageError};
pub use key::{KeyError, KeySource};
pub use model::{CallContext, ChatModel, ModelTimeouts, StreamEvent};
pub use reasoning::Reasoning;
pub use registry::{Env, ModelRegistry, ModelResolveError, ResolvedModel, RoleAssignment};
pub use roles::{ALIASES, ModelRole, RoleAlias, RoleTable};
pub use scripted::{
    Recording, RecordingError, RecordingModel, ScriptError, ScriptMismatch, ScriptedModel,
    Transcript, UnplayedTurns,
};
pub use types::{
    ChatMessage, ChatRequest, Effort, ModelReply, Sampling, StopReason, TokenUsage, ToolCall,
    ToolChoice, ToolResult, ToolSpec,
};
pub use wire::{
    EndpointError, MaxTokensField, RetryPolicy, WireModel, http_client, http_client_builder,
};
