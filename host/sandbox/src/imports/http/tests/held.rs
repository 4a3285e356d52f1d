//! Memory that a guest can fill without sending a request.

use super::*;
use crate::imports::http::HttpView;
use crate::imports::http::host::MAX_HELD;
use types::{HostFields, HostOutgoingRequest, Method};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};

struct Store {
    ctx: HttpCtx,
    table: ResourceTable,
    record: Arc<CallRecord>,
}

impl Store {
    fn new() -> Self {
        let budget = Budget::new_root(BudgetLevel::Subagent, BudgetCaps::unlimited());
        let record = Arc::new(CallRecord::new(budget, 10));
        let (secrets, options) = (JarSecrets::default(), HttpOptions::default());
        let limits = Limits::default();
        let jar = ConnectionLimit::from_limits(&limits);
        let scope = HostScope::none();
        let ctx = HttpCtx::new(scope, secrets, &limits, &jar, Arc::clone(&record), options);
        Self { ctx, table: ResourceTable::new(), record }
    }

    fn view(&mut self) -> HttpView<'_> {
        HttpView { ctx: &mut self.ctx, table: &mut self.table }
    }

    fn denials(&self) -> Vec<DenyCode> {
        self.record.drain_lists().0.denials.into_iter().map(|denial| denial.code).collect()
    }
}

#[test]
fn header_lists_and_requests_are_limited_and_given_back() {
    let mut store = Store::new();
    let mut lists: Vec<_> =
        (0..MAX_HELD).map(|_| HostFields::new(&mut store.view()).unwrap()).collect();
    let first = Resource::new_borrow(lists[0].rep());
    assert!(HostFields::new(&mut store.view()).is_err());
    assert!(HostFields::from_list(&mut store.view(), Vec::new()).is_err());
    assert!(HostFields::clone(&mut store.view(), first).is_err());
    assert_eq!(store.denials(), vec![DenyCode::LimitReached; 3]);
    let headers = lists.pop().unwrap();
    let request = HostOutgoingRequest::new(&mut store.view(), headers).unwrap();
    assert!(HostFields::new(&mut store.view()).is_err(), "the request takes the list's place");
    HostOutgoingRequest::drop(&mut store.view(), request).unwrap();
    HostFields::drop(&mut store.view(), lists.pop().unwrap()).unwrap();
    HostFields::new(&mut store.view()).unwrap();
    HostFields::new(&mut store.view()).unwrap();
}

#[tokio::test]
async fn a_sent_request_gives_its_place_back() {
    let mut store = Store::new();
    for _ in 0..2 * MAX_HELD {
        let headers = HostFields::new(&mut store.view()).unwrap();
        let request = HostOutgoingRequest::new(&mut store.view(), headers).unwrap();
        let _ = outgoing_handler::Host::handle(&mut store.view(), request, None);
    }
    HostFields::new(&mut store.view()).unwrap();
}

#[test]
fn long_texts_of_a_request_are_not_kept() {
    let mut store = Store::new();
    let headers = HostFields::new(&mut store.view()).unwrap();
    let request = HostOutgoingRequest::new(&mut store.view(), headers).unwrap().rep();
    let request = || Resource::new_borrow(request);
    let long = || "a".repeat(10_000);
    let mut view = store.view();
    assert!(view.set_method(request(), Method::Other(long())).unwrap().is_err());
    assert!(view.set_authority(request(), Some(long())).unwrap().is_err());
    assert!(view.set_path_with_query(request(), Some(format!("/{}", long()))).unwrap().is_err());
    let scheme = types::Scheme::Other(long());
    assert!(view.set_scheme(request(), Some(scheme)).unwrap().is_err());
    view.set_authority(request(), Some("api.test:80".to_owned())).unwrap().unwrap();
    view.set_path_with_query(request(), Some("/x?y".to_owned())).unwrap().unwrap();
    assert_eq!(view.path_with_query(request()).unwrap().unwrap(), "/x?y");
}

#[test]
fn the_guest_is_told_why_a_body_broke_off() {
    let mut store = Store::new();
    let error = wasmtime::Error::from(Error::HttpResponseBodySize(None));
    let error = store.table.push(error).unwrap();
    let code = types::Host::http_error_code(&mut store.view(), error).unwrap();
    assert!(matches!(code, Some(types::ErrorCode::HttpResponseBodySize(None))), "{code:?}");
}

#[test]
fn headers_of_the_host_cannot_be_put_into_a_list() {
    let mut store = Store::new();
    let fields = HostFields::new(&mut store.view()).unwrap().rep();
    let fields = || Resource::new_borrow(fields);
    for name in ["Host", "connection", "Proxy-Authorization", "transfer-encoding", "te"] {
        let set = store.view().set(fields(), name.to_owned(), vec![b"x".to_vec()]);
        assert!(set.is_err(), "{name}");
    }
    store.view().set(fields(), "x-own".to_owned(), vec![b"x".to_vec()]).unwrap();
    let large = store.view().set(fields(), "x-large".to_owned(), vec![vec![b'x'; 100_000]]);
    assert!(large.is_err());
}
