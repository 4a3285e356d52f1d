//! One-time links for the operator of this process. Unused links are in memory only, as digests, so a restart
//! invalidates them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::keys::{NewSecret, ONCE, PresentedKey};

/// The minutes after which a link expires.
pub const LINK_MINUTES: u64 = 10;

const LASTS: Duration = Duration::from_secs(60 * LINK_MINUTES);

/// The most unused links at a time; a further one replaces the oldest.
const MAX_LINKS: usize = 8;

/// The links that were made and not used yet.
#[derive(Debug, Default)]
pub(crate) struct LoginLinks(Mutex<Vec<LoginLink>>);

#[derive(Debug)]
struct LoginLink {
    id: String,
    hash: String,
    made: Instant,
}

impl LoginLinks {
    /// Makes a link, and returns its token.
    pub(crate) fn offer_link(&self, now: Instant) -> Result<String, getrandom::Error> {
        let NewSecret { id, text, hash } = NewSecret::with_prefix(ONCE)?;
        let mut links = self.lock_unexpired(now);
        if links.len() >= MAX_LINKS {
            links.remove(0);
        }
        links.push(LoginLink { id, hash, made: now });
        Ok(text)
    }

    /// INV-263: uses up a token; returns whether it was valid: unused before, and not expired.
    pub(crate) fn redeem_token(&self, token: &str, now: Instant) -> bool {
        let Some(presented) = PresentedKey::parse(ONCE, token) else { return false };
        let mut links = self.lock_unexpired(now);
        let found = links.iter().position(|link| link.id == presented.id);
        let hash = found.and_then(|at| links.get(at)).map(|link| link.hash.as_str());
        let opens = presented.matches_digest(hash);
        if let Some(at) = found.filter(|_| opens) {
            links.remove(at);
        }
        opens
    }

    /// Locks the links, and removes expired ones.
    fn lock_unexpired(&self, now: Instant) -> MutexGuard<'_, Vec<LoginLink>> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| now.saturating_duration_since(link.made) < LASTS);
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_once_and_only_while_it_is_young() {
        let (links, now) = (LoginLinks::default(), Instant::now());
        let [one, other] = [links.offer_link(now).unwrap(), links.offer_link(now).unwrap()];
        assert!(!links.redeem_token("", now) && !links.redeem_token(&one[..one.len() - 1], now));
        let mixed = format!("{}{}", &one[..20], &other[20..]);
        assert!(!links.redeem_token(&mixed, now), "the id of one with the secret of another");
        assert!(links.redeem_token(&one, now));
        assert!(!links.redeem_token(&one, now), "a second time");
        assert!(!links.redeem_token(&other, now + LASTS), "too late");
        let kept = format!("{links:?}");
        assert!(!kept.contains(&other[20..]), "{kept}");
    }

    #[test]
    fn there_are_so_many_links_and_the_oldest_goes_first() {
        let (links, now) = (LoginLinks::default(), Instant::now());
        let all: Vec<String> = (0..=MAX_LINKS).map(|_| links.offer_link(now).unwrap()).collect();
        assert!(!links.redeem_token(&all[0], now));
        assert!(all[1..].iter().all(|token| links.redeem_token(token, now)));
    }
}
