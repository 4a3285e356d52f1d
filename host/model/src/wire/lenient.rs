//! Reads fields of a server's JSON as leniently as needed: a number may be a float or a text, a text may be
//! null. A field of the wrong type counts as absent, so the answer is not lost.

use serde_json::{Map, Value};

/// A count: a whole number that is not negative. A fraction is rounded up, because a part of a token costs a
/// whole one.
pub(crate) fn read_count(map: &Value, field: &str) -> Option<u64> {
    let value = map.get(field)?;
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    // The cast is exact below 2^53, and no real count is larger.
    let fits = number.is_finite() && (0.0..9e15).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    fits.then(|| number.ceil() as u64)
}

/// A text; empty if it is missing. A number becomes its digits, because some servers send ids as numbers.
pub(crate) fn read_text(map: &Value, field: &str) -> String {
    match map.get(field) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The object in a field; `None` if it is missing, empty, or no object.
pub(crate) fn read_object<'v>(map: &'v Value, field: &str) -> Option<&'v Map<String, Value>> {
    map.get(field)?.as_object().filter(|map| !map.is_empty())
}

/// The elements of a list. A value that is no list counts as the only element; null has none.
pub(crate) fn read_items<'v>(map: &'v Value, field: &str) -> &'v [Value] {
    match map.get(field) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(one) => std::slice::from_ref(one),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_count_is_understood_in_every_spelling_and_nonsense_is_absent() {
        let usage = json!({"a": 3, "b": 3.0, "c": 37.25, "d": "12", "e": -35, "f": null, "g": [1],
            "h": 1e300, "i": "many", "j": true, "k": -0.0, "l": u64::MAX});
        let counts = "abcdefghijkl".chars().map(|field| read_count(&usage, &field.to_string()));
        let expected = [
            Some(3),
            Some(3),
            Some(38),
            Some(12),
            None,
            None,
            None,
            None,
            None,
            None,
            Some(0),
            Some(u64::MAX),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
        assert_eq!(read_count(&json!(7), "a"), None);
    }
}
