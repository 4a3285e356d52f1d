//! The errors a guest gets for a refused or failed request.

use belljar_policy::DenyCode;
use wasmtime_wasi_http::Error;

use super::metered::{BodyFault, FaultCell};
use crate::receipt::Denial;
use crate::receipt::record::{CallRecord, clip_text};

/// The most bytes of a path with its query, because servers accept about as much.
pub(crate) const MAX_PATH: usize = 8 << 10;
/// Records a refusal and returns the guest's error.
pub(crate) fn deny_request(record: &CallRecord, code: DenyCode, facts: String) -> Error {
    record.add_denial(Denial::new(code, "request", clip_text(&facts)));
    Error::HttpRequestDenied
}

/// The error for a broken connection. If the byte meter broke it, the error says so.
pub(crate) fn broken_error(fault: &FaultCell, error: &hyper::Error) -> Error {
    match fault.get() {
        Some(BodyFault::Egress) => return Error::HttpRequestBodySize(None),
        Some(BodyFault::Ingress | BodyFault::Reply) => return Error::HttpResponseBodySize(None),
        None => {}
    }
    if error.is_parse_too_large() {
        Error::HttpResponseHeaderSectionSize(None)
    } else if error.is_incomplete_message() {
        Error::HttpResponseIncomplete
    } else if error.is_user() {
        // The guest's body broke off, or its trailers were refused.
        Error::HttpRequestDenied
    } else {
        Error::HttpProtocolError
    }
}
