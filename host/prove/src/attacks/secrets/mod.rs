//! Attacks on secrets: to read one, to have it repeated, or to have it sent elsewhere.
//!
//! The arena searches every answer, receipt and log line for the value; [`check_unseen`] also searches for
//! parts of it.

mod bound;
mod echo;
mod guesses;
mod hidden;
mod others;
mod places;

use serde_json::json;

use super::network::get_step;
use crate::Arena;
use crate::attack::{Escape, Stopped};
use crate::guests::PROBE;
use crate::jar::{AttackCall, OpenJar};
use crate::peer::{LoopbackPeer, Script};

pub(super) const ATTACKS: [&[crate::Attack<crate::Arena>]; 6] = [
    echo::ATTACKS,
    hidden::ATTACKS,
    bound::ATTACKS,
    places::ATTACKS,
    guesses::ATTACKS,
    others::ATTACKS,
];

/// The number of consecutive letters of the value that must not be seen anywhere.
const PART: usize = 12;

/// Starts a server to which the secret is bound, and opens a jar that may call it.
async fn open_bound_jar(arena: &Arena, script: Script) -> Result<(LoopbackPeer, OpenJar), Escape> {
    let peer = arena.start_peer(script).await?;
    let builder = arena.jar_builder(&[PROBE]).no_mounts().with_host(&peer.grant_rule());
    let jar = builder.secret_for(&peer.grant_rule()).open().await?;
    Ok((peer, jar))
}

/// Checks that the server was sent the secret, so it could repeat it.
fn check_peer_knows(arena: &Arena, peer: &LoopbackPeer) -> Result<(), Escape> {
    let value = format!("authorization: Bearer {}\r\n", arena.secret_value());
    match peer.received_requests().last() {
        Some(asked) if asked.head.contains(&value) => Ok(()),
        asked => Err(Escape::new(format!("the peer was not sent the secret: {asked:?}"))),
    }
}

/// Checks that neither the caller's answer nor the receipt contains a part of the value, in upper or lower
/// case.
fn check_unseen(arena: &Arena, call: &AttackCall) -> Result<(), Escape> {
    let receipt = serde_json::to_string(&call.result.receipt).map_err(anyhow::Error::from)?;
    for (place, text) in [("what it was told", &call.told), ("the receipt", &receipt)] {
        let text = text.to_ascii_lowercase();
        let value = arena.secret_value().to_ascii_lowercase().into_bytes();
        if value.windows(PART).any(|part| crate::secret::contains_bytes(text.as_bytes(), part)) {
            return Err(Escape::new(format!("a part of the secret stands in {place}: {text}")));
        }
    }
    Ok(())
}

/// Sends one request for each path to a scripted server that was sent the secret. Checks that every reply is
/// withheld as a whole, head included, with one of the given words, and that no part of the value is seen.
async fn check_withheld(arena: &Arena, script: Script, paths: usize, words: &[&str]) -> Stopped {
    let (peer, jar) = open_bound_jar(arena, script).await?;
    let at = peer.address().to_string();
    let mut told = Vec::new();
    for path in 0..paths {
        let steps = jar.run_steps(json!([get_step(&at, &format!("/{path}"))])).await?;
        check_peer_knows(arena, &peer)?;
        check_unseen(arena, &steps.call)?;
        let word = steps.step_error(0)?.to_owned();
        if !words.iter().any(|expected| word.contains(expected)) {
            return Err(Escape::new(format!("reply {path} gave {word}, not {words:?}")));
        }
        if !told.contains(&word) {
            told.push(word);
        }
    }
    Ok(crate::Verdict::with_words(told.join(", ")))
}

/// The number in a path such as `/7`.
fn path_number(asked: &crate::peer::PeerRequest) -> usize {
    let path = asked.head.split(' ').nth(1).unwrap_or_default();
    path.trim_start_matches('/').parse().unwrap_or_default()
}
