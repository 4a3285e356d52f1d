//! Attacks on the sockets interface, which no tool is granted.

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::both;
use crate::Arena;
use crate::attack::{Attack, Kind, Stopped};
use crate::guests::PROBE;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-tcp-socket",
        kind: Kind::Network,
        tries: "opens a TCP socket and connects to this machine",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "tcp-connect", "port": arena.forbidden().port() });
            Box::pin(refused(arena, step))
        },
    },
    Attack {
        id: "network-listening-socket",
        kind: Kind::Network,
        tries: "opens a TCP socket and listens",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| Box::pin(refused(arena, json!({ "do": "tcp-listen", "port": 0 }))),
    },
    Attack {
        id: "network-udp-socket",
        kind: Kind::Network,
        tries: "opens a UDP socket",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| Box::pin(refused(arena, json!({ "do": "udp", "port": 0 }))),
    },
    Attack {
        id: "network-name-lookup",
        kind: Kind::Network,
        tries: "resolves names by itself, a granted one among them",
        stopped_by: "sockets are granted to nobody (INV-25)",
        told: "access-denied",
        embedded: true,
        run: |arena| Box::pin(refused(arena, json!({ "do": "resolve", "name": "granted.test" }))),
    },
];

/// The step, in a jar that has every host in clear text.
async fn refused(arena: &Arena, step: Value) -> Stopped {
    arena.name("granted.test", [vec![arena.forbidden().ip()]]);
    let jar = arena.jar(&[PROBE]).no_mounts().host("http://*:*").open().await?;
    let steps = jar.steps(json!([step])).await?;
    both(steps.call.denied(DenyCode::InterfaceNotGranted), steps.refused("access-denied"))
}
