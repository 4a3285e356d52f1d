//! Bounds on the memory and time that a peer or a file can use in this crate.

use std::time::Duration;

/// Most bytes of one streamed response, framing included. An answer of 128,000 tokens, each in a separate
/// event of 100 bytes and more, has 13 to 40 MB on the wire.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Most bytes of one server-sent event. Larger than [`MAX_ARGUMENT_BYTES`] escaped once more, because some
/// servers send a whole tool call in one event.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Most bytes of answer text kept, thinking not counted: several times what the largest output
/// limit of any provider can produce.
pub const MAX_TEXT_BYTES: usize = 8 << 20;

/// Most bytes of an answer's reasoning that are kept to be sent back: 128,000 tokens have about
/// 600 KB. Of an answer with more, none is kept.
pub const MAX_REASONING_BYTES: usize = 2 << 20;

/// Most parts of an answer's reasoning. A bound, because each streamed piece is searched for among the parts.
pub const MAX_REASONING_PARTS: usize = 512;

/// Most bytes of one call's arguments: a tool that writes a file gets the whole file there.
pub const MAX_ARGUMENT_BYTES: usize = 2 << 20;

/// Most bytes of one image: 5 MB in base64, the smallest limit among providers with image support.
pub const MAX_IMAGE_BYTES: usize = 3_750_000;

/// Most tool calls in one answer. Real answers ask for a handful; a loop of empty calls costs a
/// peer nothing and the host a guest each.
pub const MAX_TOOL_CALLS: usize = 128;

/// Most bytes of a tool name or call id. Providers allow 64; ids of some servers are longer.
pub const MAX_NAME_BYTES: usize = 256;

/// Most bytes read of an error's body; the shown part is shorter still.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Most attempts for one call, the first included. With the delays below, the last begins
/// about 15 s after the first failed, unless the provider asked for more.
pub const MAX_ATTEMPTS: u32 = 5;

/// Delay before the first retry; doubled each time, with up to as much again at random.
pub const RETRY_MIN_DELAY: Duration = Duration::from_millis(500);

/// Longest delay that this crate chooses by itself, without a `Retry-After`.
pub const RETRY_MAX_DELAY: Duration = Duration::from_secs(20);

/// Longest accepted delay of a `Retry-After`. With a longer delay the call fails at once, because such a
/// quota does not return within a run.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Time to set up a connection, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Most output tokens requested of Anthropic by default. A number, because the API requires one, and this
/// number, because every current model accepts it.
pub const ANTHROPIC_MAX_OUTPUT_TOKENS: u64 = 8192;

/// Most bytes of a key: keys have 30 to 200 characters, and some gateways use a JWT.
pub const MAX_KEY_BYTES: usize = 8 << 10;

/// Most bytes of a transcript. A recording of a long run has some hundred kilobytes.
pub const MAX_TRANSCRIPT_BYTES: usize = 16 << 20;

/// How long to wait for the usage and the end of the stream after the complete answer. Servers that send
/// these send them at once.
pub const AFTER_FINISH_WAIT: Duration = Duration::from_secs(5);
