//! Attacks on the interface for sockets, which no tool is granted.

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::check_both;
use crate::Arena;
use crate::attack::{Attack, AttackKind, Stopped};
use crate::guests::PROBE;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-tcp-socket",
        kind: AttackKind::Network,
        tries: "opens a TCP socket and connects to this machine",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "tcp-connect", "port": arena.forbidden_address().port() });
            Box::pin(expect_refused(arena, step))
        },
    },
    Attack {
        id: "network-listening-socket",
        kind: AttackKind::Network,
        tries: "opens a TCP socket and listens",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| Box::pin(expect_refused(arena, json!({ "do": "tcp-listen", "port": 0 }))),
    },
    Attack {
        id: "network-udp-socket",
        kind: AttackKind::Network,
        tries: "opens a UDP socket",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| Box::pin(expect_refused(arena, json!({ "do": "udp", "port": 0 }))),
    },
    Attack {
        id: "network-name-lookup",
        kind: AttackKind::Network,
        tries: "resolves names by itself, a granted one among them",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| {
            Box::pin(expect_refused(arena, json!({ "do": "resolve", "name": "granted.test" })))
        },
    },
];

/// Checks that a step is refused in a jar that may reach every host without TLS.
async fn expect_refused(arena: &Arena, step: Value) -> Stopped {
    arena.set_name_answers("granted.test", [vec![arena.forbidden_address().ip()]]);
    let jar = arena.jar_builder(&[PROBE]).no_mounts().with_host("http://*:*").open().await?;
    let steps = jar.run_steps(json!([step])).await?;
    check_both(
        steps.call.check_denied(DenyCode::InterfaceNotGranted),
        steps.check_refused("access-denied"),
    )
}
