//! Attacks on memory and on the tables of the host.

use serde_json::json;

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped};
use crate::guests::{self, Guest};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "memory-grow-to-the-limit",
        kind: AttackKind::Memory,
        tries: "takes page after page",
        stopped_by: "the jar's memory budget (INV-20)",
        told: "no more memory",
        embedded: true,
        run: |arena| Box::pin(grow_memory(arena, guests::GROW_MEMORY)),
    },
    Attack {
        id: "memory-grow-a-table",
        kind: AttackKind::Memory,
        tries: "grows a table in place of its memory",
        stopped_by: "tables count against the same budget (INV-20)",
        told: "no larger table",
        embedded: true,
        run: |arena| Box::pin(grow_memory(arena, guests::GROW_TABLE)),
    },
    Attack {
        id: "memory-allocate-past-the-limit",
        kind: AttackKind::Memory,
        tries: "allocates more than its jar may have, and touches it",
        stopped_by: "the jar's memory budget (INV-20)",
        told: "the memory budget of the agent is used up",
        embedded: true,
        run: |arena| Box::pin(allocate_too_much(arena)),
    },
    Attack {
        id: "memory-many-memories",
        kind: AttackKind::Memory,
        tries: "has more memories than a store may hold",
        stopped_by: "a bound on memories per store (INV-20)",
        told: "`describe` failed",
        embedded: true,
        run: |arena| Box::pin(super::not_described(arena, guests::MANY_MEMORIES)),
    },
    Attack {
        id: "memory-many-tables",
        kind: AttackKind::Memory,
        tries: "has more tables than a store may hold",
        stopped_by: "a bound on tables per store (INV-20)",
        told: "`describe` failed",
        embedded: true,
        run: |arena| Box::pin(super::not_described(arena, guests::MANY_TABLES)),
    },
    Attack {
        id: "memory-flood-of-timers",
        kind: AttackKind::Memory,
        tries: "makes timers and keeps them all",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| {
            let timer = json!({ "do": "timer", "ns": 1_000_000_000_000_u64 });
            Box::pin(held_without_end(arena, timer))
        },
    },
    Attack {
        id: "memory-flood-of-streams",
        kind: AttackKind::Memory,
        tries: "asks for stdout again and again and keeps every handle",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(held_without_end(arena, json!({ "do": "hold-stdout" }))),
    },
    Attack {
        id: "memory-flood-of-networks",
        kind: AttackKind::Memory,
        tries: "asks for the inert network handle again and again",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(held_without_end(arena, json!({ "do": "network" }))),
    },
    Attack {
        id: "memory-string-of-4-gib",
        kind: AttackKind::Memory,
        tries: "claims that a log line is 4 GiB long",
        stopped_by: "lengths are checked against the guest's memory before anything is copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::LONG_STRING)),
    },
    Attack {
        id: "memory-list-of-4-gib",
        kind: AttackKind::Memory,
        tries: "claims to wait for a list of a billion timers",
        stopped_by: "lengths are checked against the guest's memory before anything is copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::LONG_LIST)),
    },
    Attack {
        id: "memory-answer-past-the-end",
        kind: AttackKind::Memory,
        tries: "has the host write its answer past the end of the guest's memory",
        stopped_by: "pointers are checked against the guest's memory",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::ANSWER_PAST_THE_END)),
    },
    Attack {
        id: "memory-one-large-host-call",
        kind: AttackKind::Memory,
        tries: "hands the host a log line of 20 MB",
        stopped_by: "a bound on the bytes of one host call",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(probe_crashes(arena, json!([{ "do": "log", "bytes": 20_000_000 }]))),
    },
    Attack {
        id: "memory-a-gigabyte-of-random-bytes",
        kind: AttackKind::Memory,
        tries: "asks for a gigabyte of random bytes",
        stopped_by: "a bound on the random bytes of one request",
        told: "the tool crashed",
        embedded: true,
        run: |arena| {
            Box::pin(probe_crashes(arena, json!([{ "do": "random", "bytes": 1_u64 << 30 }])))
        },
    },
    Attack {
        id: "memory-stack-under-a-host-call",
        kind: AttackKind::Memory,
        tries: "calls the host from ever deeper in its own stack, so that the host runs out of its",
        stopped_by: "the host's stack lies beyond the guest's (INV-19)",
        told: "call stack exhausted",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::DEEP_HOST_CALL)),
    },
    Attack {
        id: "memory-wait-for-a-hundred-thousand-at-once",
        kind: AttackKind::Memory,
        tries: "waits for one timer named a hundred thousand times",
        stopped_by: "a bound on what the host holds for one store (INV-19)",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(wait_repeatedly(arena)),
    },
];

/// The bytes of memory of a jar in these attacks.
const MEMORY: u64 = 64 << 20;

/// Attack by a guest that grows its memory; when more is refused, it ends normally.
async fn grow_memory(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena
        .jar_builder(&[guest])
        .with_limits(|limits| limits.memory_bytes = MEMORY)
        .open()
        .await?;
    let call = jar.call_guest(guest).await;
    let peak = call.result.receipt.peak_memory;
    if peak > MEMORY {
        return Err(Escape::new(format!("it held {peak} bytes of {MEMORY}")));
    }
    call.check_completed()
}

/// Attack `memory-allocate-past-the-limit`: the attacker allocates more than its jar may have, and touches
/// it.
async fn allocate_too_much(arena: &Arena) -> Stopped {
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_limits(|limits| limits.memory_bytes = MEMORY)
        .open()
        .await?;
    let call = jar.try_steps(json!([{ "do": "allocate", "bytes": 2 * MEMORY }])).await;
    if call.result.receipt.peak_memory > MEMORY {
        return Err(Escape::new(format!("it held {} bytes", call.result.receipt.peak_memory)));
    }
    call.check_exhausted(belljar_policy::Meter::Memory)
}

/// Makes 4 attacks, for example `memory-string-of-4-gib`: the attacker claims that a log line is 4 GiB long.
async fn crash_guest(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    jar.call_guest(guest).await.check_trapped("")
}

/// Makes 2 attacks, for example `memory-one-large-host-call`: the attacker hands the host a log line of 20
/// MB.
async fn probe_crashes(arena: &Arena, steps: serde_json::Value) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    jar.try_steps(steps).await.check_trapped("")
}

/// Attack that repeats one step a hundred thousand times, and keeps each resource that it gets.
async fn held_without_end(arena: &Arena, step: serde_json::Value) -> Stopped {
    let repeat = json!([{ "do": "repeat", "times": 100_000, "step": step }]);
    probe_crashes(arena, repeat).await
}

/// Attack `memory-wait-for-a-hundred-thousand-at-once`: the attacker waits for one timer named a hundred
/// thousand times.
async fn wait_repeatedly(arena: &Arena) -> Stopped {
    let steps = json!([
        { "do": "timer", "ns": 3_600_000_000_000_u64 },
        { "do": "poll-many", "held": 0, "times": 100_000 },
    ]);
    probe_crashes(arena, steps).await
}
