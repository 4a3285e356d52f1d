//! Attacks by components that are expensive to compile.

use std::ffi::OsString;
use std::time::Duration;

use belljar_sandbox::{Compiler, Sandbox, Wasm};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use super::forge::{self, append_sections, build_section, build_vector, encode_leb};
use super::{none_loaded, not_loaded};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PLAIN;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "component-a-million-types",
        kind: AttackKind::Component,
        tries: "declares over a million types",
        stopped_by: "the validator's bounds, in the compiling child (INV-22)",
        told: "compiling failed",
        embedded: true,
        run: |arena| {
            let types = build_section(
                forge::TYPE,
                &[encode_leb(1_100_000), vec![0x7f; 1_100_000]].concat(),
            );
            Box::pin(not_loaded(arena, append_sections(&PLAIN.unpack_bytes(), &[types])))
        },
    },
    Attack {
        id: "component-types-that-double",
        kind: AttackKind::Component,
        tries: "declares 60 types, each twice the one before",
        stopped_by: "the validator's bound on the size of a type (INV-22)",
        told: "compiling failed",
        embedded: true,
        run: |arena| Box::pin(load_doubling_types(arena)),
    },
    Attack {
        id: "component-types-within-types",
        kind: AttackKind::Component,
        tries: "declares a type that nests 100,000 deep",
        stopped_by: "the child's own stack and memory: no parser of types in the host (INV-22)",
        told: "compiling failed",
        embedded: true,
        run: |arena| Box::pin(deep_type(arena)),
    },
    Attack {
        id: "component-nested-components",
        kind: AttackKind::Component,
        tries: "holds 100,000 components within each other",
        stopped_by: "nesting is walked without recursion, and compiled in a child (INV-22)",
        told: "compiling failed",
        embedded: true,
        run: |arena| {
            let inner = build_section(forge::NESTED, &forge::build_nested(100_000));
            Box::pin(not_loaded(arena, append_sections(&PLAIN.unpack_bytes(), &[inner])))
        },
    },
    Attack {
        id: "component-broken-code",
        kind: AttackKind::Component,
        tries: "has functions that leave the stack as it may not be, or call what is not there",
        stopped_by: "code is validated in the compiling child before any of it runs (INV-22)",
        told: "compiling failed",
        embedded: true,
        run: |arena| Box::pin(broken_code(arena)),
    },
    Attack {
        id: "component-fifty-megabytes-of-functions",
        kind: AttackKind::Component,
        tries: "brings 50 MB of functions, to keep a compiler busy",
        stopped_by: "a child with limits, which ends when nobody waits any more (INV-22)",
        told: "Max address space 4294967296",
        embedded: false,
        run: |arena| Box::pin(fifty_megabytes(arena)),
    },
    Attack {
        id: "component-instances-by-the-billion",
        kind: AttackKind::Component,
        tries: "unfolds a few hundred bytes into a billion instances while it is compiled",
        stopped_by: "the compiling child's processor time and memory (INV-22)",
        told: "compiling failed",
        embedded: false,
        run: |arena| Box::pin(compile_billion(arena)),
    },
    Attack {
        id: "component-bomb-in-the-way-of-others",
        kind: AttackKind::Component,
        tries: "keeps the compiler to itself, while others open tools that are compiled already",
        stopped_by: "who has its tool in the cache waits for no compiler (INV-22, INV-23)",
        told: "plain",
        embedded: false,
        run: |arena| Box::pin(in_the_way(arena)),
    },
    Attack {
        id: "component-bombs-before-an-honest-one",
        kind: AttackKind::Component,
        tries: "keeps the compiler to itself, while others wait for a tool's first compilation",
        stopped_by: "what compiles for long lets the others by (INV-68)",
        told: "plain",
        embedded: false,
        run: |arena| Box::pin(before_an_honest_one(arena)),
    },
];

/// The time limit of every wait in these attacks.
const PATIENCE: Duration = Duration::from_secs(40);

/// Attack `component-types-that-double`: the attacker declares 60 types, each twice the one before.
async fn load_doubling_types(arena: &Arena) -> Stopped {
    // A tuple type of two elements, each of the previous type.
    let twice = |n: u8| vec![0x6f, 2, n, n];
    let types: Vec<_> = std::iter::once(vec![0x7f]).chain((0..60).map(twice)).collect();
    let inner = forge::build_component(&[build_section(forge::TYPE, &build_vector(&types))]);
    not_loaded(
        arena,
        append_sections(&PLAIN.unpack_bytes(), &[build_section(forge::NESTED, &inner)]),
    )
    .await
}

/// Attack `component-types-within-types`: the attacker declares a type that nests 100,000 deep.
async fn deep_type(arena: &Arena) -> Stopped {
    // A component or instance type with a single declaration: another such type.
    let deep = |kind: u8| [[kind, 1, 1].repeat(100_000), vec![0x7f]].concat();
    let type_of = |kind| build_section(forge::TYPE, &[vec![1], deep(kind)].concat());
    let all = [0x41, 0x42].map(|kind| append_sections(&PLAIN.unpack_bytes(), &[type_of(kind)]));
    none_loaded(arena, all.to_vec()).await
}

