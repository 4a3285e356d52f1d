//! Requests for documents and tokens: through the network gate, to one host each, without following
//! redirects, and with a bounded size.

use std::collections::BTreeSet;

use belljar_policy::{DenyCode, ShownText};
use belljar_sandbox::{HttpReply, OutgoingGate, OutgoingSpec};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde_json::Value;

use super::AuthError;
use super::reach::{host_scope, refused_error};
use crate::call::CallSpec;
use crate::exchange::at_most;
use crate::limits::{MAX_DOCUMENT, MAX_SHOWN};
use crate::server::Server;

const JSON: &str = "application/json";

/// What is needed to send such requests on behalf of one server's call.
#[derive(Clone, Copy)]
pub(crate) struct AuthRequester<'a> {
    pub(crate) server: &'a Server,
    /// The network gate of the call, whose receipt lists these requests too.
    pub(crate) gate: &'a OutgoingGate,
    pub(crate) spec: &'a CallSpec<'a>,
}

/// The body of a POST request, with the client's authentication.
pub(super) struct PostedForm {
    pub(super) kind: &'static str,
    pub(super) body: String,
    pub(super) authorization: Option<HeaderValue>,
}

impl AuthRequester<'_> {
    /// Fetches a JSON document; `None` if it does not exist.
    pub(super) async fn fetch_document(&self, url: &str) -> Result<Option<Value>, AuthError> {
        let mut got = self.send_request(url, Method::GET, None).await?;
        if got.status != StatusCode::OK {
            return Ok(None);
        }
        self.read_json(url, &mut got).await.map(Some)
    }

    /// Posts a form or JSON; returns the status and the JSON answer.
    pub(super) async fn post_form(
        &self,
        url: &str,
        posted: PostedForm,
    ) -> Result<(StatusCode, Value), AuthError> {
        let mut got = self.send_request(url, Method::POST, Some(posted)).await?;
        let value = self.read_json(url, &mut got).await;
        match got.status.is_success() {
            true => Ok((got.status, value?)),
            // A refusal may have no JSON body.
            false => Ok((got.status, value.unwrap_or_default())),
        }
    }

    /// Sends one request through a separate gate that allows only the host of `url`; a redirect is an error.
    async fn send_request(
        &self,
        url: &str,
        method: Method,
        posted: Option<PostedForm>,
    ) -> Result<HttpReply, AuthError> {
        let Self { server, gate, spec } = self;
        let scope = host_scope(server, url).inspect_err(|why| {
            gate.record_denial(DenyCode::HostNotAllowed, "a server of tokens", why.to_string());
        })?;
        let none = BTreeSet::new();
        let (secrets, budget, limits) = (spec.secrets, spec.budget, spec.limits);
        let outgoing = OutgoingSpec { scope, secrets, joined: &none, budget, limits };
        let gate = gate.sibling_gate(spec.sandbox, outgoing);
        let mut request = Request::builder().method(method).uri(url).header(ACCEPT, JSON);
        let mut body = Bytes::new();
        if let Some(posted) = posted {
            request = request.header(CONTENT_TYPE, posted.kind);
            if let Some(mut authorization) = posted.authorization {
                authorization.set_sensitive(true);
                request = request.header(AUTHORIZATION, authorization);
            }
            body = posted.body.into();
        }
        let request = request.body(body).map_err(|_| refused_error(url, "is no address"))?;
        let shown = ShownText::clip_line(url, MAX_SHOWN);
        let got = gate.send_request(request).await;
        let got = got.map_err(|why| AuthError(format!("`{shown}` cannot be reached: {why}")))?;
        if got.status.is_redirection() {
            let facts =
                format!("`{shown}` answers with status {}: no redirect is followed", got.status);
            gate.record_denial(DenyCode::HostNotAllowed, "redirect", facts.clone());
            return Err(AuthError(facts));
        }
        Ok(got)
    }

    /// Reads a JSON object of bounded size from a reply.
    async fn read_json(&self, url: &str, got: &mut HttpReply) -> Result<Value, AuthError> {
        let shown = ShownText::clip_line(url, MAX_SHOWN);
        let bytes = at_most(got, MAX_DOCUMENT).await;
        let bytes = bytes.map_err(|why| AuthError(format!("`{shown}`: {why}")))?;
        let value =
            belljar_received::json::from_slice::<Value>(&bytes).ok().filter(Value::is_object);
        value.ok_or_else(|| AuthError(format!("`{shown}` answers with no JSON object")))
    }
}
