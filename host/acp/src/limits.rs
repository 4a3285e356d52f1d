//! Bounds of this entrance against an editor that misbehaves. No known editor reaches them.

/// Most bytes of one line: a prompt with every resource of the largest size, and its escapes. A longer line
/// is answered as invalid, and never kept.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// Unanswered requests: beyond them reading stops, so that a flood waits in the pipe.
pub(crate) const MAX_UNANSWERED: usize = 256;

/// Updates waiting to be written: the turn of an editor that does not read waits, and costs no more memory.
pub(crate) const MAX_UNWRITTEN: usize = 256;

/// Simultaneously open sessions of one connection.
pub(crate) const MAX_OPEN: usize = 64;

/// Prompts of all sessions that are answered at a time.
pub(crate) const MAX_PROMPTS: usize = 16;

/// Blocks of one prompt.
pub(crate) const MAX_BLOCKS: usize = 256;

/// Most bytes of all texts of one prompt: as much as a turn accepts.
pub(crate) const MAX_PROMPT_BYTES: usize = 4 << 20;

/// Bytes of a path or a name that an editor sends.
pub(crate) const MAX_PATH_BYTES: usize = 4_096;

/// Bytes of a result that an update repeats.
pub(crate) const MAX_RESULT: usize = 64 << 10;

/// Bytes of both texts of one difference; a larger difference is named, not shown.
pub(crate) const MAX_DIFF: usize = 256 << 10;

/// Bytes and number of all differences shown at once.
pub(crate) const MAX_DIFFS_BYTES: usize = 4 << 20;
pub(crate) const MAX_DIFFS: usize = 100;

/// Changed files named after the differences. An unnamed file cannot be decided about here.
pub(crate) const MAX_NAMED: usize = 1_000;

/// Agents offered as modes, and skills and teams offered as commands.
pub(crate) const MAX_OFFERED: usize = 100;

/// Sessions in one page of a list.
pub(crate) const PAGE: usize = 50;

/// Characters of a title or a description.
pub(crate) const MAX_TITLE: usize = 120;

/// Most results of calls that wait to be shown; of more, the oldest are left out.
pub(crate) const MAX_RESULTS: usize = 512;

/// Events that are read at once when a session is loaded.
pub(crate) const EVENTS_PAGE: u32 = 500;

/// How long the turns of a departed editor may need to end by themselves. Unfinished turns are resumed when
/// the session is opened again.
pub(crate) const LAST_WAIT: std::time::Duration = std::time::Duration::from_secs(1);
