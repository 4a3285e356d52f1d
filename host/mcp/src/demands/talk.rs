//! Answers the requests that a server makes during one call.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_policy::{DenyCode, ShownText};
use belljar_sandbox::{OutgoingGate, ProgressSink};
use serde_json::{Value, json};

use super::dialogue::{FormResponse, fill_form, show_address};
use super::form::{Elicitation, UnfitRequest};
use super::respondent::CallRespondent;
use super::sampling::SampleRequest;
use super::waits::PersonWaits;
use super::{SamplingGrant, ServerResponder};
use crate::exchange::ExchangeFault;
use crate::limits::{MAX_FORMS, MAX_SAMPLES};
use crate::server::Server;

/// The methods of a server's requests.
const FORM: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// Error codes of JSON-RPC and of MCP: the request is not offered, is malformed, or was refused.
const NOT_OFFERED: i64 = -32601;
const MALFORMED: i64 = -32602;
const REFUSED: i64 = -1;

/// One call, with everything that answers the server's requests during it.
pub(crate) struct CallTalk<'a> {
    server: &'a Server,
    /// Answers the server's requests; `None` = they are refused or declined.
    answers: Option<&'a dyn ServerResponder>,
    pub(crate) progress: Option<ProgressSink>,
    /// Counts the time that calls of this connection wait for a person.
    waits: &'a PersonWaits,
    forms: AtomicUsize,
    samples: AtomicUsize,
    person: Option<CallRespondent<'a>>,
}

/// The error that is sent to a server in place of a result.
pub(crate) struct DemandRefusal {
    code: i64,
    /// The text for the server, which contains no facts about this machine.
    word: &'static str,
}

impl<'a> CallTalk<'a> {
    /// Prepares to answer the requests of one call.
    pub(crate) fn for_call(
        server: &'a Server,
        answers: Option<&'a dyn ServerResponder>,
        progress: Option<ProgressSink>,
        waits: &'a PersonWaits,
    ) -> Self {
        let (forms, samples) = (AtomicUsize::default(), AtomicUsize::default());
        let person = answers.map(CallRespondent::with_answers);
        Self { server, answers, progress, waits, forms, samples, person }
    }

    /// Returns whether any request of the server is granted.
    pub(crate) fn grants_something(&self) -> bool {
        self.server.granted.is_something()
    }

