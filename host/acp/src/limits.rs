//! Bounds of this entrance. An editor that misbehaves is held by them; one that does not meets none.

/// Most bytes of one line that is read: a prompt with every resource of the largest size, and its
/// escapes. A longer one is answered as invalid, and never kept.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// Requests that are read and not answered yet: behind them nothing is read, so that a flood waits in
/// the pipe.
pub(crate) const MAX_UNANSWERED: usize = 256;

/// Updates that wait to be written: a turn whose editor does not read waits, and costs no more than
/// these.
pub(crate) const MAX_UNWRITTEN: usize = 256;

/// Sessions that are open at a time in one connection.
pub(crate) const MAX_OPEN: usize = 64;

/// Prompts of all sessions that are answered at a time.
pub(crate) const MAX_PROMPTS: usize = 16;

/// Blocks of one prompt.
pub(crate) const MAX_BLOCKS: usize = 256;

/// Bytes of all texts of one prompt: as much as a turn takes.
pub(crate) const MAX_PROMPT_BYTES: usize = 4 << 20;

/// Bytes of a path or a name that an editor sends.
pub(crate) const MAX_PATH_BYTES: usize = 4_096;

/// Bytes of a result that an update repeats.
pub(crate) const MAX_RESULT: usize = 64 << 10;

/// Bytes of both texts of one difference; a larger one is named and not shown.
pub(crate) const MAX_DIFF: usize = 256 << 10;

/// Bytes of all differences that are shown at once, and their number.
pub(crate) const MAX_DIFFS_BYTES: usize = 4 << 20;
pub(crate) const MAX_DIFFS: usize = 100;

/// Changed files that are named behind them. What is not even named is not decided about here.
pub(crate) const MAX_NAMED: usize = 1_000;

/// Agents that are offered as modes, and skills and teams that are offered as commands.
pub(crate) const MAX_OFFERED: usize = 100;

/// Sessions in one page of a list.
pub(crate) const PAGE: usize = 50;

/// Characters of a title or a description.
pub(crate) const MAX_TITLE: usize = 120;

/// Results of calls that wait to be shown; the oldest are left out where there are more.
pub(crate) const MAX_RESULTS: usize = 512;

/// Events that are read at once when a session is loaded.
pub(crate) const EVENTS_PAGE: u32 = 500;

/// How long the turns of an editor that has gone may take to end by themselves. They are resumed
/// when their session is opened again.
pub(crate) const LAST_WAIT: std::time::Duration = std::time::Duration::from_secs(1);
