//! Every bound of the agent loop, with its reason.

use std::time::Duration;

/// Most bytes of one call's arguments. `file_write` gets a whole file in them; a larger file is written in
/// parts. The limit of the model's wire format is higher, so this limit is reached first.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// Most tool calls of a step that are executed. Models make a handful; each further call is answered with
/// an error and costs no work.
pub const MAX_CALLS_PER_STEP: usize = 32;

/// Most bytes of an answer's text that are kept. Several times the largest output of any provider, because
/// the limit only guards against a model implementation that ignores its own.
pub const MAX_REPLY_BYTES: usize = 8 << 20;

/// Most images in one request to a model, including those of earlier turns.
pub const MAX_IMAGES: usize = 20;

/// Most bytes of all images in a request, because providers accept 32 MB in one request, in base64.
pub const MAX_IMAGES_BYTES: usize = 16 << 20;

/// The bytes of text that an image counts as. A provider bills a large image as some 1,500 tokens of four
/// bytes.
pub const IMAGE_AS_TEXT: u64 = 6_000;

/// Most tools that a caller may bring. Each costs tokens in every request.
pub const MAX_CALLER_TOOLS: usize = 64;

/// Most bytes of one JSON Schema of a caller, for a tool's arguments or for the answer.
pub const MAX_CALLER_TOOL_BYTES: usize = 32 << 10;

/// Most bytes of the description of a caller's tool.
pub const MAX_CALLER_TOOL_DESCRIPTION: usize = 8 << 10;

/// Most bytes of all tools of a caller together.
pub const MAX_CALLER_TOOLS_BYTES: usize = 256 << 10;

/// Most earlier messages that a caller may send: more than any model can follow.
pub const MAX_CALLER_MESSAGES: usize = 4_000;

/// Most levels of a caller's schema, with the levels of parts that a `$ref` refers to.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Most nodes of a caller's schema. The target of a `$ref` counts once for each `$ref`.
pub const MAX_SCHEMA_WEIGHT: u64 = 4_000;

/// Most steps to check one empty value. Larger than [`MAX_SCHEMA_WEIGHT`], because nested
/// `unevaluatedProperties` or `unevaluatedItems` check the levels below again.
pub const MAX_SCHEMA_STEPS: u64 = 40_000;

/// Most bytes of one compiled pattern of a schema, in each direction. For example, `\pL{180}` needs more.
pub const MAX_PATTERN_MEMORY: usize = 1 << 20;

/// States of all compiled patterns of one schema, counted at each use. For example, a pattern for a date has
/// 30, a pattern for a name in any alphabet 400. Matching costs a step for each state and byte at worst.
pub const MAX_SCHEMA_STATES: u64 = 20_000;

/// Most bytes of all compiled schemas of one request.
pub const MAX_SCHEMAS_MEMORY: u64 = 32 << 20;

/// Bytes of the cache that the regex matcher has for one pattern and direction.
pub const PATTERN_CACHE: usize = 32 << 10;

/// Most steps of all checks of an answer and its calls. A step is one schema node for one node of the value,
/// or one pattern state for one byte of text. 100 million steps last four seconds at worst (40 ns a step,
/// measured with `a[ab]{850}[^ab]`).
pub const MAX_CHECK_STEPS: u64 = 100_000_000;

/// Most steps of matching one text with one pattern, which cannot be interrupted: pattern states times bytes.
/// Lasts some 1.3 seconds at worst.
pub const MAX_MATCH_STEPS: u64 = 1 << 25;

/// Most steps of a check whose error names the place of the fault. Fewer than for other checks, because such
/// a check keeps an error for every alternative.
pub const MAX_EXPLAINED_STEPS: u64 = 20_000;

/// Most bytes of an answer that must fit a schema.
pub const MAX_FORMED_BYTES: usize = 256 << 10;

/// Most answers without the required form before the turn fails.
pub const MAX_FORM_TRIES: u32 = 3;

/// Most bytes of a model's call id or tool name in records. Providers allow 64.
pub const MAX_NAME_BYTES: usize = 128;

/// How many subagents of one parent run at the same time by default; further ones wait. Three keep two cores
/// and a rate-limited provider busy without flooding it.
pub const PARALLEL_CHILDREN: usize = 3;

