//! Every bound of the agent loop, with its reason.

use std::time::Duration;

/// Most bytes of one call's arguments. `file_write` gets a whole file in them; a larger file is written in
/// parts. The model's own bound is higher, so this bound answers first.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// Most performed tool calls of one step. Real models make a handful; each further call gets an error result
/// and costs no guest.
pub const MAX_CALLS_PER_STEP: usize = 32;

/// Most kept bytes of one answer's text. Several times the largest output limit of a provider, because the
/// bound is for a model implementation that ignores its own.
pub const MAX_REPLY_BYTES: usize = 8 << 20;

/// Images in one request to a model, including those of earlier turns.
pub const MAX_IMAGES: usize = 20;

/// Most bytes of all images: providers accept 32 MB in one request, in base64.
pub const MAX_IMAGES_BYTES: usize = 16 << 20;

/// Bytes of text that an image counts as: some 1,500 tokens of four bytes each, a provider's bill for a large
/// image.
pub const IMAGE_AS_TEXT: u64 = 6_000;

/// Tools that a caller brings. Each costs tokens in every request, as the agent's own do.
pub const MAX_CALLER_TOOLS: usize = 64;

/// Most bytes of a schema that a caller brings: of a tool's arguments, or of the answer.
pub const MAX_CALLER_TOOL_BYTES: usize = 32 << 10;

/// Most bytes of the description of a caller's tool.
pub const MAX_CALLER_TOOL_DESCRIPTION: usize = 8 << 10;

/// Most bytes of all tools of a caller.
pub const MAX_CALLER_TOOLS_BYTES: usize = 256 << 10;

/// Earlier messages of a caller: more than any conversation that a model still follows.
pub const MAX_CALLER_MESSAGES: usize = 4_000;

/// Levels of a caller's schema, including referenced ones.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Nodes of a caller's schema. A part that a `$ref` refers to counts once for each `$ref`.
pub const MAX_SCHEMA_WEIGHT: u64 = 4_000;

/// Most steps of one check of an empty value. Larger than [`MAX_SCHEMA_WEIGHT`], because nested parts with
/// `unevaluatedProperties` or `unevaluatedItems` check the lower levels again.
pub const MAX_SCHEMA_STEPS: u64 = 40_000;

/// Most bytes of one compiled pattern of a schema, in each direction. For example, `\pL{180}` needs more.
pub const MAX_PATTERN_MEMORY: usize = 1 << 20;

/// States of all compiled patterns of one schema, counted at each use. For example, a pattern for a date has
/// 30, a pattern for a name in any alphabet 400. Matching costs a step for each state and byte at worst.
pub const MAX_SCHEMA_STATES: u64 = 20_000;

/// Most bytes of all compiled schemas of one request.
pub const MAX_SCHEMAS_MEMORY: u64 = 32 << 20;

/// Bytes of the cache of a pattern's matcher, in each direction.
pub const PATTERN_CACHE: usize = 32 << 10;

/// Steps of the checks of one answer and of its calls: schema nodes for each node of the value, and states of
/// patterns for each byte. 100 million, because that lasts four seconds at worst (40 ns a step, measured with
/// `a[ab]{850}[^ab]`).
pub const MAX_CHECK_STEPS: u64 = 100_000_000;

/// Steps of matching one text with one pattern, without interruption: states of the pattern for each byte.
/// Some 1.3 seconds at worst.
pub const MAX_MATCH_STEPS: u64 = 1 << 25;

/// Most steps of a check that also finds the place of the fault. Fewer, because a part for every alternative
/// is kept meanwhile.
pub const MAX_EXPLAINED_STEPS: u64 = 20_000;

/// Most bytes of an answer that has to fit a schema.
pub const MAX_FORMED_BYTES: usize = 256 << 10;

/// Answers of the model that may miss the form before the turn fails.
pub const MAX_FORM_TRIES: u32 = 3;

/// Most bytes of a call id or of a tool name that a model made up, in records. Providers allow
/// 64.
pub const MAX_NAME_BYTES: usize = 128;

