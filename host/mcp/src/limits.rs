//! The bounds of all that a server can make this process hold or do.

use std::time::Duration;

/// Tools of one server that are taken, the first of its list: every request of a model repeats them.
pub(crate) const MAX_TOOLS: usize = 128;

/// Tools that a list may name; those beyond are not looked at, because each is parsed.
pub(crate) const MAX_NAMED: usize = 1_024;

/// Pages of a list, of which each is a request. A server that always names a next one ends here.
pub(crate) const MAX_PAGES: usize = 32;

/// Bytes of one message. Every output that a call may have by default is smaller, in base64 too; read
/// as JSON the worst takes twenty times as much for a moment.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// Messages of one reply, reports of progress included: a flood ends the call.
pub(crate) const MAX_MESSAGES: usize = 10_000;

/// Requests of a server within one reply, each of which is answered by a request: a loop ends the call.
pub(crate) const MAX_ASKED: usize = 16;

/// Forms that a person is asked to fill in within one call; further ones are declined.
pub(crate) const MAX_FORMS: usize = 4;

/// Texts that a model writes for a server within one call; what they use is bounded besides.
pub(crate) const MAX_SAMPLES: usize = 8;

/// Bytes of the id of a session or an event, which every request repeats.
pub(crate) const MAX_SESSION: usize = 512;

/// How often the stream of one reply is resumed; one that ends again and again ends the call.
pub(crate) const MAX_RESUMED: usize = 8;

/// The longest wait before it is.
pub(crate) const MAX_RETRY: Duration = Duration::from_secs(1);

/// Bytes of a cursor of a list.
pub(crate) const MAX_CURSOR: usize = 4 << 10;

/// Characters of a server's words in a message for the operator.
pub(crate) const MAX_SHOWN: usize = 300;

/// Bytes of an error's text, which goes to the model.
pub(crate) const MAX_ERROR: usize = 16 << 10;

/// How long a server is told that a call has ended early, or that a session has.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// Bytes of a demand for a token.
pub(crate) const MAX_CHALLENGE: usize = 4 << 10;

/// Arguments of one tool that go into headers too.
pub(crate) const MAX_PARAMETERS: usize = 32;

/// How often a server may ask for more before it answers one call; one that always does ends here.
pub(crate) const MAX_ROUNDS: usize = 8;

/// Bytes of the state that a server has sent back with the next round.
pub(crate) const MAX_STATE: usize = 64 << 10;

/// How long the list of a server without sessions is believed, whatever it says itself: it has no way
/// to tell that its tools are others.
pub(crate) const MAX_FRESH: Duration = Duration::from_secs(300);

/// Revisions that a server says it speaks, of which more are not looked at.
pub(crate) const MAX_REVISIONS: usize = 16;

/// Bytes of what a server of tokens says, of itself or of a token.
pub(crate) const MAX_DOCUMENT: usize = 256 << 10;

/// Bytes of an address, a name or a code in it.
pub(crate) const MAX_WORD: usize = 4 << 10;

/// Names of rights or ways in a list of such a document.
pub(crate) const MAX_WORDS: usize = 64;

/// Bytes of what a program writes to stderr that are kept, the last of them.
pub(crate) const MAX_COMPLAINT: usize = 8 << 10;

/// Bytes of it that are read at all; then the stream is closed.
pub(crate) const MAX_COMPLAINTS: usize = 16 << 20;