/// Most subagents of a run. Budgets bound their usage; this bounds the number of records.
pub const MAX_CHILDREN_PER_RUN: usize = 4_096;

/// Most steps of a subagent with the profile `small`, if its grant states no number. A small context has no
/// room for the results of more than fifteen.
pub const SMALL_STEPS: u64 = 15;

/// Most tokens of a subagent with the profile `small`, over all its steps.
pub const SMALL_TOKENS: u64 = 8_000;

/// Most tokens of a subagent with the profile `small`, in percent of the model's context.
pub const SMALL_CONTEXT_PERCENT: u64 = 30;

/// Divides the tokens of a small subagent to get the most bytes of the instructions, of the task and of the
/// context, each: 8,000 tokens allow 4,000 bytes, some 1,000 tokens.
pub const TOKENS_PER_SMALL_PROMPT_BYTE: u64 = 2;

/// Most tasks of one `delegate_parallel` call, because each waiting task costs a record.
pub const MAX_BATCH: usize = 1_024;

/// Most bytes of all conclusions of one `delegate_parallel` call together: four of the largest.
pub const MAX_BATCH_CONCLUSIONS: usize = 4 * MAX_CONCLUSION_BYTES;

/// Bytes that each conclusion of a `delegate_parallel` call may always have, however many tasks there are.
pub const MIN_CONCLUSION_BYTES: usize = 2 << 10;

/// How long a finished agent waits for background subagents, within the agent's own time limit. Subagents
/// that run longer are cancelled and named in the outcome.
pub const BACKGROUND_WAIT: Duration = Duration::from_secs(300);

/// How long the host waits for a person's answer to a question. Ten minutes are enough for a person who is
/// present, and an absent person must not stop a run for ever.
pub const ANSWER_WAIT: Duration = Duration::from_secs(600);

/// Most items of a todo list.
pub const MAX_TODOS: usize = 100;

/// Most bytes of a todo item: a line, not a document.
pub const MAX_TODO_BYTES: usize = 1_000;

/// Most bytes of a todo item's details: some pages.
pub const MAX_TODO_DETAIL_BYTES: usize = 20_000;

/// Most bytes of a worktree's name, which is a part of file names.
pub const MAX_WORKTREE_NAME: usize = 64;

/// Most changed paths that a model reads before it may drop a worktree.
pub const MAX_TOLD_CHANGES: usize = 20;

/// Most bytes of a question to a person, and of each option, for example `yes, overwrite it`.
pub const MAX_QUESTION_BYTES: usize = 4_000;

/// Most options of a question to a person.
pub const MAX_OPTIONS: usize = 10;

/// Most bytes of a person's answer to a question that a model reads.
pub const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Most structured findings of an agent.
pub const MAX_FINDINGS: usize = 500;

/// Most bytes of one text of a finding, for example its detail.
pub const MAX_FINDING_BYTES: usize = 16 << 10;

/// Most bytes of an AGENTS.md that goes into a prompt: some 16,000 tokens.
pub const MAX_AGENTS_MD: u64 = 64 << 10;

/// Most bytes of a child's conclusion for its parent: some 60,000 tokens, more than any conclusion should
/// have.
pub const MAX_CONCLUSION_BYTES: usize = 256 << 10;

/// Bytes up to which a tool's result stays in a shortened conversation, because repeating the call would cost
/// more. Longer results are removed when a conversation exceeds the model's context.
pub const MAX_KEPT_RESULT: usize = 1 << 10;

/// Most files in the prompt block about what a parent has read: the latest ones, some 40 tokens each.
pub const MAX_KNOWN_FILES: usize = 40;

/// As [`MAX_KNOWN_FILES`], for a child with the profile `small`.
pub const MAX_KNOWN_FILES_OF_SMALL: usize = 5;

/// Most paths in the header of a child's conclusion, for read and for written files each.
pub const MAX_FRAMED_PATHS: usize = 20;

/// Most agents in the list for a parent, in the order of their names. Each costs tokens in every request.
pub const MAX_LISTED_AGENTS: usize = 64;

/// Most characters of an agent's description in that list. Authors put examples into descriptions, so only
/// absurdly long ones are cut.
pub const MAX_LISTED_DESCRIPTION: usize = 4_000;

/// Most bytes of a hook command's stdout: the largest arguments, escaped, and some text.
pub const MAX_HOOK_STDOUT: usize = 4 << 20;

