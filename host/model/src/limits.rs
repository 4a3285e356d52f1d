//! Bounds on what a peer or a file can make this crate hold or do.

use std::time::Duration;

/// Most bytes of one streamed response, framing included. An answer of 128,000 tokens, each in
/// an event of its own of 100 bytes and more, takes 13 to 40 MB on the wire.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Most bytes of one server-sent event. Servers that send a whole tool call at once put its
/// arguments in one event, so this stands above [`MAX_ARGUMENT_BYTES`] escaped once more.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Most bytes of answer text kept, thinking not counted: several times what the largest output
/// limit of any provider can produce.
pub const MAX_TEXT_BYTES: usize = 8 << 20;

/// Most bytes of an answer's reasoning that are kept to be sent back: 128,000 tokens have about
/// 600 KB. Of an answer with more, none is kept.
pub const MAX_REASONING_BYTES: usize = 2 << 20;

/// Most parts of it; each piece that streams in is looked for among them.
pub const MAX_REASONING_PARTS: usize = 512;

/// Most bytes of one call's arguments: a tool that writes a file gets the whole file there.
pub const MAX_ARGUMENT_BYTES: usize = 2 << 20;

/// Most bytes of one image: 5 MB in base64, the least that a provider takes which takes images.
pub const MAX_IMAGE_BYTES: usize = 3_750_000;

/// Most tool calls in one answer. Real answers ask for a handful; a loop of empty calls costs a
/// peer nothing and the host a guest each.
pub const MAX_TOOL_CALLS: usize = 128;

/// Most bytes of a tool name or call id. Providers allow 64; ids of some servers are longer.
pub const MAX_NAME_BYTES: usize = 256;

/// Most bytes read of an error's body; what is shown of it is shorter still.
pub const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Most attempts for one call, the first included. With the delays below, the last begins
/// about 15 s after the first failed, unless the provider asked for more.
pub const MAX_ATTEMPTS: u32 = 5;

/// Delay before the first retry; doubled each time, with up to as much again at random.
pub const RETRY_MIN_DELAY: Duration = Duration::from_millis(500);

/// Longest delay that this crate chooses by itself.
pub const RETRY_MAX_DELAY: Duration = Duration::from_secs(20);

/// Longest delay accepted from a `Retry-After`. A provider that asks for more means a quota
/// that will not be back within a run: the call fails at once and says so.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Time to set up a connection, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Most output tokens asked of Anthropic when nothing is configured: the API requires a number,
/// and every current model accepts this one.
pub const ANTHROPIC_MAX_OUTPUT_TOKENS: u64 = 8192;

/// Most bytes of a key: keys have 30 to 200 characters, and some gateways use a JWT.
pub const MAX_KEY_BYTES: usize = 8 << 10;

/// Most bytes of a transcript. A recording of a long run has some hundred kilobytes.
pub const MAX_TRANSCRIPT_BYTES: usize = 16 << 20;

/// How long to wait for the usage and the end of the stream once the answer itself is
/// complete: both follow at once from every server that sends them.
pub const AFTER_FINISH_WAIT: Duration = Duration::from_secs(5);
