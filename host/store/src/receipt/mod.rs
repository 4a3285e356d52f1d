//! Receipts: the effects and costs of tool calls.
//!
//! A receipt is stored in a separate row, or packed with others into one row, for example for a client that
//! sends many calls per second. Readers see no difference.

mod list;
mod packed;
mod row;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use packed::pack_receipts;
pub(crate) use row::add_receipt;

/// The receipt of one call. `B` is the type of its contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptRow<B = Value> {
    /// The id, made by the caller; ids sort by time as text.
    pub id: String,
    /// The path within the turn of the agent that made the call.
    pub agent: String,
    /// The number of the agent's step.
    pub step: i64,
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// True if the call succeeded.
    pub ok: bool,
    /// How the call ended, as one word.
    pub ending: String,
    /// The fuel that the call used.
    pub fuel: i64,
    /// The duration of the call in microseconds.
    pub micros: i64,
    /// The whole receipt in the caller's own form.
    pub body: B,
    /// When the receipt was made, in milliseconds since 1970.
    pub created: i64,
}

/// A receipt to store, with its contents already as JSON text, so storing many at once costs little.
pub type NewReceipt = ReceiptRow<JsonText>;

/// A JSON value as its text, which is stored unchanged.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

/// A stored receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredReceipt {
    /// The id of the agent's message to whose turn the receipt belongs.
    pub message: String,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: ReceiptRow,
}

impl JsonText {
    /// The JSON text of a value; `null` if it cannot be serialized.
    pub fn from_value(value: &impl Serialize) -> Self {
        Self(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    /// The value's JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<B> ReceiptRow<B> {
    /// Converts the contents to another type.
    fn with_body<C>(self, make: impl FnOnce(B) -> C) -> ReceiptRow<C> {
        let Self { id, agent, step, call_id, tool, ok, ending, fuel, micros, body, created } = self;
        let body = make(body);
        ReceiptRow { id, agent, step, call_id, tool, ok, ending, fuel, micros, body, created }
    }
}

impl From<ReceiptRow> for NewReceipt {
    fn from(row: ReceiptRow) -> Self {
        row.with_body(|body| JsonText::from_value(&body))
    }
}
