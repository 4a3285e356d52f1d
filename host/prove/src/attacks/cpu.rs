//! Attacks on the processor.

use belljar_policy::{BudgetLevel, Meter};
use belljar_sandbox::CallError;
use serde_json::json;

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped};
use crate::guests::{self, Guest};

/// The fuel of one call in these attacks: enough for a fraction of a second.
const FUEL: u64 = 300_000_000;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "cpu-endless-loop",
        kind: AttackKind::Cpu,
        tries: "never returns from `invoke`",
        stopped_by: "fuel of the call (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| Box::pin(out_of_fuel(arena, guests::ENDLESS_LOOP)),
    },
    Attack {
        id: "cpu-endless-loop-without-a-fuel-limit",
        kind: AttackKind::Cpu,
        tries: "never returns, where the operator has not limited fuel",
        stopped_by: "wall-clock time of the call (INV-18)",
        told: "the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(out_of_time(arena, guests::ENDLESS_LOOP)),
    },
    Attack {
        id: "cpu-waits-for-ever",
        kind: AttackKind::Cpu,
        tries: "waits for a timer that goes off in some centuries",
        stopped_by: "wall-clock time of the call (INV-18)",
        told: "the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(out_of_time(arena, guests::WAIT)),
    },
    Attack {
        id: "cpu-loop-in-describe",
        kind: AttackKind::Cpu,
        tries: "never returns from `describe`, which runs before anything is granted",
        stopped_by: "limits of their own for describing (INV-21)",
        told: "`describe` failed",
        embedded: true,
        run: |arena| Box::pin(super::not_described(arena, guests::LOOP_IN_DESCRIBE)),
    },
    Attack {
        id: "cpu-loop-in-start-function",
        kind: AttackKind::Cpu,
        tries: "never gets past the start function of its module",
        stopped_by: "instantiating runs on the same fuel (INV-17, INV-21)",
        told: "`describe` failed",
        embedded: true,
        run: |arena| Box::pin(super::not_described(arena, guests::LOOP_IN_START)),
    },
    Attack {
        id: "cpu-deep-recursion",
        kind: AttackKind::Cpu,
        tries: "calls itself without an end",
        stopped_by: "the guest's own stack, apart from the host's (INV-19)",
        told: "call stack exhausted",
        embedded: true,
        run: |arena| Box::pin(expect_trap(arena, guests::DEEP_RECURSION, "call stack exhausted")),
    },
    Attack {
        id: "cpu-mutual-recursion",
        kind: AttackKind::Cpu,
        tries: "has two functions call each other through a table",
        stopped_by: "the guest's own stack, apart from the host's (INV-19)",
        told: "call stack exhausted",
        embedded: true,
        run: |arena| Box::pin(expect_trap(arena, guests::MUTUAL_RECURSION, "call stack exhausted")),
    },
    Attack {
        id: "cpu-fill-memory",
        kind: AttackKind::Cpu,
        tries: "fills 192 MiB with one instruction, again and again",
        stopped_by: "bulk operations cost fuel by the byte (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| Box::pin(out_of_fuel(arena, guests::FILL_MEMORY)),
    },
    Attack {
        id: "cpu-copy-memory",
        kind: AttackKind::Cpu,
        tries: "copies 96 MiB with one instruction, again and again",
        stopped_by: "bulk operations cost fuel by the byte (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| Box::pin(out_of_fuel(arena, guests::COPY_MEMORY)),
    },
    Attack {
        id: "cpu-fill-table",
        kind: AttackKind::Cpu,
        tries: "fills a large table, again and again",
        stopped_by: "bulk operations cost fuel by the element (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| Box::pin(out_of_fuel(arena, guests::FILL_TABLE)),
    },
    Attack {
        id: "cpu-backtracking-pattern",
        kind: AttackKind::Cpu,
        tries: "matches a pattern that takes exponential time",
        stopped_by: "fuel of the call (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| Box::pin(probe_out_of_fuel(arena, json!([{ "do": "backtrack", "len": 64 }]))),
    },
    Attack {
        id: "cpu-storm-of-host-calls",
        kind: AttackKind::Cpu,
        tries: "asks for the time without an end, to keep the host busy instead of itself",
        stopped_by: "fuel of the call, and yields between host calls (INV-17)",
        told: "the fuel budget of the call is used up",
        embedded: true,
        run: |arena| {
            let steps = json!([{ "do": "clock", "reads": 1_000_000_000_u64 }]);
            Box::pin(probe_out_of_fuel(arena, steps))
        },
    },
    Attack {
        id: "cpu-just-below-the-limit-of-each-call",
        kind: AttackKind::Cpu,
        tries: "uses up nearly all the fuel of a call, call after call",
        stopped_by: "the subagent's budget above its calls (INV-12)",
        told: "the fuel budget of the agent is used up",
        embedded: true,
        run: |arena| Box::pin(just_below(arena)),
    },
];

