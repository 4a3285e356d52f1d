//! Implements the traits of `wasi:http` with wasmtime-wasi-http's own host. Added here: calls are counted,
//! and what a guest makes without sending it is limited.

use std::collections::HashSet;

use belljar_policy::{DenyCode, RequestTarget};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingRequest, HostIncomingResponse, HostOutgoingRequest,
    HostOutgoingResponse, HostResponseOutparam,
};
use wasmtime_wasi_http::p2::{HeaderError, HeaderResult, HttpError, HttpResult};
use wasmtime_wasi_http::{Error, FieldMap, RequestOptions, WasiHttpCtxView};

use super::HttpView;
use super::refusal::{MAX_PATH, deny_request};

use types::{ErrorCode, HeaderError as BadHeader, Method, Scheme, StatusCode};

/// The most header lists and unsent requests of a store at a time. Each list may have `MAX_HEADER_BYTES`,
/// and each request one piece of its body.
pub(crate) const MAX_HELD: usize = 128;
/// The most bytes of a method's name; the gate permits only the common ones anyway.
const MAX_METHOD: usize = 32;
/// The most bytes of `host:port`, because a DNS name has at most 253.
const MAX_AUTHORITY: usize = 300;

type Fields = Resource<FieldMap>;
type Request = Resource<HostOutgoingRequest>;
type Options = Resource<RequestOptions>;
type Nanoseconds = Option<types::Duration>;

/// The header lists and unsent requests of a store, by their number in the resource table. If the end of one
/// was missed, its entry is replaced when the number is used again.
#[derive(Debug, Default)]
pub(crate) struct HeldResources(HashSet<u32>);

impl HeldResources {
    fn insert_resource<T: 'static>(&mut self, resource: &Resource<T>) {
        self.0.insert(resource.rep());
    }

    fn remove_resource<T: 'static>(&mut self, resource: &Resource<T>) {
        self.0.remove(&resource.rep());
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_HELD
    }
}

impl HttpView<'_> {
    /// Counts a call into the host, and returns wasmtime-wasi-http's own host.
    fn wasi_view(&mut self) -> WasiHttpCtxView<'_> {
        self.ctx.hooks.gate.record.host_call();
        WasiHttpCtxView { hooks: &mut self.ctx.hooks, table: self.table, ctx: &mut self.ctx.inner }
    }

    /// Refuses to make another resource when the limit is reached. The functions that make them have no error
    /// for this, so the guest traps.
    fn check_room(&self) -> wasmtime::Result<()> {
        if !self.ctx.held.is_full() {
            return Ok(());
        }
        let facts = format!("{MAX_HELD} header lists and requests are held already");
        deny_request(&self.ctx.hooks.gate.record, DenyCode::LimitReached, facts);
        Err(wasmtime::format_err!("too many header lists and requests are held"))
    }

    fn count_resource<T: 'static>(&mut self, made: Resource<T>) -> Resource<T> {
        self.ctx.held.insert_resource(&made);
        made
    }
}

/// Drops a request refused before any check, and returns its target for the receipt. `None`: no rule for
/// hosts could name the target.
pub(crate) fn take_refused(
    view: &mut HttpView<'_>,
    request: Request,
) -> wasmtime::Result<Option<RequestTarget>> {
    let target = target_of(view.table.get(&request)?);
    types::HostOutgoingRequest::drop(view, request)?;
    Ok(target)
}

fn target_of(request: &HostOutgoingRequest) -> Option<RequestTarget> {
    let scheme = match &request.scheme {
        Some(Scheme::Http) => "http",
        Some(Scheme::Https) | None => "https",
        Some(Scheme::Other(_)) => return None,
    };
    let authority = request.authority.as_deref()?;
    RequestTarget::parse(&format!("{scheme}://{authority}/")).ok()
}

/// Defines functions that call wasmtime-wasi-http's own with the same arguments: `Trait: function(arguments)
/// -> result; ...`.
macro_rules! hand_on {
    ($trait:ident: $($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> $result {
            types::$trait::$name(&mut self.wasi_view(), $($arg),*)
        })*
    };
}