    /// The JSON-RPC reply to a request of the server.
    pub(crate) async fn reply_to_request(
        &self,
        gate: &OutgoingGate,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Value {
        match self.handle_request(gate, method, params).await {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(DemandRefusal { code, word }) => {
                let error = json!({"code": code, "message": word});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        }
    }

    /// The result for a demand that the server made instead of an answer. A form is declined if no one can
    /// answer it; any other demand without a grant ends the call (INV-331).
    pub(crate) async fn in_round(
        &self,
        gate: &OutgoingGate,
        method: &str,
        params: &Value,
    ) -> Result<Value, ExchangeFault> {
        match self.handle_request(gate, method, params).await {
            Ok(result) if method != "ping" => Ok(result),
            Err(_) if method == FORM => Ok(FormResponse::Declined.into_result()),
            Ok(_) | Err(_) => Err(ExchangeFault::Broken("it asks for what is not offered to it")),
        }
    }

    /// The result of a server's request. INV-360: a request that is not granted is refused, whatever its
    /// form.
    async fn handle_request(
        &self,
        gate: &OutgoingGate,
        method: &str,
        params: &Value,
    ) -> Result<Value, DemandRefusal> {
        let granted = &self.server.granted;
        match (method, &granted.sampling, &granted.roots) {
            ("ping", ..) => Ok(json!({})),
            (FORM, ..) if granted.elicitation => self.handle_elicitation(gate, params).await,
            (SAMPLE, Some(grant), _) => self.handle_sampling(gate, params, grant).await,
            (ROOTS, _, Some(roots)) => {
                let roots = roots.iter().filter_map(|path| root_json(path));
                Ok(json!({"roots": roots.collect::<Vec<_>>()}))
            }
            _ => {
                let method = ShownText::clip_line(method, 80);
                let facts = format!("it asks for `{method}`, which is not granted to it");
                Err(self.log_refusal(gate, NOT_OFFERED, facts))
            }
        }
    }

    /// Shows a form or an address to the person, unless it is unfit, the server is muted, or too many were
    /// shown.
    async fn handle_elicitation(
        &self,
        gate: &OutgoingGate,
        params: &Value,
    ) -> Result<Value, DemandRefusal> {
        let name = self.server.name();
        let declined = |why: &str| {
            gate.record_denial(
                DenyCode::RequestNotAllowed,
                "request of a server",
                format!("{why}: declined"),
            );
            Ok(FormResponse::Declined.into_result())
        };
        let asked = match Elicitation::from_params(params) {
            Ok(asked) => asked,
            Err(UnfitRequest::Declined(why)) => return declined(why),
            Err(UnfitRequest::Malformed(why)) => {
                return Err(self.log_refusal(gate, MALFORMED, why.to_owned()));
            }
        };
        let (Some(answers), Some(person)) = (self.answers, &self.person) else {
            return Ok(FormResponse::Cancelled.into_result());
        };
        if answers.is_muted(name) {
            return declined("the person wants to be asked nothing more for it");
        }
        if answers.is_given_up(name) {
            // INV-361: every further form would wait as long as a person may need.
            let facts = "nobody came to its forms before: cancelled".to_owned();
            gate.record_denial(DenyCode::RequestNotAllowed, "request of a server", facts);
            return Ok(FormResponse::Cancelled.into_result());
        }
        if self.forms.fetch_add(1, Ordering::Relaxed) >= MAX_FORMS {
            return declined("it asks for too many forms in one call");
        }
        let waiting = self.waits.begin_wait();
        let was_gone = person.is_gone();
        let word = match &asked {
            Elicitation::Form(form) => fill_form(form, name, person).await,
            Elicitation::Address(address) => show_address(address, name, person).await,
        };
        drop(waiting);
        // If an earlier question went unanswered, this one was not asked, so it does not count as unanswered.
        if !was_gone {
            answers.record_attendance(name, !person.is_gone());
        }
        gate.log_line("asked", &format!("it asked the person, who {}", word.name()));
        Ok(word.into_result())
    }

    /// Has a model write a text for the server, at most [`MAX_SAMPLES`] in one call; returns it in the form
    /// of MCP.
    async fn handle_sampling(
        &self,
        gate: &OutgoingGate,
        params: &Value,
        grant: &SamplingGrant,
    ) -> Result<Value, DemandRefusal> {
        let Some(answers) = self.answers else {
            return Err(self.log_refusal(gate, REFUSED, "nothing here asks a model".to_owned()));
        };
        let sample = SampleRequest::from_params(params);
        let sample = sample.map_err(|why| self.log_refusal(gate, MALFORMED, why.to_owned()))?;
        if self.samples.fetch_add(1, Ordering::Relaxed) >= MAX_SAMPLES {
            let why = "it asks for too many texts in one call".to_owned();
            return Err(self.log_refusal(gate, REFUSED, why));
        }
        let waiting = self.waits.begin_wait();
        let sampled = answers.sample_text(self.server.name(), grant, &sample).await;
        drop(waiting);
        match sampled {
            Ok(sampled) => {
                let words = sampled.text.chars().count();
                let model = &sampled.model;
                gate.log_line("sampled", &format!("`{model}` wrote {words} characters for it"));
                Ok(json!({
                    "role": "assistant",
                    "content": {"type": "text", "text": sampled.text},
                    "model": sampled.model,
                    "stopReason": if sampled.is_cut { "maxTokens" } else { "endTurn" },
                }))
            }
            Err(why) => {
                Err(self.log_refusal(gate, REFUSED, format!("no text is written for it: {why}")))
            }
        }
    }

    /// Logs a refusal for the operator; the server is not told the reason.
    fn log_refusal(&self, gate: &OutgoingGate, code: i64, facts: String) -> DemandRefusal {
        let facts = format!("the MCP server `{}`: {facts}", self.server.name());
        gate.record_denial(DenyCode::RequestNotAllowed, "request of a server", facts);
        let word = match code {
            MALFORMED => "this client takes no such request",
            REFUSED => "refused",
            _ => "not offered by this client",
        };
        DemandRefusal { code, word }
    }
}

/// A directory as an MCP root.
fn root_json(path: &Path) -> Option<Value> {
    let uri = url::Url::from_directory_path(path).ok()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(json!({"uri": uri.as_str().trim_end_matches('/'), "name": name}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_as_the_protocol_does() {
        let named = root_json(Path::new("/srv/my notes")).unwrap();
        assert_eq!(named, json!({"uri": "file:///srv/my%20notes", "name": "my notes"}));
    }
}
