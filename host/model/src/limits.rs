//! Bounds on the memory and time that a peer or a file can use in this crate.

use std::time::Duration;

/// The most bytes of one streamed response, including framing. An answer of 128,000 tokens, each in an event
/// of 100 bytes or more, has 13 to 40 MB.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// The most bytes of one server-sent event. Larger than [`MAX_ARGUMENT_BYTES`] with JSON escapes, because
/// some servers send a whole tool call in one event.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// The most bytes of an answer's text, without reasoning: several times the largest output limit of any
/// provider.
pub const MAX_TEXT_BYTES: usize = 8 << 20;

/// The most bytes of an answer's reasoning that are kept to be sent back: 128,000 tokens have about 600 KB.
/// If an answer has more, none of it is kept.
pub const MAX_REASONING_BYTES: usize = 2 << 20;

/// The most parts of an answer's reasoning, because each streamed piece is compared with the parts.
pub const MAX_REASONING_PARTS: usize = 512;

/// The most bytes of one call's arguments. A tool that writes a file gets the whole file as an argument.
pub const MAX_ARGUMENT_BYTES: usize = 2 << 20;

/// The most bytes of one image: 5 MB in base64, the smallest limit among providers with image support.
pub const MAX_IMAGE_BYTES: usize = 3_750_000;

/// The most tool calls in one answer. Real answers have a few; an endless list of empty calls would cost the
/// server nothing, and the host work for each.
pub const MAX_TOOL_CALLS: usize = 128;

/// The most bytes of a tool's name or a call's id. Providers allow 64; some servers send longer ids.
pub const MAX_NAME_BYTES: usize = 256;

/// The most bytes that are read of an error's body; fewer are shown.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// The most attempts of one call, including the first. With the delays below, the last one begins about 15 s
/// after the first failed, unless the provider requests longer waits.
pub const MAX_ATTEMPTS: u32 = 5;

/// The delay before the first retry. It doubles each time, and a random time of up to the same length is
/// added.
pub const RETRY_MIN_DELAY: Duration = Duration::from_millis(500);

/// Longest delay that this crate chooses by itself, without a `Retry-After`.
pub const RETRY_MAX_DELAY: Duration = Duration::from_secs(20);

/// The longest delay that a `Retry-After` may request. With a longer one the call fails at once, because such
/// a quota does not return within a run.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// The time limit of setting up a connection, including TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The most output tokens that are requested of Anthropic by default. The API requires a number, and every
/// current model accepts this one.
pub const ANTHROPIC_MAX_OUTPUT_TOKENS: u64 = 8192;

/// The most bytes of a key. Keys have 30 to 200 characters, and some gateways use a JWT.
pub const MAX_KEY_BYTES: usize = 8 << 10;

/// The most bytes of a transcript. A recording of a long run has some hundred kilobytes.
pub const MAX_TRANSCRIPT_BYTES: usize = 16 << 20;

/// The time to wait for the usage and the end of the stream after the answer is complete. Servers send both
/// at once, or never.
pub const AFTER_FINISH_WAIT: Duration = Duration::from_secs(5);
