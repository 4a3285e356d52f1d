//! The network gate: `wasi:http/outgoing-handler`, with every request checked, every connection made to a
//! checked address, every byte billed, and secrets added by the host.
//!
//! The gate speaks HTTP/1.1, over TLS or in clear text. It follows no redirect: the guest gets the reply,
//! and its next request is checked like the first. It decodes a reply compressed without having been asked
//! to be, and uses no proxy.
//!
//! In a run without secrets, a reply reaches the guest as it arrives. In a run with secrets, the whole reply
//! is searched first, so an endless reply never reaches the guest.

mod body;
mod connect;
mod decoded;
mod forbidden;
mod gate;
mod host;
mod metered;
mod options;
mod own;
mod refusal;
mod resolve;
mod scan;
mod secrets;
#[cfg(test)]
mod tests;
mod whole;

use std::sync::Arc;

use belljar_policy::{HostScope, Limits};
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks,
};

pub(crate) use self::gate::HttpGate;
use self::gate::{Io, MAX_HEADER_BYTES};
use self::host::HeldResources;
use crate::receipt::record::CallRecord;

pub(crate) use self::host::take_refused;
pub(crate) use self::options::ConnectionLimit;
pub use self::options::HttpOptions;
pub use self::resolve::{NameResolver, SystemResolver};
pub(crate) use self::secrets::{JarSecrets, SecretWatch};
pub use self::secrets::{MAX_VALUE, MIN_VALUE, Secret, SecretError, SecretStore};

/// The most bytes of a write to a request's body, because the guest chooses the size and the host buffers
/// the bytes.
const BODY_CHUNK: usize = 64 << 10;

/// The network of a store: wasmtime's part, the gate, and the count of resources.
pub(crate) struct HttpCtx {
    inner: WasiHttpCtx,
    hooks: GateHooks,
    held: HeldResources,
}

/// The network of a store with its resource table, which the host functions need together.
pub(crate) struct HttpView<'a> {
    /// The network.
    pub(crate) ctx: &'a mut HttpCtx,
    /// The table of all resources of the store.
    pub(crate) table: &'a mut ResourceTable,
}

/// A store's data that has a network.
pub(crate) trait HasHttp: Send + 'static {
    /// The network and the table, borrowed together.
    fn http_view(&mut self) -> HttpView<'_>;
}

/// Links `wasi:http/types` and `wasi:http/outgoing-handler`.
pub(crate) fn add_to_linker<T: HasHttp>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    types::add_to_linker::<T, HttpMarker>(linker, &(&options).into(), |data| data.http_view())?;
    outgoing_handler::add_to_linker::<T, HttpMarker>(linker, |data| data.http_view())
}

struct HttpMarker;

impl HasData for HttpMarker {
    type Data<'a> = HttpView<'a>;
}

impl HttpCtx {
    /// Makes the network of a new store, without a connection. A connection counts against the limit of the
    /// store and against that of the jar, which its stores share.
    pub(crate) fn new(
        scope: HostScope,
        secrets: JarSecrets,
        limits: &Limits,
        jar: &ConnectionLimit,
        record: Arc<CallRecord>,
        options: HttpOptions,
    ) -> Self {
        let connections = [ConnectionLimit::from_limits(limits), jar.clone()];
        let forbidden = forbidden::header_filter(secrets.secret_headers());
        let gate = HttpGate { scope, secrets, forbidden, record, options, connections };
        let mut inner = WasiHttpCtx::new();
        inner.set_field_size_limit(MAX_HEADER_BYTES);
        Self { inner, hooks: GateHooks { gate: Arc::new(gate) }, held: HeldResources::default() }
    }
}

/// Makes a gate for requests the host itself sends for a call.
pub(crate) fn host_gate(
    scope: HostScope,
    secrets: JarSecrets,
    limits: &Limits,
    record: Arc<CallRecord>,
    options: HttpOptions,
) -> HttpGate {
    let connections = [ConnectionLimit::from_limits(limits), ConnectionLimit::from_limits(limits)];
    let forbidden = forbidden::header_filter(secrets.secret_headers());
    HttpGate { scope, secrets, forbidden, record, options, connections }
}

/// Puts the gate in place of wasmtime-wasi-http's own sending.
struct GateHooks {
    gate: Arc<HttpGate>,
}

impl WasiHttpHooks for GateHooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::clone(&self.gate.forbidden)
    }

    /// False, because the gate itself writes `Host`, from the checked URL.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Io,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Io), Error>> + Send> {
        let operation = self.gate.record.begin_operation("an outgoing request");
        let sending = Arc::clone(&self.gate).send_request(request, options);
        Box::new(async move {
            let (response, io) = sending.await?;
            // While the connection is open, closing the jar waits.
            let io: Io = Box::new(async move {
                let _operation = operation;
                Box::into_pin(io).await
            });
            Ok((response, io))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK
    }
}