/// Most bytes of a hook command's stderr that are kept.
pub const MAX_HOOK_STDERR: usize = 16 << 10;

/// Most bytes of a hook's reason, note or message: some sentences, because a model and a person read it.
pub const MAX_HOOK_TEXT: usize = 8 << 10;

/// Most bytes of a tool's result or of an agent's last text that a hook receives.
pub const MAX_HOOK_RESPONSE: usize = 256 << 10;

/// Most bytes of a team member's task in an outcome. That has room for the request; outputs of earlier stages
/// are cut off, because they are stored already.
pub const MAX_KEPT_TASK_BYTES: usize = 16 << 10;

/// The assumed bytes of text in a token. English has about four and Chinese about three; three, because an
/// estimate that is too large is safer than one that is too small.
pub const BYTES_PER_TOKEN: u64 = 3;

/// Most bytes of a description, and of the instructions, that the text index reads of an entry.
pub const MAX_SEARCHED_TEXT: usize = 4 << 10;

/// Most bytes of a message that are searched for words.
pub const MAX_MATCHED_WORDS: usize = 8 << 10;

/// Most entries of one kind that the search for a message returns.
pub const MAX_MATCHED: usize = 8;

/// Most entries in the answer of a search tool, for example `find_agent`.
pub const MAX_FOUND: usize = 5;

/// Most characters of a description in a list without room for whole ones: a sentence or two.
pub const MAX_LINE_DESCRIPTION: usize = 160;

/// Most characters of a description in the answer of a search tool.
pub const MAX_FOUND_DESCRIPTION: usize = 600;

/// Most skills in an agent's context, the home's before the workspace's. Each costs some 40 tokens in every
/// request.
pub const MAX_LISTED_SKILLS: usize = 64;

/// Most characters of a skill's description in the list, which says when to use the skill.
pub const MAX_LISTED_SKILL_DESCRIPTION: usize = 300;

/// Most bytes of a skill that `use_skill` returns to a model: some 16,000 tokens. A longer skill should name
/// files to read instead.
pub const MAX_SKILL_BYTES: usize = 64 << 10;

/// Most characters of a skill that a trigger adds: some 1,000 tokens, because the person did not ask for it.
pub const MAX_TRIGGERED_SKILL_CHARS: usize = 4_000;

/// Most skills that triggers add to one task.
pub const MAX_TRIGGERED_SKILLS: usize = 3;

/// Most bytes of a task that are searched for triggers: the beginning, where the request is; piped input
/// follows.
pub const MAX_TRIGGER_SCAN_BYTES: usize = 16 << 10;

/// Most tools shown to one agent, because providers refuse more than 128.
pub const MAX_TOOLS: usize = 128;

/// How long a cancellation waits for receipts of running calls. Five seconds, because a guest stops at its
/// next yield and a file operation on a slow disk ends well within them.
pub const CALL_CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How long closing a jar may last. Twelve seconds, because the jar itself stops waiting after ten and names
/// the unfinished calls; this limit is for a jar that fails to.
pub const JAR_CLOSE_LIMIT: Duration = Duration::from_secs(12);

/// How long a parent waits for its cancelled children: the two limits above, one after the other, and some
/// more.
pub const CHILD_CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// How long an agent waits before checking again whether others still hold the tokens of its next request.
pub const ROOM_WAIT: Duration = Duration::from_millis(50);

/// The most bytes of a prompt that one token can stand for. Used only to refuse a prompt that cannot fit the
/// token budget; English text has about four bytes a token.
pub const MAX_BYTES_PER_TOKEN: u64 = 16;

/// Share of a budget, in percent, at which a warning event is sent.
pub const WARN_PERCENT: u64 = 80;

/// Cuts `text` at `limit` bytes or before, on a character boundary.
pub fn truncate_str(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Cuts `text` at `limit` bytes or before, on a character boundary.
pub(crate) fn truncate_string(mut text: String, limit: usize) -> String {
    let end = truncate_str(&text, limit).len();
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_never_splits_a_character() {
        assert_eq!(truncate_str("aé", 2), "a");
        assert_eq!(truncate_string("aé".into(), 3), "aé");
        assert_eq!(truncate_str("", 0), "");
    }
}