impl types::Host for HttpView<'_> {
    hand_on! { Host:
        convert_error_code(err: HttpError) -> wasmtime::Result<ErrorCode>;
        convert_header_error(err: HeaderError) -> wasmtime::Result<BadHeader>;
    }

    /// Tells a guest why a body broke off.
    fn http_error_code(
        &mut self,
        err: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        if let Some(error) = self.table.get(&err)?.downcast_ref::<Error>() {
            return Ok(stream_error(error));
        }
        self.wasi_view().http_error_code(err)
    }
}

/// The error code for an error with which the gate ends a body; `None` for other errors.
fn stream_error(error: &Error) -> Option<ErrorCode> {
    Some(match error {
        Error::HttpRequestDenied => ErrorCode::HttpRequestDenied,
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseContentCoding(name) => {
            ErrorCode::HttpResponseContentCoding(name.clone())
        }
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpResponseHeaderSectionSize(size) => {
            ErrorCode::HttpResponseHeaderSectionSize(*size)
        }
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        _ => return None,
    })
}

impl outgoing_handler::Host for HttpView<'_> {
    fn handle(
        &mut self,
        request: Request,
        options: Option<Options>,
    ) -> HttpResult<Resource<HostFutureIncomingResponse>> {
        self.ctx.held.remove_resource(&request);
        self.wasi_view().handle(request, options)
    }
}

impl types::HostFields for HttpView<'_> {
    hand_on! { HostFields:
        get(fields: Fields, name: String) -> wasmtime::Result<Vec<Vec<u8>>>;
        has(fields: Fields, name: String) -> wasmtime::Result<bool>;
        set(fields: Fields, name: String, values: Vec<Vec<u8>>) -> HeaderResult<()>;
        delete(fields: Fields, name: String) -> HeaderResult<()>;
        append(fields: Fields, name: String, value: Vec<u8>) -> HeaderResult<()>;
        entries(fields: Fields) -> wasmtime::Result<Vec<(String, Vec<u8>)>>;
    }

    fn new(&mut self) -> wasmtime::Result<Fields> {
        self.check_room()?;
        let made = types::HostFields::new(&mut self.wasi_view())?;
        Ok(self.count_resource(made))
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Fields> {
        self.check_room().map_err(HeaderError::trap)?;
        let made = self.wasi_view().from_list(entries)?;
        Ok(self.count_resource(made))
    }

    fn clone(&mut self, fields: Fields) -> wasmtime::Result<Fields> {
        self.check_room()?;
        let made = types::HostFields::clone(&mut self.wasi_view(), fields)?;
        Ok(self.count_resource(made))
    }

    fn drop(&mut self, fields: Fields) -> wasmtime::Result<()> {
        self.ctx.held.remove_resource(&fields);
        types::HostFields::drop(&mut self.wasi_view(), fields)
    }
}

