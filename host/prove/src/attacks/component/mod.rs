//! Attacks by a component itself: by its bytes, imports, description, or place on disk.

/// A row for an attack that consists of one guest and one function, which gets the arena and the guest.
macro_rules! of_guest {
    ($run:ident, $id:literal, $tries:literal, $by:literal, $told:literal, $guest:ident) => {
        Attack {
            id: $id,
            kind: AttackKind::Component,
            tries: $tries,
            stopped_by: $by,
            told: $told,
            embedded: true,
            run: |arena| Box::pin($run(arena, guests::$guest)),
        }
    };
}

mod bytes;
mod cache;
mod compiling;
mod describing;
mod foreign;
mod forge;
mod installed;
mod worlds;

use belljar_sandbox::Wasm;

use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};

pub(super) const ATTACKS: [&[Attack<crate::Arena>]; 7] = [
    bytes::ATTACKS,
    compiling::ATTACKS,
    worlds::ATTACKS,
    describing::ATTACKS,
    foreign::ATTACKS,
    installed::ATTACKS,
    cache::ATTACKS,
];

/// Checks that loading these bytes fails.
async fn not_loaded(arena: &Arena, bytes: Vec<u8>) -> Stopped {
    // The state before the attack is recorded when the first jar is opened, so an empty one is opened here.
    arena.jar_builder(&[]).open().await?;
    match arena.sandbox().load_component(&Wasm::new(bytes)).await {
        Ok(_) => Err(Escape::new("it was loaded")),
        Err(error) => Ok(Verdict::with_words(error.to_string())),
    }
}

/// Checks that each of these fails to load; returns the different error texts.
async fn none_loaded(arena: &Arena, all: Vec<Vec<u8>>) -> Stopped {
    let mut told: Vec<String> = Vec::new();
    for (turn, bytes) in all.into_iter().enumerate() {
        let verdict = not_loaded(arena, bytes).await;
        let verdict = verdict.map_err(|escape| Escape::new(format!("number {turn}: {escape}")))?;
        if !told.contains(&verdict.told) {
            told.push(verdict.told);
        }
    }
    Ok(Verdict::with_words(told.join("; ")))
}
