//! Attacks over the network: by where requests go, and by what answers them.

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
use crate::jar::{OpenJar, StepResults};
use crate::peer::LoopbackPeer;

pub(super) use self::wire::WireRecorder;

pub(super) const ATTACKS: [&[crate::Attack<crate::Arena>]; 6] = [
    names::ATTACKS,
    addresses::ATTACKS,
    sockets::ATTACKS,
    peers::ATTACKS,
    replies::ATTACKS,
    floods::ATTACKS,
];

/// A step that sends a `GET` request without TLS.
pub(super) fn get_step(authority: &str, path: &str) -> Value {
    request_step(authority, path, json!({}))
}

/// A step that sends a request with more fields, or with other values.
pub(super) fn request_step(authority: &str, path: &str, more: Value) -> Value {
    let mut request = json!({
        "method": "GET", "scheme": "http", "authority": authority, "path": path,
    });
    if let (Some(fields), Value::Object(more)) = (request.as_object_mut(), more) {
        fields.extend(more);
    }
    json!({ "do": "http", "request": request })
}

/// A jar with the probe as its tool, which may reach the hosts of the given rules.
pub(super) async fn open_network_jar(arena: &Arena, rules: &[&str]) -> Result<OpenJar, Escape> {
    let builder = arena.jar_builder(&[PROBE]).no_mounts();
    rules.iter().fold(builder, |builder, rule| builder.with_host(rule)).open().await
}

/// Checks that every step was refused with one of the given words, and that the receipt has the reason
/// `code`.
fn all_denied(steps: &StepResults, words: &[&str], code: DenyCode) -> Stopped {
    steps.call.check_denied(code)?;
    steps.all_refused(0, words)
}

/// Checks that the granted server has received nothing so far and answers an allowed request now, so the
/// earlier requests were refused for what they were.
async fn check_untouched(jar: &OpenJar, peer: &LoopbackPeer) -> Result<(), Escape> {
    if let Some(asked) = peer.received_requests().first() {
        return Err(Escape::new(format!("the peer was asked: {}", asked.head)));
    }
    jar.run_steps(json!([get_step(&peer.address().to_string(), "/")])).await?.step_value(0)?;
    Ok(())
}

/// Checks that the reply of a step arrived, and that its body broke off with the given word.
pub(super) fn broken_off(steps: &StepResults, step: usize, word: &str) -> Stopped {
    let reply = steps.step_value(step)?;
    match reply.get("error").and_then(Value::as_str) {
        Some(error) if error.contains(word) => Ok(Verdict::with_words(error)),
        _ => {
            let shown: String = reply.to_string().chars().take(300).collect();
            Err(Escape::new(format!("expected a body that breaks off with `{word}`: {shown}")))
        }
    }
}

/// Returns the second verdict if both attacks were stopped.
pub(super) fn check_both(first: Stopped, second: Stopped) -> Stopped {
    first?;
    second
}
