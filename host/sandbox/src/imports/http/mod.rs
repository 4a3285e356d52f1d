//! The network gate: `wasi:http/outgoing-handler` with every request checked, every connection made to an
//! address that was checked, every byte billed, and secrets added by the host.
//!
//! The gate implements HTTP/1.1, over TLS or in clear text. It follows no redirect (the guest gets the reply
//! and sends the next request, which is checked like the first), decodes compression that was not requested,
//! and uses no proxy.
//!
//! In a run without secrets a reply reaches the guest as it arrives. In a run with secrets the whole reply is
//! searched first, so an endless reply never reaches the guest.

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

pub(crate) use self::gate::Gate;
use self::gate::{Io, MAX_HEADER_BYTES};
use self::host::Held;
use crate::receipt::record::Record;

pub(crate) use self::host::take_refused;
pub(crate) use self::options::Connections;
pub use self::options::HttpOptions;
pub use self::resolve::{Resolver, SystemResolver};
pub(crate) use self::secrets::{JarSecrets, Watch};
pub use self::secrets::{MAX_VALUE, MIN_VALUE, Secret, SecretError, SecretStore};

/// Bytes of one write to a request's body, because the guest chooses the size, and the host buffers the
/// bytes.
const BODY_CHUNK: usize = 64 << 10;

/// The network of one store.
pub(crate) struct HttpCtx {
    inner: WasiHttpCtx,
    hooks: Hooks,
    held: Held,
}

/// A store's network together with its resource table.
pub(crate) struct HttpView<'a> {
    /// The network.
    pub(crate) ctx: &'a mut HttpCtx,
    /// The table of all resources of the store.
    pub(crate) table: &'a mut ResourceTable,
}

/// The data of a store that has a network.
pub(crate) trait HasHttp: Send + 'static {
    /// The network with the table.
    fn http(&mut self) -> HttpView<'_>;
}

/// Links `wasi:http/types` and `wasi:http/outgoing-handler`.
pub(crate) fn add_to_linker<T: HasHttp>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    types::add_to_linker::<T, Http>(linker, &(&options).into(), |data| data.http())?;
    outgoing_handler::add_to_linker::<T, Http>(linker, |data| data.http())
}

struct Http;

impl HasData for Http {
    type Data<'a> = HttpView<'a>;
}

impl HttpCtx {
    /// The network of a new store, without a connection. Connections count against the store's own limits and
    /// the jar's shared ones.
    pub(crate) fn new(
        scope: HostScope,
        secrets: JarSecrets,
        limits: &Limits,
        jar: &Connections,
        record: Arc<Record>,
        options: HttpOptions,
    ) -> Self {
        let connections = [Connections::of(limits), jar.clone()];
        let forbidden = forbidden::filter(secrets.headers());
        let gate = Gate { scope, secrets, forbidden, record, options, connections };
        let mut inner = WasiHttpCtx::new();
        inner.set_field_size_limit(MAX_HEADER_BYTES);
        Self { inner, hooks: Hooks { gate: Arc::new(gate) }, held: Held::default() }
    }
}

/// A gate for the host's own requests for one call.
pub(crate) fn host_gate(
    scope: HostScope,
    secrets: JarSecrets,
    limits: &Limits,
    record: Arc<Record>,
    options: HttpOptions,
) -> Gate {
    let connections = [Connections::of(limits), Connections::of(limits)];
    let forbidden = forbidden::filter(secrets.headers());
    Gate { scope, secrets, forbidden, record, options, connections }
}

struct Hooks {
    gate: Arc<Gate>,
}

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::clone(&self.gate.forbidden)
    }

    /// The gate writes `Host` itself, from the checked URL.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Io,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Io), Error>> + Send> {
        let operation = self.gate.record.operation("an outgoing request");
        let sending = Arc::clone(&self.gate).send(request, options);
        Box::new(async move {
            let (response, io) = sending.await?;
            // Closing the jar waits until the connection is closed.
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
