//! What belongs to an outcome and stands in no column of its row.

use belljar_agent::{Attachment, Outcome, RunError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What belongs to an outcome and stands in no column of its row.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Rest {
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

impl Rest {
    pub(crate) fn of(outcome: &Outcome) -> Self {
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

/// Rows are shown to peers; what an operator can do about an error is not for them.
fn without_hint(error: RunError) -> RunError {
    match error {
        RunError::Setup { message, .. } => RunError::Setup { message, hint: None },
        other => other,
    }
}