impl types::HostOutgoingRequest for HttpView<'_> {
    hand_on! { HostOutgoingRequest:
        body(request: Request) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>>;
        method(request: Request) -> wasmtime::Result<Method>;
        path_with_query(request: Request) -> wasmtime::Result<Option<String>>;
        scheme(request: Request) -> wasmtime::Result<Option<Scheme>>;
        authority(request: Request) -> wasmtime::Result<Option<String>>;
    }

    fn new(&mut self, headers: Fields) -> wasmtime::Result<Request> {
        self.ctx.held.remove_resource(&headers);
        self.check_room()?;
        let made = types::HostOutgoingRequest::new(&mut self.wasi_view(), headers)?;
        Ok(self.count_resource(made))
    }

    fn set_method(&mut self, request: Request, method: Method) -> wasmtime::Result<Result<(), ()>> {
        if matches!(&method, Method::Other(text) if text.len() > MAX_METHOD) {
            return Ok(Err(()));
        }
        self.wasi_view().set_method(request, method)
    }

    fn set_path_with_query(
        &mut self,
        request: Request,
        path: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        if path.as_ref().is_some_and(|path| path.len() > MAX_PATH) {
            return Ok(Err(()));
        }
        self.wasi_view().set_path_with_query(request, path)
    }

    fn set_scheme(
        &mut self,
        request: Request,
        scheme: Option<Scheme>,
    ) -> wasmtime::Result<Result<(), ()>> {
        if matches!(&scheme, Some(Scheme::Other(text)) if text.len() > MAX_METHOD) {
            return Ok(Err(()));
        }
        self.wasi_view().set_scheme(request, scheme)
    }

    fn set_authority(
        &mut self,
        request: Request,
        authority: Option<String>,
    ) -> wasmtime::Result<Result<(), ()>> {
        if authority.as_ref().is_some_and(|authority| authority.len() > MAX_AUTHORITY) {
            return Ok(Err(()));
        }
        self.wasi_view().set_authority(request, authority)
    }

    fn headers(&mut self, request: Request) -> wasmtime::Result<Fields> {
        self.check_room()?;
        let made = types::HostOutgoingRequest::headers(&mut self.wasi_view(), request)?;
        Ok(self.count_resource(made))
    }

    fn drop(&mut self, request: Request) -> wasmtime::Result<()> {
        self.ctx.held.remove_resource(&request);
        types::HostOutgoingRequest::drop(&mut self.wasi_view(), request)
    }
}

impl types::HostRequestOptions for HttpView<'_> {
    hand_on! { HostRequestOptions:
        new() -> wasmtime::Result<Options>;
        connect_timeout(options: Options) -> wasmtime::Result<Nanoseconds>;
        set_connect_timeout(
            options: Options, time: Nanoseconds
        ) -> wasmtime::Result<Result<(), ()>>;
        first_byte_timeout(options: Options) -> wasmtime::Result<Nanoseconds>;
        set_first_byte_timeout(
            options: Options, time: Nanoseconds
        ) -> wasmtime::Result<Result<(), ()>>;
        between_bytes_timeout(options: Options) -> wasmtime::Result<Nanoseconds>;
        set_between_bytes_timeout(
            options: Options, time: Nanoseconds
        ) -> wasmtime::Result<Result<(), ()>>;
        drop(options: Options) -> wasmtime::Result<()>;
    }
}

impl types::HostOutgoingBody for HttpView<'_> {
    hand_on! { HostOutgoingBody:
        write(
            body: Resource<HostOutgoingBody>
        ) -> wasmtime::Result<Result<Resource<DynOutputStream>, ()>>;
        drop(body: Resource<HostOutgoingBody>) -> wasmtime::Result<()>;
    }

    fn finish(
        &mut self,
        body: Resource<HostOutgoingBody>,
        trailers: Option<Fields>,
    ) -> HttpResult<()> {
        if let Some(trailers) = &trailers {
            self.ctx.held.remove_resource(trailers);
        }
        types::HostOutgoingBody::finish(&mut self.wasi_view(), body, trailers)
    }
}

impl types::HostFutureIncomingResponse for HttpView<'_> {
    hand_on! { HostFutureIncomingResponse:
        get(
            future: Resource<HostFutureIncomingResponse>
        ) -> wasmtime::Result<Option<Result<Result<Resource<HostIncomingResponse>, ErrorCode>, ()>>>;
        subscribe(
            future: Resource<HostFutureIncomingResponse>
        ) -> wasmtime::Result<Resource<DynPollable>>;
        drop(future: Resource<HostFutureIncomingResponse>) -> wasmtime::Result<()>;
    }
}

impl types::HostIncomingResponse for HttpView<'_> {
    hand_on! { HostIncomingResponse:
        status(response: Resource<HostIncomingResponse>) -> wasmtime::Result<StatusCode>;
        consume(
            response: Resource<HostIncomingResponse>
        ) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>>;
        drop(response: Resource<HostIncomingResponse>) -> wasmtime::Result<()>;
    }

    fn headers(&mut self, response: Resource<HostIncomingResponse>) -> wasmtime::Result<Fields> {
        self.check_room()?;
        let made = types::HostIncomingResponse::headers(&mut self.wasi_view(), response)?;
        Ok(self.count_resource(made))
    }
}