/// Attack `component-broken-code`: the attacker has functions that leave the stack as it may not be, or call
/// what is not there.
async fn broken_code(arena: &Arena) -> Stopped {
    let bodies: [&[u8]; 5] = [
        &[0x0b],
        &[0x1a, 0x20, 0, 0x0b],
        &[0x20, 0, 0x10, 0x7f, 0x0b],
        &[0x20, 99, 0x0b],
        &[0x20, 0, 0xff, 0x0b],
    ];
    let with = |body: &[u8]| {
        let module = build_section(forge::CORE_MODULE, &forge::build_module(2, body));
        append_sections(&PLAIN.unpack_bytes(), &[module])
    };
    none_loaded(arena, bodies.map(with).to_vec()).await
}

/// A module with a thousand functions of 50 KB, each a long chain of operations.
fn heavy_module() -> Vec<u8> {
    // The code: local.get 0; i64.const 5; i64.add; local.get 0; i64.mul; ... end
    let turn = [0x42, 5, 0x7c, 0x20, 0, 0x7e];
    let body = [&[0x20, 0], turn.repeat(50_000 / turn.len()).as_slice(), &[0x0b]].concat();
    let module = build_section(forge::CORE_MODULE, &forge::build_module(1_000, &body));
    append_sections(&PLAIN.unpack_bytes(), &[module])
}

/// A component of some hundred bytes that a compiler unfolds to a billion instances.
fn unfolding_component() -> Vec<u8> {
    let nested = build_section(forge::NESTED, &forge::build_unfolding(6, 30));
    let index = forge::count_sections(&PLAIN.unpack_bytes(), forge::NESTED);
    let instance = build_vector(&[[vec![0], encode_leb(index), vec![0]].concat()]);
    append_sections(&PLAIN.unpack_bytes(), &[nested, build_section(forge::INSTANCE, &instance)])
}

/// Attack `component-fifty-megabytes-of-functions`: the attacker brings 50 MB of functions, to keep a
/// compiler busy.
async fn fifty_megabytes(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let before = list_children();
    // Without a cache, because an earlier finished compilation must not help this one.
    let own = arena.own_sandbox(None, arena.compiler()).map_err(anyhow::Error::from)?;
    let loading = spawn_load(&own, heavy_module());
    let child = wait_for_child(&before).await?;
    let limits = read_limits(child)?;
    if loading.is_finished() {
        return Err(Escape::new("it is not as dear as it should be"));
    }
    loading.abort();
    let _ = loading.await;
    wait_for_exit(child).await?;
    let wanted = ["Max cpu time 300", "Max address space 4294967296", "Max file size 0"];
    match wanted.iter().find(|limit| !limits.contains(**limit)) {
        None => Ok(Verdict::with_words(limits)),
        Some(missing) => Err(Escape::new(format!("no `{missing}` among {limits}"))),
    }
}

/// Attack with a component that unfolds to a billion instances. The compiler's own limits are large, for
/// example five minutes, so a shell starts it with a lower limit of time or memory, which it keeps.
async fn compile_billion(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let Compiler::Child { program, args } = arena.compiler() else {
        return Err(Escape::new("this suite compiles without a child"));
    };
    let mut told = Vec::new();
    for limit in ["-t 2", "-v 1000000"] {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut line: Vec<OsString> = vec!["-c".into(), script.into(), program.clone().into()];
        line.extend(args.iter().cloned());
        let compiler = Compiler::Child { program: "/bin/sh".into(), args: line };
        let own = arena.own_sandbox(None, compiler).map_err(anyhow::Error::from)?;
        match timeout(PATIENCE, own.load_component(&Wasm::new(unfolding_component()))).await {
            Ok(Err(error)) => told.push(error.to_string()),
            Ok(Ok(_)) => return Err(Escape::new(format!("it was loaded under {limit}"))),
            Err(_) => return Err(Escape::new(format!("{limit} did not end it"))),
        }
        own.load_component(&PLAIN.to_wasm()).await.map_err(|error| {
            Escape::new(format!("an honest tool does not compile under {limit}: {error}"))
        })?;
    }
    Ok(Verdict::with_words(told.join("; ")))
}

