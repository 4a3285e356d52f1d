//! Measures the traffic of a connection: how fast the client reads, and how many bytes an unfinished
//! WebSocket message has. Those bytes are in a library's buffer, so they are counted on arrival,
//! against the tenant's bytes in flight.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::in_flight::{InFlight, SOCKET_BYTES};
use crate::http::pace::WritePace;

/// Counts the arriving bytes of a connection after it has become a WebSocket.
#[derive(Debug, Default)]
pub(crate) struct SocketMeter(Mutex<Option<SocketMessage>>);

#[derive(Debug)]
struct SocketMessage {
    flight: InFlight,
    bytes: u64,
}

/// A connection whose arriving bytes are counted by a [`SocketMeter`], and whose client must read at
/// the pace of [`WritePace`].
#[derive(Debug)]
pub(crate) struct MeteredStream<IO> {
    io: IO,
    meter: Arc<SocketMeter>,
    pace: WritePace,
}

impl SocketMeter {
    /// Starts counting: the connection is a WebSocket now.
    pub(crate) fn start_counting(&self, flight: InFlight) {
        *self.lock_message() = Some(SocketMessage { flight, bytes: 0 });
    }

    /// Ends the count of a message: later bytes belong to the next one.
    pub(crate) fn end_message(&self) {
        if let Some(begun) = &mut *self.lock_message() {
            begun.bytes = 0;
            begun.flight.shrink_to(SOCKET_BYTES);
        }
    }

    /// Stops counting, and frees the counted bytes.
    pub(crate) fn stop_counting(&self) {
        *self.lock_message() = None;
    }

    /// INV-115: counts arriving bytes of a message. Returns an error, which ends the connection, if the
    /// tenant may not hold so many.
    fn count_bytes(&self, bytes: usize) -> io::Result<()> {
        let mut begun = self.lock_message();
        let Some(begun) = &mut *begun else { return Ok(()) };
        begun.bytes = begun.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        // Counted twice, because the library holds the bytes as received and again as an assembled
        // message.
        let held = begun.bytes.saturating_mul(2).saturating_add(SOCKET_BYTES / 2);
        let held = begun.flight.try_hold(held.max(SOCKET_BYTES));
        held.map_err(|_| io::Error::other("its tenant has too many bytes in flight"))
    }

    fn lock_message(&self) -> MutexGuard<'_, Option<SocketMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<IO> MeteredStream<IO> {
    pub(crate) fn new(io: IO, meter: Arc<SocketMeter>) -> Self {
        Self { io, meter, pace: WritePace::default() }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for MeteredStream<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        Poll::Ready(self.meter.count_bytes(buffer.filled().len().saturating_sub(before)))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for MeteredStream<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.pace.check_pace(context, written)
    }

    /// Writes, and ends the connection if the client reads too slowly.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.pace.check_pace(context, written)
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
    use crate::http::in_flight::ByteBounds;

    #[test]
    fn a_message_that_is_never_whole_ends_its_connection_and_its_neighbour_goes_on() {
        let flights = ByteBounds::new(1 << 20, 4 * SOCKET_BYTES);
        let another = flights.begin_request(&"red".into(), None);
        another.try_hold(SOCKET_BYTES).unwrap();
        let meters = [SocketMeter::default(), SocketMeter::default()];
        let [endless, whole] = &meters;
        let step = usize::try_from(SOCKET_BYTES / 4).unwrap();
        endless.count_bytes(usize::MAX).expect("no WebSocket yet");
        endless.start_counting(flights.begin_request(&"red".into(), None));
        whole.start_counting(flights.begin_request(&"blue".into(), None));
        let taken = (0..100).take_while(|_| endless.count_bytes(step).is_ok()).count();
        assert!((4..10).contains(&taken), "{taken}");
        for _ in 0..100 {
            whole.count_bytes(step).unwrap();
            whole.end_message();
        }
        endless.stop_counting();
        let next = SocketMeter::default();
        next.start_counting(flights.begin_request(&"red".into(), None));
        next.count_bytes(step).expect("what it held came back");
    }
}
