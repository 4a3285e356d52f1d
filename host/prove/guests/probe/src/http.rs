//! Requests of which every part is the attacker's.

use serde::Deserialize;
use serde_json::json;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use crate::Said;
use crate::held::{self, Held};

/// Bytes of a reply's body shown in the answer.
const SHOWN: usize = 4096;

/// One exchange. What is not stated is not set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    scheme: Option<String>,
    #[serde(default)]
    authority: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Text of the body, `times` times.
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    times: Option<usize>,
    /// Timeouts, in nanoseconds.
    #[serde(default)]
    connect: Option<u64>,
    #[serde(default)]
    first_byte: Option<u64>,
    #[serde(default)]
    between_bytes: Option<u64>,
    /// Bytes of the reply's body to read.
    #[serde(default = "plenty")]
    read: usize,
}

/// One step.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Sends and reads the reply.
    Http { request: Request },
    /// Sends and keeps the promise of a reply.
    HttpSend { request: Request },
    /// Keeps a request that is never sent.
    HttpHold { request: Request },
    /// Waits for a reply that was promised and reads it.
    HttpReply {
        held: usize,
        #[serde(default = "plenty")]
        read: usize,
    },
}

fn plenty() -> usize {
    1 << 20
}

impl Step {
    pub(crate) fn run(self) -> Said {
        match self {
            Self::Http { request } => reply(&request.send()?, request.read),
            Self::HttpSend { request } => {
                Ok(json!({ "held": held::keep(Held::Reply(request.send()?)) }))
            }
            Self::HttpHold { request } => {
                Ok(json!({ "held": held::keep(Held::Request(request.outgoing()?)) }))
            }
            Self::HttpReply { held, read } => match held::take(held)? {
                Held::Reply(promised) => reply(&promised, read),
                _ => held::wrong(),
            },
        }
    }
}

impl Request {
    fn outgoing(&self) -> Result<OutgoingRequest, String> {
        let headers = Fields::new();
        for (name, value) in &self.headers {
            headers
                .append(name, value.as_bytes())
                .map_err(|error| format!("header `{name}`: {error:?}"))?;
        }
        let request = OutgoingRequest::new(headers);
        let unusable = |what: &str| format!("{what} refused");
        if let Some(text) = &self.method {
            request.set_method(&method(text)).map_err(|()| unusable("method"))?;
        }
        let scheme = self.scheme.as_deref().map(|text| match text {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => Scheme::Other(other.to_owned()),
        });
        request.set_scheme(scheme.as_ref()).map_err(|()| unusable("scheme"))?;
        request.set_authority(self.authority.as_deref()).map_err(|()| unusable("authority"))?;
        request.set_path_with_query(self.path.as_deref()).map_err(|()| unusable("path"))?;
        Ok(request)
    }

    fn send(&self) -> Result<FutureIncomingResponse, String> {
        let request = self.outgoing()?;
        let options = RequestOptions::new();
        let set = options
            .set_connect_timeout(self.connect)
            .and_then(|()| options.set_first_byte_timeout(self.first_byte))
            .and_then(|()| options.set_between_bytes_timeout(self.between_bytes));
        set.map_err(|()| "timeout refused".to_owned())?;
        let body = request.body().map_err(|()| "no body".to_owned())?;
        let promised = handle(request, Some(options)).map_err(|error| word(&error))?;
        if let Some(text) = &self.body {
            let stream = body.write().map_err(|()| "body refused".to_owned())?;
            let content = text.repeat(self.times.unwrap_or(1));
            for piece in content.as_bytes().chunks(4096) {
                stream
                    .blocking_write_and_flush(piece)
                    .map_err(|error| crate::streams::word(&error))?;
            }
        }
        OutgoingBody::finish(body, None).map_err(|error| word(&error))?;
        Ok(promised)
    }
}

fn reply(promised: &FutureIncomingResponse, most: usize) -> Said {
    let response = loop {
        match promised.get() {
            Some(Ok(Ok(response))) => break response,
            Some(Ok(Err(error))) => return Err(word(&error)),
            Some(Err(())) => return Err("taken already".to_owned()),
            None => promised.subscribe().block(),
        }
    };
    let headers: Vec<(String, String)> = response
        .headers()
        .entries()
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let body = response.consume().map_err(|()| "no body".to_owned())?;
    let (bytes, error) = read(&body, most);
    let shown = bytes.get(..bytes.len().min(SHOWN)).unwrap_or_default();
    Ok(json!({
        "status": response.status(),
        "headers": headers,
        "body": String::from_utf8_lossy(shown),
        "length": bytes.len(),
        "error": error,
    }))
}

fn read(body: &IncomingBody, most: usize) -> (Vec<u8>, Option<String>) {
    let mut bytes = Vec::new();
    let Ok(stream) = body.stream() else { return (bytes, Some("no stream".to_owned())) };
    while bytes.len() < most {
        match stream.blocking_read((most - bytes.len()).min(1 << 16) as u64) {
            Ok(more) => bytes.extend(more),
            Err(StreamError::Closed) => break,
            Err(error) => return (bytes, Some(crate::streams::word(&error))),
        }
    }
    (bytes, None)
}

fn method(text: &str) -> Method {
    match text {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn word(error: &ErrorCode) -> String {
    format!("{error:?}")
}
