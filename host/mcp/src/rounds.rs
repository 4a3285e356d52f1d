//! Calls of several rounds: instead of a result, a server demands input, and the call is repeated with the
//! answers. A server may only demand what was announced; without a grant a form is declined.

use serde_json::{Map, Value};

use crate::exchange::ExchangeFault;
use crate::limits::{MAX_ASKED, MAX_STATE};

/// The input that a server demands before it answers.
#[derive(Debug, PartialEq)]
pub(crate) struct RequiredInput {
    /// The single demands.
    pub(crate) requests: Vec<InputDemand>,
    /// The server's state, which is sent back unchanged with the answers.
    state: Option<String>,
}

/// One demand of a server for input that it needs before it completes a call.
#[derive(Debug, PartialEq)]
pub(crate) struct InputDemand {
    /// The server's own name for the demand, for example `form-1`.
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl RequiredInput {
    /// Parses a result; `None` if it is final.
    pub(crate) fn from_result(result: &Value) -> Result<Option<Self>, ExchangeFault> {
        match result.get("resultType").map(Value::as_str) {
            None | Some(Some("complete")) => return Ok(None),
            Some(Some("input_required")) => {}
            Some(_) => {
                return Err(ExchangeFault::Broken("its result is of a kind that is not known"));
            }
        }
        let fields = result.get("inputRequests").and_then(Value::as_object);
        let demand = |(key, request): (&String, &Value)| {
            let method = request.get("method")?.as_str()?.to_owned();
            let params = request.get("params").cloned().unwrap_or_default();
            Some(InputDemand { key: key.clone(), method, params })
        };
        let requests: Option<Vec<_>> = fields.into_iter().flatten().map(demand).collect();
        let requests =
            requests.ok_or(ExchangeFault::Broken("it asks for more, and not for what"))?;
        if requests.len() > MAX_ASKED {
            return Err(ExchangeFault::Broken("it asks for too much"));
        }
        let state = match result.get("requestState") {
            None => None,
            Some(Value::String(state)) if state.len() <= MAX_STATE => Some(state.clone()),
            Some(_) => return Err(ExchangeFault::Broken("its state is none")),
        };
        if requests.is_empty() && state.is_none() {
            return Err(ExchangeFault::Broken("it asks for more, and not for what"));
        }
        Ok(Some(Self { requests, state }))
    }

    /// The parameters of the next round: those of the call, the answers, and the server's state.
    pub(crate) fn next_parameters(self, call: &Value, responses: Map<String, Value>) -> Value {
        let mut next = call.clone();
        if !responses.is_empty() {
            next["inputResponses"] = Value::Object(responses);
        }
        if let Some(state) = self.state {
            next["requestState"] = Value::String(state);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(result: &Value) -> Option<RequiredInput> {
        RequiredInput::from_result(result).ok().flatten()
    }

    #[test]
    fn the_answers_go_back_under_their_names_and_the_state_as_it_came() {
        let call = json!({"name": "t", "arguments": {}});
        let asked = json!({
            "resultType": "input_required",
            "inputRequests": {"sure": {"method": "elicitation/create", "params": {"message": "m"}}},
            "requestState": "{\"n\": 1}",
        });
        let wanted_now = wanted(&asked).unwrap();
        assert_eq!(wanted_now.requests[0].params, json!({"message": "m"}));
        let answers = json!({"sure": {"action": "decline"}});
        let next = wanted_now.next_parameters(&call, answers.as_object().cloned().unwrap());
        let expected = json!({
            "name": "t", "arguments": {}, "requestState": "{\"n\": 1}", "inputResponses": answers,
        });
        assert_eq!(next, expected);
        let stateless = json!({
            "resultType": "input_required",
            "inputRequests": {"sure": {"method": "elicitation/create"}},
        });
        let next = wanted(&stateless).unwrap().next_parameters(&call, Map::new());
        assert!(next.get("requestState").is_none(), "{next}");
    }

    #[test]
    fn a_demand_that_is_none_ends_the_call() {
        let many: Map<String, Value> =
            (0..100).map(|n| (n.to_string(), json!({"method": "elicitation/create"}))).collect();
        for wrong in [
            json!({"resultType": "input_required"}),
            json!({"resultType": "input_required", "inputRequests": {"x": {}}}),
            json!({"resultType": "input_required", "requestState": 3}),
            json!({"resultType": "input_required", "requestState": "x".repeat(MAX_STATE + 1)}),
            json!({"resultType": "input_required", "inputRequests": many}),
            json!({"resultType": "task"}),
            json!({"resultType": 3}),
        ] {
            assert!(RequiredInput::from_result(&wrong).is_err(), "{wrong}");
        }
        for whole in [json!({}), json!({"resultType": "complete"}), json!(null)] {
            assert!(matches!(RequiredInput::from_result(&whole), Ok(None)), "{whole}");
        }
    }
}
