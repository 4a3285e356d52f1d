//! The ids of OpenAI's API, made only from the id of an agent's message. They are no secret: with another
//! tenant's id, a caller finds nothing.

use crate::http::ids::is_id;

/// The most bytes of a call's id that a caller invents.
pub(crate) const MAX_CALL_ID: usize = 256;

/// The id of a chat completion, from the message's id.
pub(crate) fn completion_id(message: &str) -> String {
    format!("chatcmpl-{message}")
}

/// The id of a response, from the message's id.
pub(crate) fn response_id(message: &str) -> String {
    format!("resp_{message}")
}

/// The message's id in a response's id; `None` if the text is no such id.
pub(crate) fn message_from_response(id: &str) -> Option<&str> {
    id.strip_prefix("resp_").filter(|message| is_id(message))
}

/// The id of the call with the index `place` at the end of a turn.
pub(crate) fn call_id(message: &str, place: usize) -> String {
    format!("call_{message}_{place}")
}

/// The message's id and the index in a call's id; `None` if this server did not make the id.
pub(crate) fn parse_call_id(id: &str) -> Option<(&str, usize)> {
    let (message, place) = id.strip_prefix("call_")?.rsplit_once('_')?;
    // Accepted only if it is formatted exactly as it is made, so each call has one id.
    let number = place.parse::<usize>().ok().filter(|number| number.to_string() == place)?;
    is_id(message).then_some((message, number))
}

/// The id of the output item with the index `place`.
pub(crate) fn item_id(kind: &str, message: &str, place: usize) -> String {
    format!("{kind}_{message}_{place}")
}

/// The message's id in an output item's id; `None` if the text is no such id.
pub(crate) fn item_message(id: &str) -> Option<&str> {
    let (_, rest) = id.split_once('_')?;
    let (message, _) = rest.rsplit_once('_')?;
    is_id(message).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_back_to_its_message_and_nothing_else_does() {
        let message = "20261122T000000000Z-0000000000000";
        assert_eq!(message_from_response(&response_id(message)), Some(message));
        assert_eq!(parse_call_id(&call_id(message, 3)), Some((message, 3)));
        assert_eq!(item_message(&item_id("msg", message, 0)), Some(message));
        for id in ["msg_", "msg__1", "msg_../x_1", "", message] {
            assert_eq!(item_message(id), None, "{id}");
        }
        for id in ["resp_", "resp_../x", "chatcmpl-1", "resp_a b", message] {
            assert_eq!(message_from_response(id), None, "{id}");
        }
        for id in ["call_", "call_x", "call_x_", "call_x_01", "call_x_-1", "call_a.b_1"] {
            assert_eq!(parse_call_id(id), None, "{id}");
        }
    }
}