/// Attack `component-bomb-in-the-way-of-others`: the attacker keeps the compiler to itself, while others open
/// tools that are compiled already.
async fn in_the_way(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let cache = Some(arena.path("home").join("cache"));
    let own = || arena.own_sandbox(cache.clone(), arena.compiler()).map_err(anyhow::Error::from);
    own()?.describe_tools(&PLAIN.to_wasm()).await.map_err(anyhow::Error::from)?;
    // A second sandbox, with nothing in memory.
    let (own, before) = (own()?, list_children());
    let bomb = spawn_load(&own, heavy_module());
    let child = wait_for_child(&before).await?;
    let wasm = PLAIN.to_wasm();
    let honest = timeout(PATIENCE, async {
        own.load_component(&wasm).await.map_err(anyhow::Error::from)?;
        own.describe_tools(&wasm).await.map_err(anyhow::Error::from)
    });
    let honest = honest.await;
    let over = bomb.is_finished() || !list_children().contains(&child);
    bomb.abort();
    let _ = bomb.await;
    wait_for_exit(child).await?;
    match honest {
        Ok(_) if over => Err(Escape::new("the bomb was done first")),
        Ok(Ok(tools)) => {
            Ok(Verdict::with_words(tools.iter().map(|it| it.name.as_str()).collect::<String>()))
        }
        Ok(Err(error)) => Err(Escape::new(format!("the honest tool does not load: {error}"))),
        Err(_) => Err(Escape::new("the honest tool waits for the bomb")),
    }
}

/// Attack `component-bombs-before-an-honest-one`: the attacker keeps the compiler to itself, while others
/// wait for a tool's first compilation.
async fn before_an_honest_one(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let own = arena.own_sandbox(None, arena.compiler()).map_err(anyhow::Error::from)?;
    let before = list_children();
    // A custom section makes each module different, so each is compiled separately.
    let bomb = |n: u8| [heavy_module(), build_section(forge::CUSTOM, &[1, b'n', n])].concat();
    let bombs = [0, 1, 2, 3].map(|n| spawn_load(&own, bomb(n)));
    wait_for_child(&before).await?;
    let honest = timeout(PATIENCE, own.load_component(&PLAIN.to_wasm())).await;
    let going = bombs.iter().filter(|bomb| !bomb.is_finished()).count();
    for bomb in bombs {
        bomb.abort();
        let _ = bomb.await;
    }
    for child in list_children().into_iter().filter(|id| !before.contains(id)) {
        wait_for_exit(child).await?;
    }
    match honest {
        // One bomb may have been in the queue before the honest tool.
        Ok(Ok(_)) if going < 3 => Err(Escape::new("the bombs were done first")),
        Ok(Ok(_)) => Ok(Verdict::with_words("plain")),
        Ok(Err(error)) => Err(Escape::new(format!("the honest tool does not load: {error}"))),
        Err(_) => Err(Escape::new("the honest tool waits for the bombs")),
    }
}

fn spawn_load(sandbox: &Sandbox, bytes: Vec<u8>) -> JoinHandle<()> {
    let sandbox = sandbox.clone();
    tokio::spawn(async move { drop(sandbox.load_component(&Wasm::new(bytes)).await) })
}

/// The ids of the other processes that run this program: its compiling children.
fn list_children() -> Vec<u32> {
    let program = std::fs::read_link("/proc/self/exe").ok();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != std::process::id() && is_alive(*id, program.as_deref())).collect()
}

fn is_alive(id: u32, program: Option<&std::path::Path>) -> bool {
    // A process that has ended but was not waited for has no program.
    program.is_some() && std::fs::read_link(format!("/proc/{id}/exe")).ok().as_deref() == program
}

/// Waits for a compiling child that is not in `before`, until it has set its limits.
async fn wait_for_child(before: &[u32]) -> Result<u32, Escape> {
    let look = async {
        let mut pace = interval(Duration::from_millis(2));
        loop {
            pace.tick().await;
            let new = list_children().into_iter().find(|id| !before.contains(id));
            let set =
                |id: &u32| read_limits(*id).is_ok_and(|limits| limits.contains("Max file size 0"));
            if let Some(id) = new.filter(set) {
                return id;
            }
        }
    };
    let found = timeout(PATIENCE, look).await;
    found.map_err(|_| Escape::new("there is no compiling child with limits"))
}

/// Waits until a compiling child has ended.
async fn wait_for_exit(child: u32) -> Result<(), Escape> {
    let program = std::fs::read_link("/proc/self/exe").ok();
    let wait = async {
        let mut pace = interval(Duration::from_millis(2));
        while is_alive(child, program.as_deref()) {
            pace.tick().await;
        }
    };
    let ended = timeout(PATIENCE, wait).await;
    ended.map_err(|_| Escape::new("the compiling child goes on while nobody waits"))
}

/// The limits of a process as text: each line has a name and the soft limit, separated by single blanks.
fn read_limits(process: u32) -> Result<String, Escape> {
    let text = std::fs::read_to_string(format!("/proc/{process}/limits"))?;
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        // A line ends with the hard limit and, for most limits, a unit.
        let number = words.iter().position(|word| {
            *word == "unlimited" || word.bytes().all(|byte| byte.is_ascii_digit())
        });
        words.get(..=number.unwrap_or_default()).unwrap_or_default().join(" ")
    };
    Ok(text.lines().skip(1).map(line).collect::<Vec<_>>().join("; "))
}
