//! Attacks over the network: where requests go, and what answers them.

mod addresses;
mod floods;
mod names;
mod peers;
mod replies;
mod sockets;
mod wire;

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use crate::Arena;
use crate::attack::{Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::jar::{OpenJar, Steps};
use crate::peer::Peer;

pub(super) use self::wire::Wire;

pub(super) const ATTACKS: [&[crate::Attack<crate::Arena>]; 6] = [
    names::ATTACKS,
    addresses::ATTACKS,
    sockets::ATTACKS,
    peers::ATTACKS,
    replies::ATTACKS,
    floods::ATTACKS,
];

/// A request in clear text.
pub(super) fn get(authority: &str, path: &str) -> Value {
    with(authority, path, json!({}))
}

/// A request with more to it, or with other parts.
pub(super) fn with(authority: &str, path: &str, more: Value) -> Value {
    let mut request = json!({
        "method": "GET", "scheme": "http", "authority": authority, "path": path,
    });
    if let (Some(fields), Value::Object(more)) = (request.as_object_mut(), more) {
        fields.extend(more);
    }
    json!({ "do": "http", "request": request })
}

/// A jar with the probe and these hosts.
pub(super) async fn jar(arena: &Arena, rules: &[&str]) -> Result<OpenJar, Escape> {
    let builder = arena.jar(&[PROBE]).no_mounts();
    rules.iter().fold(builder, |builder, rule| builder.host(rule)).open().await
}

/// Every step was refused with one of these words, and the receipt has this reason.
fn all_denied(steps: &Steps, words: &[&str], code: DenyCode) -> Stopped {
    steps.call.denied(code)?;
    steps.all_refused(0, words)
}

/// The granted peer has been asked nothing, and answers when it is asked as it may be: what was
/// refused before was refused for what it was.
async fn untouched(jar: &OpenJar, peer: &Peer) -> Result<(), Escape> {
    if let Some(asked) = peer.asked().first() {
        return Err(Escape::new(format!("the peer was asked: {}", asked.head)));
    }
    jar.steps(json!([get(&peer.at().to_string(), "/")])).await?.ok(0)?;
    Ok(())
}

/// The reply of a step came, and its body broke off with this word.
pub(super) fn broken_off(steps: &Steps, step: usize, word: &str) -> Stopped {
    let reply = steps.ok(step)?;
    match reply.get("error").and_then(Value::as_str) {
        Some(error) if error.contains(word) => Ok(Verdict::told(error)),
        _ => {
            let shown: String = reply.to_string().chars().take(300).collect();
            Err(Escape::new(format!("expected a body that breaks off with `{word}`: {shown}")))
        }
    }
}

/// Both hold; told what the second says.
pub(super) fn both(first: Stopped, second: Stopped) -> Stopped {
    first?;
    second
}
