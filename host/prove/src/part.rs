//! A part of `belljar prove`: attacks on one target.

use async_trait::async_trait;

use crate::attack::AttackReport;

/// Attacks on one target, made one at a time, because time and memory are measured for each.
#[async_trait]
pub trait ProvePart: Send + Sync {
    /// The names of the attacks, in the order in which they are made. Each is unique among all parts and
    /// begins with its kind.
    fn attack_ids(&self) -> Vec<&'static str>;

    /// Prepares what nearly every attack needs, so the first attack's time does not contain it.
    ///
    /// # Errors
    /// When this machine lacks something; the text names it.
    async fn prepare(&self) -> anyhow::Result<()>;

    /// Makes the attack with this name, and judges it. For a name that is not among [`Self::attack_ids`],
    /// reports an attack that could not be made.
    async fn make_attack(&self, id: &'static str) -> AttackReport;
}