/// Default number of a parent's simultaneous subagents; further ones wait. Three keep two cores and a
/// rate-limited provider busy without a stampede.
pub const PARALLEL_CHILDREN: usize = 3;

/// Subagents of one run. Budgets bound their usage; this constant bounds the records.
pub const MAX_CHILDREN_PER_RUN: usize = 4_096;

/// Steps of a subagent with the profile `small`, where its grant states none. Fifteen, because a small
/// context has no room for the results of more.
pub const SMALL_STEPS: u64 = 15;

/// Most tokens of a subagent with the profile `small`, all steps together.
pub const SMALL_TOKENS: u64 = 8_000;

/// The largest share of the model's context, in percent, for the tokens of a subagent with the profile
/// `small`.
pub const SMALL_CONTEXT_PERCENT: u64 = 30;

/// Divisor from a small model's tokens to the bytes of a prompt part. The instructions, the task and the
/// context are each cut there: 8,000 tokens allow 4,000 bytes, some 1,000 tokens.
pub const TOKENS_PER_SMALL_PROMPT_BYTE: u64 = 2;

/// Most tasks of one `delegate_parallel`. A bound, because each waiting task costs a record.
pub const MAX_BATCH: usize = 1_024;

/// Most bytes of all conclusions of one `delegate_parallel`: four of the largest.
pub const MAX_BATCH_CONCLUSIONS: usize = 4 * MAX_CONCLUSION_BYTES;

/// Bytes that each conclusion of a large batch may have in any case.
pub const MIN_CONCLUSION_BYTES: usize = 2 << 10;

/// How long a finished agent waits for its background subagents, within its own time limit. Subagents that
/// run longer are cancelled and named.
pub const BACKGROUND_WAIT: Duration = Duration::from_secs(300);

/// How long a person has to answer a question. Ten minutes are enough for a person who is present; an absent
/// person must not stop a run for ever.
pub const ANSWER_WAIT: Duration = Duration::from_secs(600);

/// Items of a `todo_write`.
pub const MAX_TODOS: usize = 100;

/// Bytes of an item: a line, not a document.
pub const MAX_TODO_BYTES: usize = 1_000;

/// Bytes of an item's details: some pages.
pub const MAX_TODO_DETAIL_BYTES: usize = 20_000;

/// Most bytes of a worktree's name, which is a part of file names.
pub const MAX_WORKTREE_NAME: usize = 64;

/// Most changes of a worktree that a model reads one by one before it drops them.
pub const MAX_TOLD_CHANGES: usize = 20;

/// Bytes of a question to the person, and of one option, for example `yes, overwrite it`.
pub const MAX_QUESTION_BYTES: usize = 4_000;

/// Options of a question.
pub const MAX_OPTIONS: usize = 10;

/// Most bytes of a person's answer to a question that a model reads.
pub const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Structured findings of one agent.
pub const MAX_FINDINGS: usize = 500;

/// Bytes of one text of a finding.
pub const MAX_FINDING_BYTES: usize = 16 << 10;

/// Most bytes of an AGENTS.md that goes into a prompt: some 16,000 tokens.
pub const MAX_AGENTS_MD: u64 = 64 << 10;

/// Most bytes of a child's conclusion for its parent: some 60,000 tokens, more than any conclusion should
/// have.
pub const MAX_CONCLUSION_BYTES: usize = 256 << 10;

/// Bytes of a tool result that stays in a shortened conversation, because repeating a call costs more than
/// keeping a short result. Longer results are removed from a conversation that exceeds the model's context.
pub const MAX_KEPT_RESULT: usize = 1 << 10;

/// Most files in the list of a parent's read files for a child, the latest ones: some 40 tokens each.
pub const MAX_KNOWN_FILES: usize = 40;

/// As [`MAX_KNOWN_FILES`], for a child with the profile `small`.
pub const MAX_KNOWN_FILES_OF_SMALL: usize = 5;

/// Most file paths named in the header of a child's conclusion, read and written apart.
pub const MAX_FRAMED_PATHS: usize = 20;

/// Agents listed for a parent, in the order of their names. Each costs tokens in every
/// request.
pub const MAX_LISTED_AGENTS: usize = 64;

