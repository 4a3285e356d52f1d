//! JSON-RPC messages of a server and of this client.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use crate::limits::{MAX_MESSAGE, MAX_REVISIONS};

/// Makes the ids of requests; each is used once.
#[derive(Debug, Default)]
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(crate) fn next_id(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// The id that was made last.
    pub(crate) fn last_id(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A message of a server, with the fields that this client uses.
#[derive(Debug, PartialEq)]
pub(crate) enum RpcMessage {
    /// The answer to the request with this id; `None` if the id is not one of this client's.
    Answer(Option<u64>, Result<Value, RpcError>),
    /// A request of the server.
    Asked { id: Value, method: String, params: Value },
    /// A notification.
    Told { method: String, params: Value },
}

/// A JSON-RPC error in a server's answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// The message, a stranger's text.
    pub(crate) message: String,
    /// The revisions that the server supports, if the error lists them.
    pub(crate) supported: Vec<String>,
}

impl RpcMessage {
    /// Parses one message; the error states what is wrong with it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        Self::from_value(parse_json(bytes)?)
    }

    /// Parses the messages of one body. Servers of 2025-03-26 and before may send several as a list.
    pub(crate) fn read_all(bytes: &[u8]) -> Result<Vec<Self>, &'static str> {
        match parse_json(bytes)? {
            Value::Array(batch) if !batch.is_empty() => {
                batch.into_iter().map(Self::from_value).collect()
            }
            one => Ok(vec![Self::from_value(one)?]),
        }
    }

    /// Parses a message: a request and a notification have a method, an answer has a result or an error.
    fn from_value(value: Value) -> Result<Self, &'static str> {
        let Value::Object(mut fields) = value else { return Err(NO_OBJECT) };
        if fields.get("jsonrpc") != Some(&Value::from("2.0")) {
            return Err("a message is not of JSON-RPC 2.0");
        }
        let id = fields.remove("id");
        if let Some(Value::String(method)) = fields.remove("method") {
            let params = fields.remove("params").unwrap_or_default();
            return Ok(match id {
                Some(id) if id.is_string() || id.is_number() => Self::Asked { id, method, params },
                Some(_) => return Err("a request has no proper id"),
                None => Self::Told { method, params },
            });
        }
        let id = id.as_ref().and_then(belljar_received::whole::to_unsigned);
        // Some servers write `null` for a field that they do not use.
        let error = fields.remove("error").filter(|error| !error.is_null());
        match (fields.remove("result"), error) {
            (Some(result), None) => Ok(Self::Answer(id, Ok(result))),
            (None | Some(Value::Null), Some(Value::Object(error))) => {
                Ok(Self::Answer(id, Err(rpc_error(&error))))
            }
            (None, Some(_)) | (Some(_), Some(_)) | (None, None) => {
                Err("a message is neither a request nor an answer")
            }
        }
    }
}

const NO_OBJECT: &str = "a message is no JSON object";

/// INV-471: a message stays readable if one of its texts was cut in the middle of an emoji.
fn parse_json(bytes: &[u8]) -> Result<Value, &'static str> {
    if bytes.len() > MAX_MESSAGE {
        return Err("a message is too long");
    }
    belljar_received::json::from_slice(bytes).map_err(|_| NO_OBJECT)
}

/// Returns whether an unreadable text was meant for the client. Such a text ends the call, because its answer
/// would never arrive. A log line, JSON or not, is skipped.
pub(crate) fn is_of_protocol(text: &[u8]) -> bool {
    let begins = text.starts_with(b"{") || text.starts_with(b"[{");
    begins && text.windows(9).any(|part| part == b"\"jsonrpc\"")
}

/// Reads the fields of a JSON-RPC error.
fn rpc_error(error: &Map<String, Value>) -> RpcError {
    let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
    let supported =
        error.get("data").and_then(|data| data.get("supported")).and_then(Value::as_array);
    let supported = supported.into_iter().flatten().filter_map(Value::as_str);
    RpcError {
        code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
        message: text.to_owned(),
        supported: supported.take(MAX_REVISIONS).map(str::to_owned).collect(),
    }
}