/// Makes 4 attacks, for example `cpu-endless-loop`: the attacker never returns from `invoke`.
async fn out_of_fuel(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena
        .jar_builder(&[guest])
        .with_limits(|limits| limits.fuel_per_call = FUEL)
        .open()
        .await?;
    let call = jar.call_guest(guest).await;
    // A call may exceed its fuel by one slice between yields, and by the instruction that ran beyond it.
    let most = FUEL + 210_000_000;
    if call.result.receipt.fuel > most || jar.budget.spent_amount(Meter::Fuel) < FUEL {
        return Err(Escape::new(format!("it was billed {} of {FUEL}", call.result.receipt.fuel)));
    }
    call.check_exhausted(Meter::Fuel)
}

/// Makes 2 attacks, for example `cpu-backtracking-pattern`: the attacker matches a pattern that takes
/// exponential time.
async fn probe_out_of_fuel(arena: &Arena, steps: serde_json::Value) -> Stopped {
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_limits(|limits| limits.fuel_per_call = FUEL)
        .open()
        .await?;
    jar.try_steps(steps).await.check_exhausted(Meter::Fuel)
}

/// Makes 2 attacks, for example `cpu-endless-loop-without-a-fuel-limit`: the attacker never returns, where
/// the operator has not limited fuel.
async fn out_of_time(arena: &Arena, guest: Guest) -> Stopped {
    let limits = |limits: &mut belljar_policy::Limits| {
        (limits.fuel, limits.fuel_per_call) = (u64::MAX, u64::MAX);
        limits.call_timeout_seconds = 1;
    };
    let jar = arena.jar_builder(&[guest]).with_limits(limits).open().await?;
    jar.call_guest(guest).await.check_timed_out()
}

/// Makes 2 attacks, for example `cpu-deep-recursion`: the attacker calls itself without an end.
async fn expect_trap(arena: &Arena, guest: Guest, name: &str) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    jar.call_guest(guest).await.check_trapped(name)
}

/// Attack `cpu-just-below-the-limit-of-each-call`: the attacker uses up nearly all the fuel of a call, call
/// after call.
async fn just_below(arena: &Arena) -> Stopped {
    const CALLS: u64 = 5;
    let limits = |limits: &mut belljar_policy::Limits| {
        (limits.fuel_per_call, limits.fuel) = (FUEL / 10, CALLS * FUEL / 10);
    };
    let jar = arena.jar_builder(&[guests::PROBE]).with_limits(limits).open().await?;
    let steps = json!([{ "do": "spin", "turns": 1_000_000 }]);
    for done in 0..=2 * CALLS {
        let call = jar.try_steps(steps.clone()).await;
        match &call.result.outcome {
            Ok(_) => {}
            Err(CallError::Exhausted(which))
                if which.level == BudgetLevel::Subagent && done > 1 =>
            {
                return call.check_exhausted(Meter::Fuel);
            }
            Err(error) => return Err(Escape::new(format!("call {done}: {error}"))),
        }
    }
    Err(Escape::new("its calls never ended"))
}
