//! Rewrites messages that the library's parser would leave without an answer into messages that it
//! accepts.

use serde_json::{Value, json};

/// Wraps parameters that are no JSON object in one. The library then refuses the request like any other
/// with wrong parameters, with `-32602` and the request's id. `None` if no rewriting is needed.
pub(super) fn with_object(text: &[u8]) -> Option<Vec<u8>> {
    let key = b"\"params\"";
    let behind = text.windows(key.len()).position(|part| part == key)?.checked_add(key.len())?;
    let value = text.get(behind..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    // Nearly all parameters are objects, so the text is not parsed for them.
    if value.starts_with(b"{") {
        return None;
    }
    let message = serde_json::from_slice(text).ok()?;
    serde_json::to_vec(&mend_params(message)).ok()
}

/// Splits a batch, which protocol revision 2025-03-26 allows, into one line for each message; each is
/// answered separately.
pub(super) fn split_batch(line: &[u8]) -> Option<Vec<u8>> {
    let mut lines = if line.trim_ascii_start().starts_with(b"[") {
        let batch: Vec<Value> = serde_json::from_slice(line).ok()?;
        let texts = batch.into_iter().map(|message| mend_params(message).to_string());
        texts.collect::<Vec<_>>().join("\n").into_bytes()
    } else {
        with_object(line)?
    };
    lines.push(b'\n');
    Some(lines)
}

/// Wraps `params` that are neither an object nor null into an object.
fn mend_params(mut message: Value) -> Value {
    if let Some(params) = message.get_mut("params").filter(|it| !it.is_object() && !it.is_null()) {
        *params = json!({"params": params.take()});
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_are_no_object_stand_in_one_and_a_batch_in_lines_of_its_own() {
        let of =
            |text: &str| split_batch(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
        for as_is in [
            r#"{"id":1,"method":"m","params":{"a":[1]}}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"id":1,"params" : {}}"#,
            r#"{"id":1,"method":"m","params":[1"#,
            "[1",
            "",
        ] {
            assert_eq!(of(as_is), None, "{as_is}");
        }
        let wrapped = of(r#"{"id":1,"method":"m","params": [1]}"#).unwrap();
        let wrapped: Value = serde_json::from_str(&wrapped).unwrap();
        assert_eq!(wrapped["params"], json!({"params": [1]}));
        let batch = of(r#"[{"id":1,"method":"a"},{"id":2,"method":"b","params":"x"}]"#).unwrap();
        let each: Vec<Value> =
            batch.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&each[0]["id"], &each[1]["params"]), (&json!(1), &json!({"params": "x"})));
    }
}
