//! One exchange over `wasi:http`, under one deadline.

use super::{Request, Response, Url};
use crate::ToolError;
use wasip2::clocks::monotonic_clock::{now, subscribe_instant};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::StreamError;

/// Bytes asked of the body at once. The host gives at most as much.
const READ: u64 = 64 * 1024;

/// Bytes of a request's body written at once; what the contract of `wasi:io` allows.
const WRITE: usize = 4096;

pub(super) fn send(request: &Request, url: &Url) -> Result<Response, ToolError> {
    let deadline = Deadline::after(request);
    let outgoing = outgoing(request, url)?;
    let body = outgoing.body().map_err(|()| unusable("a request without a body"))?;
    let future = handle(outgoing, Some(options(request)?)).map_err(|code| explain(&code, url))?;
    write(body, request.body.as_deref().unwrap_or_default())
        .map_err(|code| code.map_or_else(|| unusable("the body"), |code| explain(&code, url)))?;
    let incoming = wait(&future, &deadline, url)?;
    let status = incoming.status();
    let headers = incoming.headers().entries();
    let headers =
        headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let (body, truncated) = read(&incoming, request.max_body, &deadline, url)?;
    Ok(Response { status, headers, body, truncated })
}

/// The one moment by which everything is done.
struct Deadline(Pollable);

impl Deadline {
    fn after(request: &Request) -> Deadline {
        let nanoseconds = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
        Deadline(subscribe_instant(now().saturating_add(nanoseconds)))
    }

    /// Waits for `ready`; `false` when the time is over first.
    fn await_or_expire(&self, ready: &Pollable) -> bool {
        poll(&[ready, &self.0]).contains(&0)
    }
}

fn outgoing(request: &Request, url: &Url) -> Result<OutgoingRequest, ToolError> {
    let headers = Fields::new();
    for (name, value) in &request.headers {
        headers
            .append(name, value.as_bytes())
            .map_err(|_| unusable(&format!("the header `{name}`")))?;
    }
    if let Some(body) = &request.body {
        headers
            .append("content-length", body.len().to_string().as_bytes())
            .map_err(|_| unusable("the header `content-length`"))?;
    }
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if url.is_secure() { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method(&request.method)).map_err(|()| unusable("the method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| unusable("the scheme"))?;
    outgoing.set_authority(Some(url.host())).map_err(|()| unusable("the host"))?;
    outgoing.set_path_with_query(Some(url.target())).map_err(|()| unusable("the path"))?;
    Ok(outgoing)
}

fn options(request: &Request) -> Result<RequestOptions, ToolError> {
    let nanoseconds = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
    let options = RequestOptions::new();
    let set = options
        .set_connect_timeout(Some(nanoseconds))
        .and_then(|()| options.set_first_byte_timeout(Some(nanoseconds)))
        .and_then(|()| options.set_between_bytes_timeout(Some(nanoseconds)));
    set.map(|()| options).map_err(|()| unusable("the timeout"))
}

fn write(body: OutgoingBody, mut bytes: &[u8]) -> Result<(), Option<ErrorCode>> {
    if !bytes.is_empty() {
        let stream = body.write().map_err(|()| None)?;
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(WRITE));
            stream.blocking_write_and_flush(now).map_err(|error| code_of(&error))?;
            bytes = rest;
        }
    }
    OutgoingBody::finish(body, None).map_err(Some)
}

fn wait(
    future: &FutureIncomingResponse,
    deadline: &Deadline,
    url: &Url,
) -> Result<IncomingResponse, ToolError> {
    loop {
        match future.get() {
            Some(Ok(Ok(response))) => return Ok(response),
            Some(Ok(Err(code))) => return Err(explain(&code, url)),
            Some(Err(())) => return Err(unusable("the response")),
            None if deadline.await_or_expire(&future.subscribe()) => {}
            None => return Err(late(url)),
        }
    }
}

fn read(
    response: &IncomingResponse,
    cap: usize,
    deadline: &Deadline,
    url: &Url,
) -> Result<(Vec<u8>, bool), ToolError> {
    let body: IncomingBody = response.consume().map_err(|()| unusable("the body"))?;
    let stream = body.stream().map_err(|()| unusable("the body"))?;
    let ready = stream.subscribe();
    let mut bytes = Vec::new();
    loop {
        // One byte past the cap tells a body that ends there from one that goes on.
        let wanted = (cap as u64).saturating_add(1).saturating_sub(bytes.len() as u64);
        if wanted == 0 {
            bytes.truncate(cap);
            return Ok((bytes, true));
        }
        if !deadline.await_or_expire(&ready) {
            // What has arrived is worth more than an error.
            return if bytes.is_empty() { Err(late(url)) } else { Ok((bytes, true)) };
        }
        match stream.read(wanted.min(READ)) {
            Ok(chunk) => bytes.extend_from_slice(&chunk),
            Err(StreamError::Closed) => return Ok((bytes, false)),
            Err(error) => {
                return Err(match code_of(&error) {
                    Some(code) => explain(&code, url),
                    None => {
                        ToolError::Failed(format!("the response of `{}` broke off", url.host()))
                    }
                });
            }
        }
    }
}

fn code_of(error: &StreamError) -> Option<ErrorCode> {
    match error {
        StreamError::LastOperationFailed(error) => http_error_code(error),
        StreamError::Closed => None,
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

/// A part of the request that the host's HTTP rules do not take.
fn unusable(what: &str) -> ToolError {
    ToolError::Failed(format!("{what} cannot be used in an HTTP exchange"))
}

fn late(url: &Url) -> ToolError {
    ToolError::Failed(format!("`{}` did not answer in time", url.host()))
}

fn explain(code: &ErrorCode, url: &Url) -> ToolError {
    let host = url.host();
    match code {
        ErrorCode::HttpRequestDenied => {
            ToolError::Denied(format!("requests to `{host}` are not allowed"))
        }
        ErrorCode::DestinationIpProhibited => {
            ToolError::Denied(format!("the address of `{host}` is not allowed"))
        }
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            ToolError::Failed(format!("the name `{host}` could not be resolved"))
        }
        ErrorCode::ConnectionRefused => {
            ToolError::Failed(format!("`{host}` refused the connection"))
        }
        ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => late(url),
        ErrorCode::ConnectionLimitReached => {
            ToolError::Failed("too many connections are open already".to_owned())
        }
        ErrorCode::TlsProtocolError
        | ErrorCode::TlsCertificateError
        | ErrorCode::TlsAlertReceived(_) => {
            ToolError::Failed(format!("no secure connection to `{host}` could be made"))
        }
        ErrorCode::HttpResponseBodySize(_) | ErrorCode::HttpResponseHeaderSectionSize(_) => {
            ToolError::TooLarge(format!("the response of `{host}` is larger than allowed"))
        }
        other => ToolError::Failed(format!("the exchange with `{host}` failed: {}", words(other))),
    }
}

/// `ErrorCode::HttpProtocolError` as `http protocol error`. Payloads are left out: their
/// text comes from elsewhere.
fn words(code: &ErrorCode) -> String {
    let name = format!("{code:?}");
    let name = name.strip_prefix("ErrorCode::").unwrap_or(&name);
    let mut words = String::new();
    for character in name.chars().take_while(char::is_ascii_alphanumeric) {
        if character.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(character.to_ascii_lowercase());
    }
    words
}
