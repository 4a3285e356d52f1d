//! The order of compilations: a component that takes long does not delay others.
//!
//! A compilation uses all cores and much memory, so one runs at a time. But a hostile component can take
//! minutes, and must not delay the first call of another tool. So a compilation that is not done after
//! [`PATIENCE`] goes on beside others, as one of [`LONG`] long ones. If there are that many already, it is
//! stopped, and starts again when one of them ends.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a compilation may keep others waiting. The stock tools need under a second each, a tool with a
/// Python interpreter 14 s.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many long compilations run at a time. With the quick one this bounds the memory, because each may use
/// as much as a compiling child may.
const LONG: usize = 2;

/// The free places for compilations: one quick, and [`LONG`] long ones.
#[derive(Debug)]
pub(crate) struct CompilerSlots {
    quick: Semaphore,
    long: Semaphore,
}

impl CompilerSlots {
    pub(crate) fn new() -> Self {
        Self { quick: Semaphore::new(1), long: Semaphore::new(LONG) }
    }

    /// Runs work when its turn comes. Dropping the future of `work` must stop it, because `work` may be
    /// called a second time.
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

    /// Runs work that cannot be stopped and started again, when its turn comes.
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

    /// The paused clock of tokio goes on by itself while everything waits.
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
