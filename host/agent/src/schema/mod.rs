//! JSON Schemas of callers: weighed, then compiled once, with bounds that hold for any schema of a stranger.
//!
//! ```text
//! CallerInput ── weigh ──> bytes (an entrance holds them) ── compile, on a thread of its own ──> CallerSchemas
//! machine ── LoopEffect::Check ──> driver ── check, on a thread of its own ──> LoopInput::Checked
//! ```

mod cost;
mod set;
mod watched;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::ShownText;
use belljar_work::{StopSignal, WorkError, WorkKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use self::cost::{SchemaCost, ValueSize};
use self::watched::{CheckWatch, WatchedJson};
use crate::limits::{
    MAX_CALLER_TOOL_BYTES, MAX_CHECK_STEPS, MAX_EXPLAINED_STEPS, MAX_FORMED_BYTES, MAX_MATCH_STEPS,
    MAX_PATTERN_MEMORY, PATTERN_CACHE,
};

pub use self::set::CallerSchemas;
pub(crate) use self::set::{At, SchemaSet, memory_of};

/// Most characters of the reason why a value does not fit.
const MAX_WHY: usize = 300;

/// The work of weighing and compiling the schemas of a request.
pub(crate) const COMPILING: WorkKind =
    WorkKind { name: "compiling JSON Schemas", time: Duration::from_secs(20) };

/// The work of checking an answer and its calls against schemas.
pub(crate) const CHECKING: WorkKind =
    WorkKind { name: "checking an answer against a JSON Schema", time: Duration::from_secs(30) };

/// The error of such work that has exceeded its time.
pub(crate) fn deadline_error(kind: &WorkKind) -> WorkError {
    WorkError::TimedOut { kind: kind.name, limit: kind.time }
}

/// A compiled schema, shared by clones.
#[derive(Clone)]
pub(crate) struct CompiledSchema(Arc<(Validator<WatchedJson>, SchemaCost)>);

/// A text to check against a schema: an answer, or the arguments of a call.
#[derive(Debug, Clone)]
pub(crate) struct SchemaCheck {
    pub(crate) schema: CompiledSchema,
    pub(crate) text: String,
}

/// The result of a schema check. The error is the reason, escaped.
pub(crate) type Verdict = Result<(), String>;

impl CompiledSchema {
    /// Computes what a schema costs, or refuses it. INV-283, INV-400: an accepted schema is small and refers
    /// only to itself and not in a circle; its patterns are small when compiled and are matched in linear
    /// time.
    ///
    /// # Errors
    ///
    /// Why the schema is refused, as a clause; for example, "is deeper than 64".
    pub(crate) fn weigh_schema(schema: &Value, stop: &StopSignal) -> Result<SchemaCost, String> {
        if schema.to_string().len() > MAX_CALLER_TOOL_BYTES {
            return Err(format!("has more than {MAX_CALLER_TOOL_BYTES} bytes"));
        }
        SchemaCost::from_schema(schema, stop)
    }

    /// Compiles a schema whose cost is known.
    ///
    /// # Errors
    ///
    /// As [`CompiledSchema::weigh_schema`].
    pub(crate) fn compile(schema: &Value, cost: SchemaCost) -> Result<Self, String> {
        let patterns = PatternOptions::regex();
        let patterns = patterns.size_limit(MAX_PATTERN_MEMORY).dfa_size_limit(PATTERN_CACHE);
        let options = jsonschema::options_for::<WatchedJson>();
        match options.with_pattern_options(patterns).build(schema) {
            Ok(validator) => Ok(Self(Arc::new((validator, cost)))),
            Err(error) => Err(format!("is no JSON Schema: {}", format_reason(&error.to_string()))),
        }
    }

    /// Checks that a text is JSON that fits the schema; the error names the reason. INV-401: the steps of the
    /// check are subtracted from `left` before it begins; if too few are left, the text is refused. INV-481:
    /// once `stop` is raised the check ends, and its verdict is void.
    fn check_text(&self, text: &str, left: &mut u64, stop: &StopSignal) -> Verdict {
        if text.len() > MAX_FORMED_BYTES {
            return Err(format!("it has more than {MAX_FORMED_BYTES} bytes"));
        }
        let value: Value = belljar_received::json::from_str(text.trim())
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        let (validator, cost) = &*self.0;
        let size = ValueSize::from_value(&value);
        let steps = cost.check_steps(size);
        *left = left.checked_sub(steps).ok_or_else(|| {
            format!(
                "it is too long for the patterns and parts of its schema: checking it takes up to \
                 {steps} steps, and at most {MAX_CHECK_STEPS} are made for one answer; a shorter one \
                 takes fewer"
            )
        })?;
        let steps = cost.longest_match(size);
        if steps > MAX_MATCH_STEPS {
            return Err(format!(
                "it has a text that is too long for a pattern of its schema: matching it takes up to \
                 {steps} steps, and at most {MAX_MATCH_STEPS} are made for one text; a shorter one takes fewer"
            ));
        }
        let watch = CheckWatch::new(stop);
        if validator.is_valid(watch.watch_value(&value)) {
            return Ok(());
        }
        if cost.max_errors(size) > MAX_EXPLAINED_STEPS {
            return Err("it does not fit, and is too large to say where".to_owned());
        }
        match validator.validate(watch.watch_value(&value)) {
            Ok(()) => Ok(()),
            Err(error) => {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { String::new() } else { format!("at `{at}`: ") };
                Err(format_reason(&format!("{at}{error}")))
            }
        }
    }
}

impl SchemaCheck {
    /// Makes all checks of a step, with one shared number of steps. `None` = stopped.
    pub(crate) fn run_all(checks: &[Self], stop: &StopSignal) -> Option<Vec<Verdict>> {
        let mut left = MAX_CHECK_STEPS;
        let check = |one: &Self| {
            stop.check_raised().ok()?;
            let verdict = one.schema.check_text(&one.text, &mut left, stop);
            // A stopped check has not seen the whole value, so its verdict is dropped.
            stop.check_raised().ok().map(|()| verdict)
        };
        checks.iter().map(check).collect()
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema").finish_non_exhaustive()
    }
}

fn format_reason(text: &str) -> String {
    ShownText::clip_line(text, MAX_WHY).to_string()
}

#[cfg(test)]
pub(crate) mod tests;
