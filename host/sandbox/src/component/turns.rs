//! The order of compilations, in which a slow component does not delay others.
//!
//! Each compilation uses all cores and much memory, so one runs at a time; but a hostile component can
//! compile for minutes, and must not delay another tool's first call. A compilation that is unfinished after
//! [`PATIENCE`] continues as one of the few long ones. If all long places are in use, the compilation is
//! killed, and starts again when a place is free.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a compilation runs alone: the stock tools need under a second each, a tool with a Python
/// interpreter 14 s.
const PATIENCE: Duration = Duration::from_secs(2);

/// Concurrent long compilations. With the quick one, this is the maximum, each as large as a compiler child
/// may become.
const LONG: usize = 2;

/// The places of running compilations.
#[derive(Debug)]
pub(crate) struct CompilerSlots {
    quick: Semaphore,
    long: Semaphore,
}

impl CompilerSlots {
    pub(crate) fn new() -> Self {
        Self { quick: Semaphore::new(1), long: Semaphore::new(LONG) }
    }

    /// Runs the work at its turn. Dropping the work's future must stop it, because `work` is called again for
    /// a restart.
    pub(crate) async fn run_restartable<T, W: Future<Output = T>>(
        &self,
        work: impl Fn() -> W,
    ) -> T {
        {
            let quick = self.quick.acquire().await;
            let mut first = pin!(work());
            if let Ok(done) = timeout(PATIENCE, &mut first).await {
                return done;
            }
            if let Ok(_long) = self.long.try_acquire() {
                drop(quick);
                return first.await;
            }
        }
        let _long = self.long.acquire().await;
        work().await
    }

    /// Runs uninterruptible work like [`Self::run_restartable`], in one turn.
    pub(crate) async fn run_uninterrupted<T>(&self, work: impl Future<Output = T>) -> T {
        let _quick = self.quick.acquire().await;
        work.await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use futures::future::{join, select_all};

    use super::*;

    /// The clock is tokio's own, which goes on by itself while everything waits.
    #[tokio::test(start_paused = true)]
    async fn work_without_end_does_not_keep_the_others_waiting() {
        let turns = CompilerSlots::new();
        let endless = (0..5).map(|_| Box::pin(turns.run_restartable(pending::<()>)));
        let quick = async {
            for _ in 0..20 {
                turns.run_restartable(|| ready(())).await;
            }
        };
        let both = futures::future::select(Box::pin(quick), select_all(endless));
        timeout(PATIENCE * 20, both).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_is_done_once_where_there_is_room_and_again_where_there_is_none() {
        let turns = CompilerSlots::new();
        let begun = Cell::new(0);
        let long = || {
            turns.run_restartable(|| {
                begun.set(begun.get() + 1);
                tokio::time::sleep(PATIENCE * 4)
            })
        };
        join(long(), long()).await;
        assert_eq!(begun.replace(0), 2, "one is quick at first, then both are long");
        join(join(long(), long()), long()).await;
        assert_eq!(begun.get(), 4, "the third found no place");
    }
}
