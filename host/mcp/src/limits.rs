//! The bounds of all that a server can make this process hold or do.

use std::time::Duration;

/// Tools of one server: every request of a model repeats them.
pub(crate) const MAX_TOOLS: usize = 128;

/// Pages of a list, of which each is a request. A server that always names a next one ends here.
pub(crate) const MAX_PAGES: usize = 32;

/// Bytes of one message. Every output that a call may have by default is smaller, in base64 too; read
/// as JSON the worst takes twenty times as much for a moment.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// Messages of one reply, reports of progress included: a flood ends the call.
pub(crate) const MAX_MESSAGES: usize = 10_000;

/// Requests of a server within one reply, each of which is answered by a request: a loop ends the call.
pub(crate) const MAX_ASKED: usize = 16;

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
