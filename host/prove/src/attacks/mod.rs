//! The attacks, one table for each kind.

mod agents;
mod component;
mod cpu;
mod files;
mod mcp;
mod memory;
mod network;
mod output;
mod secrets;

use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::guests::Guest;

/// All attacks in this process, by kind.
pub fn list_attacks() -> impl Iterator<Item = &'static Attack<Arena>> {
    let before = [cpu::ATTACKS, memory::ATTACKS, output::ATTACKS];
    let inward = before.into_iter().chain(files::ATTACKS);
    let outward = network::ATTACKS.into_iter().chain(secrets::ATTACKS);
    let within = component::ATTACKS.into_iter().chain(agents::ATTACKS);
    inward.chain(outward).chain(within).chain(mcp::ATTACKS).flatten()
}

/// Checks that asking the guest for its description fails; the guest cannot be used then.
async fn not_described(arena: &Arena, guest: Guest) -> Stopped {
    // The state before the attack is recorded when the first jar is opened, so an empty one is opened here.
    arena.jar_builder(&[]).open().await?;
    match arena.sandbox().describe_tools(&arena.guest_wasm(guest)).await {
        Ok(tools) => Err(Escape::new(format!("it was accepted, with {} tools", tools.len()))),
        Err(error) => Ok(Verdict::with_words(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::list_attacks;

    #[test]
    fn every_attack_says_what_it_is() {
        let mut ids = BTreeSet::new();
        for attack in list_attacks() {
            assert!(ids.insert(attack.id), "two attacks are named {}", attack.id);
            assert!(attack.id.starts_with(&format!("{}-", attack.kind)), "{}", attack.id);
            for text in [attack.tries, attack.stopped_by, attack.told] {
                assert!(!text.trim().is_empty(), "{}", attack.id);
            }
        }
    }
}
