//! The traffic of a connection: the client's speed of reading, and the bytes of an unfinished WebSocket
//! message. Such bytes are in a library's buffer, so they are counted on arrival, against the tenant's bytes
//! in flight.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::in_flight::{InFlight, SOCKET_BYTES};
use crate::http::pace::Pace;

/// Counts the arriving bytes of a connection, once it is a WebSocket.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Option<Begun>>);

#[derive(Debug)]
struct Begun {
    flight: InFlight,
    bytes: u64,
}

/// A connection with a [`Meter`] for its bytes, and a [`Pace`] for its client.
#[derive(Debug)]
pub(crate) struct Metered<IO> {
    io: IO,
    meter: Arc<Meter>,
    pace: Pace,
}

impl Meter {
    /// Starts the counting.
    pub(crate) fn start(&self, flight: InFlight) {
        *self.begun() = Some(Begun { flight, bytes: 0 });
    }

    /// Ends a message: later bytes belong to the next one.
    pub(crate) fn whole(&self) {
        if let Some(begun) = &mut *self.begun() {
            begun.bytes = 0;
            begun.flight.settle(SOCKET_BYTES);
        }
    }

    /// Ends the counting, and frees the counted bytes.
    pub(crate) fn stop(&self) {
        *self.begun() = None;
    }

    /// INV-115: an error where the tenant may not have so much in flight, which ends the
    /// connection.
    fn took(&self, bytes: usize) -> io::Result<()> {
        let mut begun = self.begun();
        let Some(begun) = &mut *begun else { return Ok(()) };
        begun.bytes = begun.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        // Twice: as received, and as assembled.
        let held = begun.bytes.saturating_mul(2).saturating_add(SOCKET_BYTES / 2);
        let held = begun.flight.try_hold(held.max(SOCKET_BYTES));
        held.map_err(|_| io::Error::other("its tenant has too many bytes in flight"))
    }

    fn begun(&self) -> MutexGuard<'_, Option<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<IO> Metered<IO> {
    pub(crate) fn new(io: IO, meter: Arc<Meter>) -> Self {
        Self { io, meter, pace: Pace::default() }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Metered<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        Poll::Ready(self.meter.took(buffer.filled().len().saturating_sub(before)))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Metered<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.pace.kept(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.pace.kept(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::in_flight::Flights;

    #[test]
    fn a_message_that_is_never_whole_ends_its_connection_and_its_neighbour_goes_on() {
        let flights = Flights::new(1 << 20, 4 * SOCKET_BYTES);
        let another = flights.of(&"red".into(), None);
        another.try_hold(SOCKET_BYTES).unwrap();
        let meters = [Meter::default(), Meter::default()];
        let [endless, whole] = &meters;
        let step = usize::try_from(SOCKET_BYTES / 4).unwrap();
        endless.took(usize::MAX).expect("no WebSocket yet");
        endless.start(flights.of(&"red".into(), None));
        whole.start(flights.of(&"blue".into(), None));
        let taken = (0..100).take_while(|_| endless.took(step).is_ok()).count();
        assert!((4..10).contains(&taken), "{taken}");
        for _ in 0..100 {
            whole.took(step).unwrap();
            whole.whole();
        }
        endless.stop();
        let next = Meter::default();
        next.start(flights.of(&"red".into(), None));
        next.took(step).expect("what it held came back");
    }
}