impl types::HostIncomingBody for HttpView<'_> {
    hand_on! { HostIncomingBody:
        stream(
            body: Resource<HostIncomingBody>
        ) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>>;
        finish(body: Resource<HostIncomingBody>) -> wasmtime::Result<Resource<HostFutureTrailers>>;
        drop(body: Resource<HostIncomingBody>) -> wasmtime::Result<()>;
    }
}

impl types::HostFutureTrailers for HttpView<'_> {
    hand_on! { HostFutureTrailers:
        subscribe(
            future: Resource<HostFutureTrailers>
        ) -> wasmtime::Result<Resource<DynPollable>>;
        get(
            future: Resource<HostFutureTrailers>
        ) -> wasmtime::Result<Option<Result<Result<Option<Fields>, ErrorCode>, ()>>>;
        drop(future: Resource<HostFutureTrailers>) -> wasmtime::Result<()>;
    }
}

// The resources below are for serving requests, which a tool does not do. None of them can be made, except
// an outgoing response, which is useless.

impl types::HostIncomingRequest for HttpView<'_> {
    hand_on! { HostIncomingRequest:
        method(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Method>;
        path_with_query(
            request: Resource<HostIncomingRequest>
        ) -> wasmtime::Result<Option<String>>;
        scheme(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<Scheme>>;
        authority(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Option<String>>;
        headers(request: Resource<HostIncomingRequest>) -> wasmtime::Result<Fields>;
        consume(
            request: Resource<HostIncomingRequest>
        ) -> wasmtime::Result<Result<Resource<HostIncomingBody>, ()>>;
        drop(request: Resource<HostIncomingRequest>) -> wasmtime::Result<()>;
    }
}

impl types::HostResponseOutparam for HttpView<'_> {
    hand_on! { HostResponseOutparam:
        drop(outparam: Resource<HostResponseOutparam>) -> wasmtime::Result<()>;
        set(
            outparam: Resource<HostResponseOutparam>,
            response: Result<Resource<HostOutgoingResponse>, ErrorCode>
        ) -> wasmtime::Result<()>;
        send_informational(
            outparam: Resource<HostResponseOutparam>, status: u16, headers: Fields
        ) -> HttpResult<()>;
    }
}

impl types::HostOutgoingResponse for HttpView<'_> {
    hand_on! { HostOutgoingResponse:
        status_code(response: Resource<HostOutgoingResponse>) -> wasmtime::Result<StatusCode>;
        set_status_code(
            response: Resource<HostOutgoingResponse>, status: StatusCode
        ) -> wasmtime::Result<Result<(), ()>>;
    }

    fn new(&mut self, headers: Fields) -> wasmtime::Result<Resource<HostOutgoingResponse>> {
        self.ctx.held.remove_resource(&headers);
        self.check_room()?;
        let made = types::HostOutgoingResponse::new(&mut self.wasi_view(), headers)?;
        Ok(self.count_resource(made))
    }

    /// Refuses the body, because nobody would read it.
    fn body(
        &mut self,
        _response: Resource<HostOutgoingResponse>,
    ) -> wasmtime::Result<Result<Resource<HostOutgoingBody>, ()>> {
        Ok(Err(()))
    }

    fn headers(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<Fields> {
        self.check_room()?;
        let made = types::HostOutgoingResponse::headers(&mut self.wasi_view(), response)?;
        Ok(self.count_resource(made))
    }

    fn drop(&mut self, response: Resource<HostOutgoingResponse>) -> wasmtime::Result<()> {
        self.ctx.held.remove_resource(&response);
        types::HostOutgoingResponse::drop(&mut self.wasi_view(), response)
    }
}
