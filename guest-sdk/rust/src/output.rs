//! Building what a tool answers.

use crate::{Attachment, Output, Part, ToolError};
use serde::Serialize;

impl Output {
    /// An answer of one text part.
    pub fn text(text: impl Into<String>) -> Output {
        Output { parts: vec![Part::Text(text.into())] }
    }

    /// An answer of one JSON part.
    ///
    /// # Errors
    ///
    /// [`ToolError::Failed`] when the value cannot be written as JSON (a map with keys that
    /// are not strings).
    pub fn json(value: &impl Serialize) -> Result<Output, ToolError> {
        let text = serde_json::to_string(value)
            .map_err(|error| ToolError::Failed(format!("the result is not JSON: {error}")))?;
        Ok(Output { parts: vec![Part::Json(text)] })
    }

    /// An answer of one attachment. `name` is for display; the host keeps its last
    /// component only.
    pub fn attachment(
        name: impl Into<String>,
        media_type: impl Into<String>,
        data: Vec<u8>,
    ) -> Output {
        let attachment = Attachment { name: name.into(), media_type: media_type.into(), data };
        Output { parts: vec![Part::Attachment(attachment)] }
    }

    /// This answer followed by the parts of another.
    #[must_use]
    pub fn and(mut self, other: Output) -> Output {
        self.parts.extend(other.parts);
        self
    }
}