/// The JSON of a request by this client.
pub(crate) fn format_request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The JSON of a notification by this client.
pub(crate) fn format_notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The reply to a server's request outside of a call: `ping` is answered, other methods are refused.
pub(crate) fn format_reply(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => {
            let error = json!({"code": -32601, "message": "not offered by this client"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_leaves_a_message_readable() {
        let text = br#"{"jsonrpc":"2.0","id":7,"result":{"text":"cut \ud83d"}}"#;
        let result = json!({"text": "cut \u{fffd}"});
        assert_eq!(RpcMessage::from_bytes(text).unwrap(), RpcMessage::Answer(Some(7), Ok(result)));
        let text = br#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"\ude00 no"}}"#;
        let RpcMessage::Answer(_, Err(error)) = RpcMessage::from_bytes(text).unwrap() else {
            panic!()
        };
        assert_eq!(error.message, "\u{fffd} no");
        let text = b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":\"\xed\xa0\xbd\"}";
        let told = RpcMessage::Told { method: "m".to_owned(), params: "\u{fffd}".into() };
        assert_eq!(RpcMessage::from_bytes(text).unwrap(), told);
    }

    #[test]
    fn a_message_is_an_answer_a_request_or_a_notification_or_none() {
        let read = |text: &str| RpcMessage::from_bytes(text.as_bytes());
        let answer = read(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#).unwrap();
        assert_eq!(answer, RpcMessage::Answer(Some(7), Ok(json!({"a": 1}))));
        let answer = read(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#).unwrap();
        assert_eq!(
            answer,
            RpcMessage::Answer(None, Ok(json!({}))),
            "another kind of id is another id"
        );
        let failed = read(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}"#).unwrap();
        let error = RpcError { code: -1, message: "m".to_owned(), supported: Vec::new() };
        assert_eq!(failed, RpcMessage::Answer(Some(1), Err(error)));
        let asked = read(r#"{"jsonrpc":"2.0","id":"s","method":"roots/list"}"#).unwrap();
        let params = Value::Null;
        assert_eq!(
            asked,
            RpcMessage::Asked { id: "s".into(), method: "roots/list".into(), params }
        );
        for none in [
            "",
            "[]",
            "{}",
            "null",
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        ] {
            assert!(read(none).is_err(), "{none}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}"#, "[".repeat(1 << 20));
        assert!(read(&deep).is_err());
        assert!(read(&" ".repeat(MAX_MESSAGE + 1)).is_err());
    }

    #[test]
    fn several_messages_in_one_text_are_each_read() {
        let read = |text: &str| RpcMessage::read_all(text.as_bytes());
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let told = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        assert_eq!(read(answer).unwrap(), [RpcMessage::from_bytes(answer.as_bytes()).unwrap()]);
        let both = read(&format!("[{told}, {answer}]")).unwrap();
        assert_eq!(both[1], RpcMessage::Answer(Some(7), Ok(json!({}))));
        for none in ["", "[]", "[1]", "[[]]", "{}", &format!("[{answer}, 1]")] {
            assert!(read(none).is_err(), "{none}");
        }
        assert!(is_of_protocol(format!("[{answer}, 1]").as_bytes()));
        for logged in ["[1]", "{\"level\": \"info\"}", "ping", "[DONE]", "jsonrpc"] {
            assert!(!is_of_protocol(logged.as_bytes()), "{logged}");
        }
    }

    #[test]
    fn the_absent_part_of_an_answer_may_be_null() {
        let read = |text: &str| RpcMessage::from_bytes(text.as_bytes()).unwrap();
        let answer = read(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1},"error":null}"#);
        assert_eq!(answer, RpcMessage::Answer(Some(7), Ok(json!({"a": 1}))));
        let failed = r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-1,"message":"m"}}"#;
        let RpcMessage::Answer(Some(7), Err(error)) = read(failed) else { panic!() };
        assert_eq!((error.code, error.message.as_str()), (-1, "m"));
    }

    #[test]
    fn a_server_gets_nothing_but_a_ping() {
        assert_eq!(format_reply(&json!(1), "ping")["result"], json!({}));
        for method in ["sampling/createMessage", "roots/list", "elicitation/create", "x"] {
            assert_eq!(format_reply(&json!("i"), method)["error"]["code"], -32601, "{method}");
        }
    }
}
