//! The resources that steps made.

use std::cell::RefCell;

use wasip2::filesystem::types::{Descriptor, DirectoryEntryStream};
use wasip2::http::types::{Fields, FutureIncomingResponse, OutgoingRequest};
use wasip2::io::poll::Pollable;
use wasip2::io::streams::{InputStream, OutputStream};
use wasip2::sockets::network::Network;

/// One of them. Some are only there to be open.
#[allow(dead_code, reason = "what counts of some is that the host holds them")]
pub(crate) enum Held {
    Descriptor(Descriptor),
    Listing(DirectoryEntryStream),
    Input(InputStream),
    Output(OutputStream),
    Pollable(Pollable),
    Fields(Fields),
    Request(OutgoingRequest),
    Reply(FutureIncomingResponse),
    Network(Network),
    Bytes(Vec<u8>),
}

thread_local! {
    static HELD: RefCell<Vec<Option<Held>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a resource; gives its number.
pub(crate) fn keep(resource: Held) -> usize {
    HELD.with_borrow_mut(|held| {
        held.push(Some(resource));
        held.len() - 1
    })
}

/// Takes a resource out of the list; dropping it gives it back to the host.
pub(crate) fn take(number: usize) -> Result<Held, String> {
    HELD.with_borrow_mut(|held| held.get_mut(number).and_then(Option::take))
        .ok_or_else(|| format!("nothing is held as {number}"))
}

/// Uses a resource where it is.
pub(crate) fn with<T>(
    number: usize,
    act: impl FnOnce(&Held) -> Result<T, String>,
) -> Result<T, String> {
    HELD.with_borrow(|held| match held.get(number) {
        Some(Some(resource)) => act(resource),
        Some(None) | None => Err(format!("nothing is held as {number}")),
    })
}

/// Uses all that is held.
pub(crate) fn with_all<T>(act: impl FnOnce(&[Option<Held>]) -> T) -> T {
    HELD.with_borrow(|held| act(held))
}

/// A resource of another kind than the step needs.
pub(crate) fn wrong<T>() -> Result<T, String> {
    Err("another kind of resource".to_owned())
}
