//! Limits against an editor that misbehaves. No known editor reaches them.

/// The most bytes of one line: a prompt with every resource of the largest size, including escapes. A longer
/// line is answered as invalid, and never kept in memory.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// The most unanswered requests. Beyond them reading stops, so a flood waits in the pipe.
pub(crate) const MAX_UNANSWERED: usize = 256;

/// The most updates that wait to be written. The turn of an editor that does not read waits, and uses no more
/// memory.
pub(crate) const MAX_UNWRITTEN: usize = 256;

/// The most open sessions of one connection.
pub(crate) const MAX_OPEN: usize = 64;

/// The most prompts of all sessions that are answered at a time.
pub(crate) const MAX_PROMPTS: usize = 16;

/// The most blocks of one prompt.
pub(crate) const MAX_BLOCKS: usize = 256;

/// The most bytes of all texts of one prompt: as many as a turn accepts.
pub(crate) const MAX_PROMPT_BYTES: usize = 4 << 20;

/// The most bytes of a path or a name that an editor sends.
pub(crate) const MAX_PATH_BYTES: usize = 4_096;

/// The most bytes of a tool's result in an update.
pub(crate) const MAX_RESULT: usize = 64 << 10;

/// The most bytes of both texts of one difference; for a larger one only the file is named.
pub(crate) const MAX_DIFF: usize = 256 << 10;

/// The most bytes, and the most number, of all differences shown at once.
pub(crate) const MAX_DIFFS_BYTES: usize = 4 << 20;
pub(crate) const MAX_DIFFS: usize = 100;

/// The most changed files that are named after the differences. A person cannot decide here if further files
/// exist.
pub(crate) const MAX_NAMED: usize = 1_000;

/// The most agents offered as modes, and the most skills and teams offered as commands.
pub(crate) const MAX_OFFERED: usize = 100;

/// The sessions on one page of a list.
pub(crate) const PAGE: usize = 50;

/// The most characters of a title or a description.
pub(crate) const MAX_TITLE: usize = 120;

/// The most results of calls that wait to be shown; the oldest beyond them are dropped.
pub(crate) const MAX_RESULTS: usize = 512;

/// The events that are read at once when a session is loaded.
pub(crate) const EVENTS_PAGE: u32 = 500;

/// The time that running turns get to end after the editor has disconnected. Unfinished ones are resumed when
/// their session is opened again.
pub(crate) const LAST_WAIT: std::time::Duration = std::time::Duration::from_secs(1);
