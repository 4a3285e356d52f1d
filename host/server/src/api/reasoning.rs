//! Removes the reasoning of models from stored messages before the API shows them; only the model
//! itself gets its reasoning back.

use serde_json::Value;

/// Removes reasoning from the messages of a stored row, because the API does not show it.
pub(super) fn without_reasoning(mut messages: Value) -> Value {
    for message in messages.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        message.shift_remove("reasoning");
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_thought_is_not_shown_with_its_message() {
        let messages = serde_json::json!([
            {"role": "user", "text": "go"},
            {"role": "assistant", "text": "hm", "reasoning": {"model": "m", "fields": {"x": "secret"}}},
        ]);
        let shown = without_reasoning(messages);
        let expected = serde_json::json!([{"role": "user", "text": "go"}, {"role": "assistant", "text": "hm"}]);
        assert_eq!(shown, expected);
    }
}
