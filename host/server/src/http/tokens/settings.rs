//! The operator's settings of issuers, as last read. INV-381: the senders of tokens do not decide how
//! often the settings are read. INV-376: a removed rule is in force until the last read is no longer
//! fresh, plus the duration of the next read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_definition::IssuerSetting;
use tokio::time::Instant;

use super::trusted::IssuerSource;

/// The settings of all issuers, or the reason why they cannot be read.
type Word = Result<Arc<[IssuerSetting]>, Arc<str>>;

/// The cached settings, read again by the first caller after an interval.
pub(super) struct IssuerSettingCache {
    issuers: Arc<dyn IssuerSource>,
    /// The time for which a read is fresh, counted from its end.
    fresh: Duration,
    last: Arc<Mutex<Option<(Instant, Word)>>>,
    /// A lock that the reading task holds, so only one read runs at a time.
    looking: Arc<tokio::sync::Mutex<()>>,
}

impl IssuerSettingCache {
    pub(super) fn new(issuers: Arc<dyn IssuerSource>, fresh: Duration) -> Self {
        Self { issuers, fresh, last: Arc::default(), looking: Arc::default() }
    }

    pub(super) fn issuers(&self) -> &Arc<dyn IssuerSource> {
        &self.issuers
    }

    /// The settings in force: from a read that is fresh, or from a new one.
    pub(super) async fn in_force(&self) -> Word {
        if let Some(word) = self.fresh_settings() {
            return word;
        }
        let looking = Arc::clone(&self.looking).lock_owned().await;
        // Another caller may have read the settings meanwhile.
        if let Some(word) = self.fresh_settings() {
            return word;
        }
        let (issuers, last) = (Arc::clone(&self.issuers), Arc::clone(&self.last));
        // Read in a separate task, because otherwise each caller that disconnects could cause another
        // read.
        let look = tokio::spawn(async move {
            let _looking = looking;
            let word: Word = issuers.in_force().await.map(Arc::from).map_err(Arc::from);
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            // Fresh from the end of the read on, so callers that waited for a slow read begin no other.
            *last = Some((Instant::now(), Word::clone(&word)));
            word
        });
        look.await
            .unwrap_or_else(|error| Err(format!("the look at them broke off: {error}").into()))
    }

    fn fresh_settings(&self) -> Option<Word> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, word) = last.as_ref()?;
        (at.elapsed() < self.fresh).then(|| Word::clone(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use serde_json::Value;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    const FRESH: Duration = Duration::from_secs(1);

    struct Fake {
        looked: AtomicUsize,
        broken: AtomicBool,
        hangs: AtomicBool,
        goes_on: Semaphore,
    }

    #[async_trait]
    impl IssuerSource for Fake {
        async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
            self.looked.fetch_add(1, Ordering::Relaxed);
            if self.hangs.load(Ordering::Relaxed) {
                let _ = self.goes_on.acquire().await;
            }
            if self.broken.load(Ordering::Relaxed) {
                Err("broken".to_owned())
            } else {
                Ok(Vec::new())
            }
        }

        async fn issuer_keys(&self, _: &str) -> Result<Value, String> {
            Err("nobody asks".to_owned())
        }
    }

    fn fake() -> (Arc<Fake>, IssuerSettingCache) {
        let (looked, broken, hangs) =
            (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
        let fake = Arc::new(Fake { looked, broken, hangs, goes_on: Semaphore::new(0) });
        (Arc::clone(&fake), IssuerSettingCache::new(fake, FRESH))
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_tokens_looks_at_the_settings_once_a_second_also_where_they_are_broken() {
        let (fake, settings) = fake();
        for (broken, looks) in [(false, 1), (true, 2), (false, 3)] {
            fake.broken.store(broken, Ordering::Relaxed);
            for _ in 0..1_000 {
                assert_eq!(settings.in_force().await.is_err(), broken);
            }
            assert_eq!(fake.looked.load(Ordering::Relaxed), looks);
            tokio::time::advance(FRESH).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_come_at_once_or_hang_up_share_a_look() {
        let (fake, settings) = fake();
        fake.hangs.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            let left = timeout(Duration::from_millis(1), settings.in_force()).await;
            assert!(left.is_err(), "it waits for the look");
        }
        // The read takes longer than its result is fresh.
        tokio::time::advance(FRESH * 2).await;
        fake.goes_on.add_permits(100);
        let all = (0..100).map(|_| settings.in_force());
        assert!(futures::future::join_all(all).await.iter().all(Result::is_ok));
        assert_eq!(fake.looked.load(Ordering::Relaxed), 1);
    }
}
