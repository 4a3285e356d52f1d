//! Receipts: the effects and costs of tool calls.
//!
//! A receipt is a plain row, or is packed with others into one row, for example for a client that sends many
//! calls a second. Readers see no difference.

mod list;
mod packed;
mod row;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use packed::pack_receipts;
pub(crate) use row::add_receipt;

/// The receipt of one call. `B` is the form of the contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptRow<B = Value> {
    /// Made by the caller; sorts by time as text.
    pub id: String,
    /// The path of the agent that called, within the turn.
    pub agent: String,
    /// The agent's step.
    pub step: i64,
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// True if the call succeeded.
    pub ok: bool,
    /// The ending of the call, in a word.
    pub ending: String,
    /// The used fuel.
    pub fuel: i64,
    /// The duration of the call in microseconds.
    pub micros: i64,
    /// The whole receipt; the caller's own form.
    pub body: B,
    /// The time of the receipt, in milliseconds since 1970.
    pub created: i64,
}

/// A receipt to store, with its contents already as text, so that storing many at once is cheap.
pub type NewReceipt = ReceiptRow<JsonText>;

/// JSON as text.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

/// A receipt as stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredReceipt {
    /// The id of the placeholder of the receipt's turn.
    pub message: String,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: ReceiptRow,
}

impl JsonText {
    /// The JSON text of a value; `null` if it cannot be JSON.
    pub fn from_value(value: &impl Serialize) -> Self {
        Self(serde_json::value::to_raw_value(value).unwrap_or_default())
    }

    /// The text.
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
    /// Converts the contents of a receipt.
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
