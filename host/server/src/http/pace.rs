//! The least rate at which a client must read. Without a rate, a client that reads a byte now and then would
//! never be silent for long, and could hold an answer's bytes in memory without end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes a second that a client must read on average while data waits. 4 KiB, because that is the rate of the
/// slowest lines; a page of 4 MiB is held for a quarter of an hour at most.
const LEAST_RATE: u32 = 4 << 10;

/// How long a client that was fast enough may read nothing, for example while its line fails for a moment.
const GRACE: Duration = Duration::from_secs(60);

/// The pace of one connection. Waiting for the client uses up the time, and bytes that the client reads
/// restore it. A writer without data does not wait.
#[derive(Debug)]
pub(crate) struct WritePace {
    /// How long the writer may still be kept waiting.
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
    /// The result of a write, or an error if the client has been too slow for too long.
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

    /// An answer as long as this, and what is between it and its reader.
    const LONG: usize = 1 << 20;
    const BUFFER: usize = 4 << 10;

    fn connection() -> (DuplexStream, MeteredStream<DuplexStream>) {
        let (client, server) = tokio::io::duplex(BUFFER);
        (client, MeteredStream::new(server, Arc::<SocketMeter>::default()))
    }

    /// Takes so many bytes each time, until it is cut off; gives how many it got.
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
