//! Limits on the memory and the work that a server can cause in this process.

use std::time::Duration;

/// The most tools of one server, from the beginning of its list, because every request to a model repeats all
/// tools.
pub(crate) const MAX_TOOLS: usize = 128;

/// The most tools in a list; further ones are not parsed.
pub(crate) const MAX_NAMED: usize = 1_024;

/// The most pages of a list, with one request each, because a server may name a next page without end.
pub(crate) const MAX_PAGES: usize = 32;

/// The most bytes of one message. Every output that a call may have by default is smaller, also in base64.
/// Parsing JSON may briefly need twenty times as much memory.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// The most messages of one reply, including progress reports; more end the call.
pub(crate) const MAX_MESSAGES: usize = 10_000;

/// The most requests of a server within one reply, because an endless series of them must end the call.
pub(crate) const MAX_ASKED: usize = 16;

/// The most forms that are shown to a person in one call; further ones are declined.
pub(crate) const MAX_FORMS: usize = 4;

/// The most texts that a model writes for a server in one call; their tokens have a limit of their own.
pub(crate) const MAX_SAMPLES: usize = 8;

/// The most bytes of the id of a session or an event, which every request repeats.
pub(crate) const MAX_SESSION: usize = 512;

/// The most times that the stream of one reply is resumed, because a stream may end again and again.
pub(crate) const MAX_RESUMED: usize = 8;

/// The longest wait before a stream is resumed.
pub(crate) const MAX_RETRY: Duration = Duration::from_secs(1);

/// The most bytes of a list's cursor.
pub(crate) const MAX_CURSOR: usize = 4 << 10;

/// The most characters of a server's text in a message for the operator.
pub(crate) const MAX_SHOWN: usize = 300;

/// The most bytes of an error's text, which a model reads.
pub(crate) const MAX_ERROR: usize = 16 << 10;

/// The time limit of telling a server that a call or session ends early.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// The most bytes of a header that demands a token.
pub(crate) const MAX_CHALLENGE: usize = 4 << 10;

/// The most arguments of one tool that are repeated in headers.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// The most rounds of input that a server may demand before it answers one call.
pub(crate) const MAX_ROUNDS: usize = 8;

/// The most bytes of the state that a server has sent back to it with the next round.
pub(crate) const MAX_STATE: usize = 64 << 10;

/// The longest time for which the list of a stateless server is used, whatever the server states, because
/// such a server cannot announce changes.
pub(crate) const MAX_FRESH: Duration = Duration::from_secs(300);

/// The most revisions that are read in a server's answer; further ones are ignored.
pub(crate) const MAX_REVISIONS: usize = 16;

/// The most bytes of a document about an issuer, or of the answer with a token.
pub(crate) const MAX_DOCUMENT: usize = 256 << 10;

/// The most bytes of an address, a name or a code in such a document.
pub(crate) const MAX_WORD: usize = 4 << 10;

/// The most entries of a list in such a document, for example of scopes.
pub(crate) const MAX_WORDS: usize = 64;

/// The number of last bytes of a program's stderr that are kept.
pub(crate) const MAX_COMPLAINT: usize = 8 << 10;

/// The most bytes of stderr that are read in all; then the stream is closed.
pub(crate) const MAX_COMPLAINTS: usize = 16 << 20;
