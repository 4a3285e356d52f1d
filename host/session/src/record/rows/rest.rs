//! The parts of an outcome that have no separate column.

use belljar_agent::{Attachment, Outcome, RunError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The parts of an outcome that have no separate column.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OutcomeRest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unfinished: Vec<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
}

impl OutcomeRest {
    /// Copies these parts from an outcome.
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            error: outcome.error.clone().map(without_hint),
            attachments: outcome.attachments.clone(),
            warnings: outcome.warnings.clone(),
            unfinished: outcome.unfinished.clone(),
            started: Some(outcome.started),
            ended: Some(outcome.ended),
        }
    }
}

/// Removes the hint from an error, because rows are shown to callers and the hint is for the operator.
fn without_hint(error: RunError) -> RunError {
    match error {
        RunError::Setup { message, .. } => RunError::Setup { message, hint: None },
        RunError::Model { message, too_long, .. } => {
            RunError::Model { message, too_long, hint: None }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use belljar_policy::{BudgetLevel, ExhaustedLimit, Meter};

    use super::*;

    /// One error of each kind; a new kind must be added here.
    fn kinds() -> Vec<RunError> {
        let text = || "told".to_owned();
        let exhausted =
            ExhaustedLimit { meter: Meter::Steps, level: BudgetLevel::Session, limit: 1 };
        let kinds = vec![
            RunError::Budget { exhausted },
            RunError::WallTime { seconds: 1 },
            RunError::OutputCut,
            RunError::NoAnswer,
            RunError::Declined,
            RunError::Model {
                message: text(),
                too_long: true,
                hint: Some("look at `belljar.toml`".to_owned()),
            },
            RunError::Setup { message: text(), hint: Some("edit `belljar.toml`".to_owned()) },
            RunError::Hook { reason: text() },
            RunError::Caller { message: text(), images: true },
            RunError::Form { message: text() },
            RunError::Cancelled,
            RunError::Internal { message: text() },
            RunError::Stopped { reason: text() },
            RunError::Busy { message: text() },
        ];
        let place = |error: &RunError| match error {
            RunError::Budget { .. } => 0,
            RunError::WallTime { .. } => 1,
            RunError::OutputCut => 2,
            RunError::NoAnswer => 3,
            RunError::Declined => 4,
            RunError::Model { .. } => 5,
            RunError::Setup { .. } => 6,
            RunError::Hook { .. } => 7,
            RunError::Caller { .. } => 8,
            RunError::Form { .. } => 9,
            RunError::Cancelled => 10,
            RunError::Internal { .. } => 11,
            RunError::Stopped { .. } => 12,
            RunError::Busy { .. } => 13,
        };
        assert!(kinds.iter().map(place).eq(0..14));
        kinds
    }

    #[test]
    fn no_row_has_what_only_the_operator_can_do() {
        for error in kinds() {
            let text = error.to_string();
            let row = serde_json::to_string(&without_hint(error)).unwrap();
            for told in [&text, &row] {
                let operators = ["belljar.toml", "`belljar ", "`--", "hint"];
                assert!(!operators.iter().any(|word| told.contains(word)), "{told}");
            }
        }
    }
}
