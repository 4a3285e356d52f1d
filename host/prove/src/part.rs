//! A part of `belljar prove`: attacks that share what they attack.

use async_trait::async_trait;

use crate::attack::AttackReport;

/// Attacks on one thing, made one at a time: times and memory are each attack's own.
#[async_trait]
pub trait ProvePart: Send + Sync {
    /// The names of its attacks, in the order in which they are made. Each is unique among all
    /// parts and begins with its kind.
    fn attack_ids(&self) -> Vec<&'static str>;

    /// Gets ready what nearly every attack needs, so that the first one's time is its own.
    ///
    /// # Errors
    ///
    /// When it cannot be made ready on this machine; the text says what is missing.
    async fn prepare(&self) -> anyhow::Result<()>;

    /// Makes the attack of this name and judges it. A name that is not among [`Self::attack_ids`] is
    /// reported as an attack that could not be made.
    async fn make_attack(&self, id: &'static str) -> AttackReport;
}
