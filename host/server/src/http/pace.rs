//! The lowest rate at which a client must read. Without it, a client that reads one byte now and then
//! would never be silent for long, and could keep an answer's bytes in memory without end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The bytes per second that a client must read on average while data waits. 4 KiB, because that is the
/// rate of the slowest lines; at this rate a page of 4 MiB is held for a quarter of an hour at most.
const LEAST_RATE: u32 = 4 << 10;

/// The time for which a client that was fast enough may read nothing, for example while its line fails
/// for a moment.
const GRACE: Duration = Duration::from_secs(60);

/// The pace of one connection's client. Time in which the writer waits for the client is used up, and
/// bytes that the client reads restore it. A writer without data does not wait.
#[derive(Debug)]
pub(crate) struct WritePace {
    /// The time for which the client may still keep the writer waiting.
    left: Duration,
    waiting: Option<WriterWait>,
}

#[derive(Debug)]
struct WriterWait {
    since: Instant,
    over: Pin<Box<Sleep>>,
}

impl Default for WritePace {
    fn default() -> Self {
        Self { left: GRACE, waiting: None }
    }
}

impl WritePace {
    /// Returns the result of a write, or an error if the client has been too slow for too long.
    pub(crate) fn check_pace(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if let Some(waiting) = self.waiting.take() {
                self.left = self.left.saturating_sub(waiting.since.elapsed());
            }
            let bytes =
                written.as_ref().map_or(0, |bytes| u32::try_from(*bytes).unwrap_or(u32::MAX));
            let earned = Duration::from_secs(1).saturating_mul(bytes) / LEAST_RATE;
            self.left = self.left.saturating_add(earned).min(GRACE);
            return Poll::Ready(written);
        }
        let waiting = self.waiting.get_or_insert_with(|| {
            let since = Instant::now();
            WriterWait { since, over: Box::pin(sleep_until(since + self.left)) }
        });
        ready!(waiting.over.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "it takes too little of its answer",
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::sleep;

    use super::*;
    use crate::http::meter::{MeteredStream, SocketMeter};

    /// The bytes of an answer that exceeds all buffers between the server and its reader.
    const LONG: usize = 1 << 20;
    const BUFFER: usize = 4 << 10;

    fn connection() -> (DuplexStream, MeteredStream<DuplexStream>) {
        let (client, server) = tokio::io::duplex(BUFFER);
        (client, MeteredStream::new(server, Arc::<SocketMeter>::default()))
    }

    /// Reads `bytes` bytes in each interval until the connection is closed; returns how many bytes
    /// arrived.
    async fn reading(mut client: DuplexStream, bytes: usize, every: Duration) -> usize {
        let (mut all, mut part) = (0, vec![0; bytes]);
        loop {
            sleep(every).await;
            match client.read(&mut part).await.unwrap() {
                0 => return all,
                read => all += read,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_a_byte_now_and_then_is_cut_off() {
        for (bytes, every) in [(1, 29), (1, 1), (100, 1), (1_000, 1), (BUFFER, 20)] {
            let begun = Instant::now();
            let (client, mut server) = connection();
            let reader = tokio::spawn(reading(client, bytes, Duration::from_secs(every)));
            let error = server.write_all(&vec![b'x'; LONG]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{bytes} in {every} s");
            assert!(begun.elapsed() < 3 * GRACE, "{bytes} in {every} s: {:?}", begun.elapsed());
            drop(server);
            assert!(reader.await.unwrap() < LONG);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_the_least_rate_gets_all() {
        for (bytes, every) in [(BUFFER, 1), (BUFFER / 4, 0), (BUFFER, 0)] {
            let (client, mut server) = connection();
            let reader = tokio::spawn(reading(client, bytes, Duration::from_secs(every)));
            server.write_all(&vec![b'x'; LONG]).await.unwrap();
            drop(server);
            assert_eq!(reader.await.unwrap(), LONG);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_has_nothing_to_say_for_long_waits_for_nobody() {
        let (mut client, mut server) = connection();
        for _ in 0..100 {
            sleep(10 * GRACE).await;
            server.write_all(b"an event").await.unwrap();
            client.read_exact(&mut [0; 8]).await.unwrap();
        }
    }
}
