//! The bounds of the memory and the work that a server can cause in this process.

use std::time::Duration;

/// Most tools of one server, from the beginning of its list. A bound, because every request to a model
/// repeats all tools.
pub(crate) const MAX_TOOLS: usize = 128;

/// Tools that a list may name; further tools are not parsed.
pub(crate) const MAX_NAMED: usize = 1_024;

/// Pages of a list, one request each. A server that always names a next page ends here.
pub(crate) const MAX_PAGES: usize = 32;

/// Most bytes of one message. Every output that a call may have by default is smaller, in base64 too. Parsed
/// JSON may briefly need twenty times as much memory.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// Messages of one reply, reports of progress included: a flood ends the call.
pub(crate) const MAX_MESSAGES: usize = 10_000;

/// Requests of a server within one reply. Each is answered by a request, so a loop has to end the call.
pub(crate) const MAX_ASKED: usize = 16;

/// Most forms shown to a person within one call; further forms are declined.
pub(crate) const MAX_FORMS: usize = 4;

/// Most texts that a model writes for a server within one call; their tokens have a separate bound.
pub(crate) const MAX_SAMPLES: usize = 8;

/// Bytes of the id of a session or an event, which every request repeats.
pub(crate) const MAX_SESSION: usize = 512;

/// How often the stream of one reply is resumed, because a stream may end again and again.
pub(crate) const MAX_RESUMED: usize = 8;

/// The longest wait before a stream is resumed.
pub(crate) const MAX_RETRY: Duration = Duration::from_secs(1);

/// Bytes of a cursor of a list.
pub(crate) const MAX_CURSOR: usize = 4 << 10;

/// Most characters of a server's text in a message for the operator.
pub(crate) const MAX_SHOWN: usize = 300;

/// Bytes of an error's text, which goes to the model.
pub(crate) const MAX_ERROR: usize = 16 << 10;

/// How long sending the notice of an early end of a call or session may last.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// Bytes of a demand for a token.
pub(crate) const MAX_CHALLENGE: usize = 4 << 10;

/// Arguments of one tool that go into headers too.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// Most inputs that a server may request before it answers one call; a bound against an endless series.
pub(crate) const MAX_ROUNDS: usize = 8;

/// Bytes of the state that a server has sent back with the next round.
pub(crate) const MAX_STATE: usize = 64 << 10;

/// How long the list of a stateless server is used, whatever lifetime the server states, because such a
/// server cannot announce changes.
pub(crate) const MAX_FRESH: Duration = Duration::from_secs(300);

/// Revisions in a server's answer; further ones are ignored.
pub(crate) const MAX_REVISIONS: usize = 16;

/// Most bytes of a document about an issuer or of a token response.
pub(crate) const MAX_DOCUMENT: usize = 256 << 10;

/// Most bytes of an address, a name or a code in a document.
pub(crate) const MAX_WORD: usize = 4 << 10;

/// Names of rights or ways in a list of such a document.
pub(crate) const MAX_WORDS: usize = 64;

/// The last bytes of a program's stderr that are kept.
pub(crate) const MAX_COMPLAINT: usize = 8 << 10;

/// Bytes of stderr that are read in all; then the stream is closed.
pub(crate) const MAX_COMPLAINTS: usize = 16 << 20;
