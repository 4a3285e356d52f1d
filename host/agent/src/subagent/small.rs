//! The limits of a subagent with a small model: `profile = "small"` under `[agents]`, or of a role.
//!
//! A small model loses a task in a long prompt, and a small context is full before thirty steps are done.

use std::borrow::Cow;

use belljar_definition::{Settings, SubagentProfile};
use belljar_model::ResolvedModel;
use belljar_policy::LimitsRequest;

use crate::limits::{
    SMALL_CONTEXT_PERCENT, SMALL_STEPS, SMALL_TOKENS, TOKENS_PER_SMALL_PROMPT_BYTE, truncate_str,
};
use crate::rights::resolve::ResolvedAgent;

/// How a small model limits one subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallProfile {
    /// Step and token limits, for limits that the subagent's grant does not state.
    pub(crate) limits: LimitsRequest,
    /// Most bytes of the instructions, of the task and of the context, each; `None` = a fork, which keeps its
    /// parent's prompt.
    prompt: Option<usize>,
}

impl SmallProfile {
    /// The profile of a child; `None` = the child has the same limits as every agent.
    pub(crate) fn for_child(
        settings: &Settings,
        agent: &ResolvedAgent,
        model: &ResolvedModel,
        fork: bool,
    ) -> Option<Self> {
        if settings.profile != SubagentProfile::Small && !model.small {
            return None;
        }
        let stated = settings.home_grant(&(&agent.id).into(), agent.definition.visibility).limits;
        let tokens = token_share(model.context_tokens);
        let limits = LimitsRequest {
            steps: Some(SMALL_STEPS).filter(|_| stated.steps.is_none()),
            // The conversation of a fork may already be longer than the token limit, so it has none.
            tokens: Some(tokens).filter(|_| stated.tokens.is_none() && !fork),
            ..LimitsRequest::default()
        };
        let bytes = usize::try_from(tokens / TOKENS_PER_SMALL_PROMPT_BYTE).unwrap_or(usize::MAX);
        Some(Self { limits, prompt: (!fork).then_some(bytes) })
    }

    /// Most bytes of the child's instructions.
    pub(crate) fn instruction_limit(&self) -> Option<usize> {
        self.prompt
    }

    /// Cuts a part of the prompt at the limit, and adds a note about the cut for the person. `what` names the
    /// part.
    pub(crate) fn cut_part<'a>(
        &self,
        what: &str,
        text: &'a str,
        notes: &mut Vec<String>,
    ) -> Cow<'a, str> {
        let Some(limit) = self.prompt else { return Cow::Borrowed(text) };
        if text.len() > limit {
            let length = text.len();
            notes.push(format!(
                "its {what} of {length} bytes is cut at {limit}: the profile is `small`"
            ));
        }
        cut_with_mark(text, limit)
    }
}

/// The tokens of a subagent: a share of the model's context size, if that is known.
fn token_share(context: Option<u64>) -> u64 {
    let share = |context: u64| context.saturating_mul(SMALL_CONTEXT_PERCENT) / 100;
    context.map_or(SMALL_TOKENS, |context| share(context).min(SMALL_TOKENS))
}

/// Cuts a text at `limit` bytes. A cut text ends with a line that names the number of missing bytes.
pub(crate) fn cut_with_mark(text: &str, limit: usize) -> Cow<'_, str> {
    let kept = truncate_str(text, limit);
    match text.len().saturating_sub(kept.len()) {
        0 => Cow::Borrowed(text),
        missing => Cow::Owned(format!("{kept}\n[cut: {missing} bytes more]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_are_a_share_of_a_small_context_and_bounded_for_a_large_one() {
        let cases = [
            (None, 8_000),
            (Some(8_192), 2_457),
            (Some(200_000), 8_000),
            (Some(0), 0),
            (Some(u64::MAX), 8_000),
        ];
        for (context, expected) in cases {
            assert_eq!(token_share(context), expected, "{context:?}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters_and_says_how_much_is_missing() {
        assert_eq!(cut_with_mark("abc", 3), "abc");
        assert_eq!(cut_with_mark("abcd", 3), "abc\n[cut: 1 bytes more]");
        assert_eq!(cut_with_mark("aé", 2), "a\n[cut: 2 bytes more]");
        assert_eq!(cut_with_mark("", 0), "");
    }
}