/// Characters of an agent's description in that list. Authors put the deciding examples into the description,
/// so only absurd ones are cut.
pub const MAX_LISTED_DESCRIPTION: usize = 4_000;

/// Most bytes of a command hook's stdout. Room for the largest arguments, escaped, and some text.
pub const MAX_HOOK_STDOUT: usize = 4 << 20;

/// Most bytes kept of a command hook's stderr.
pub const MAX_HOOK_STDERR: usize = 16 << 10;

/// Most bytes of a reason, note or message of a hook: some sentences, not a manual, because
/// the model reads it and a person may.
pub const MAX_HOOK_TEXT: usize = 8 << 10;

/// Most bytes of a tool's result, or of an agent's last text, in the input of a hook.
pub const MAX_HOOK_RESPONSE: usize = 256 << 10;

/// Most bytes of a team member's task in an outcome: the request, not the outputs of earlier stages, which
/// are stored already.
pub const MAX_KEPT_TASK_BYTES: usize = 16 << 10;

/// The assumed bytes of text in a token. English has about four and Chinese about three; three, because an
/// estimate that is too large is safer than one that is too small.
pub const BYTES_PER_TOKEN: u64 = 3;

/// Most bytes of a description, or of the instructions behind it, that a search reads.
pub const MAX_SEARCHED_TEXT: usize = 4 << 10;

/// Most bytes of a message whose words are searched for.
pub const MAX_MATCHED_WORDS: usize = 8 << 10;

/// Entries of one kind that a search for a message considers.
pub const MAX_MATCHED: usize = 8;

/// Entries in the answer of a finder.
pub const MAX_FOUND: usize = 5;

/// Characters of a description in a list that has no room for whole ones: a sentence or two.
pub const MAX_LINE_DESCRIPTION: usize = 160;

/// Characters of a description in the answer of a finder.
pub const MAX_FOUND_DESCRIPTION: usize = 600;

/// Skills listed in an agent's context, home before workspace. Each costs some 40 tokens in
/// every request.
pub const MAX_LISTED_SKILLS: usize = 64;

/// Characters of a skill's description in the list: when to use the skill, not how.
pub const MAX_LISTED_SKILL_DESCRIPTION: usize = 300;

/// Most bytes of a skill that `use_skill` returns to a model: some 16,000 tokens. A longer skill should name
/// files to read instead.
pub const MAX_SKILL_BYTES: usize = 64 << 10;

/// Characters of a skill added by a trigger. Some 1,000 tokens, because the person did not ask for the skill.
pub const MAX_TRIGGERED_SKILL_CHARS: usize = 4_000;

/// Skills added to one task by triggers.
pub const MAX_TRIGGERED_SKILLS: usize = 3;

/// Most bytes of a task that are searched for triggers. Only the beginning, because the request is there and
/// piped input follows.
pub const MAX_TRIGGER_SCAN_BYTES: usize = 16 << 10;

/// Tools shown to one agent, because providers refuse more than 128.
pub const MAX_TOOLS: usize = 128;

/// How long a cancellation waits for receipts of running calls. Five seconds, because a guest stops at its
/// next yield and a file operation on a slow disk ends well within them.
pub const CALL_CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How long closing a jar may last. Twelve seconds, because the jar itself stops waiting after ten and names
/// the unfinished calls; this limit is for a jar that fails to.
pub const JAR_CLOSE_LIMIT: Duration = Duration::from_secs(12);

/// How long a parent waits for its cancelled children: both limits above in sequence, and some room.
pub const CHILD_CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// How long an agent waits before checking again whether others still hold the tokens of its next request.
pub const ROOM_WAIT: Duration = Duration::from_millis(50);

/// Bytes of prompt for one token at the very most. Only for refusing a prompt that cannot fit the token
/// budget: English has about four.
pub const MAX_BYTES_PER_TOKEN: u64 = 16;

/// Share of a budget, in percent, at which a warning event is sent.
pub const WARN_PERCENT: u64 = 80;

/// `text` cut at `limit` bytes, on a character boundary.
pub fn truncate_str(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Cuts `text` at `limit` bytes.
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
