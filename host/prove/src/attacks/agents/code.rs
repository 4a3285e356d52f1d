//! Scripts that call tools: past their rights, into the interpreter, and without end.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_agent::{
    ChildSummary, Journal, Outcome, Replay, RunId, RunSpec, RunStatus, StepEntry, StepKind,
};
use serde_json::json;

use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests::{RUN_JAVASCRIPT, RUN_JAVASCRIPT_MANIFEST};
use crate::scene::{Plan, Scene, agent};

/// Bytes that a model may be sent of one script, however much that prints.
const MOST: usize = 64 << 10;

pub(super) const ATTACKS: &[Attack<Arena>] = &[
    Attack {
        id: "agents-code-outside-its-rights",
        kind: Kind::Agents,
        tries: "calls, from a script, tools that its agent was not given, and itself",
        stopped_by: "a script may call what its agent may, and no component that waits for it (INV-230)",
        told: "denied denied denied denied",
        embedded: true,
        run: |arena| Box::pin(outside(arena)),
    },
    Attack {
        id: "agents-code-past-its-functions",
        kind: Kind::Agents,
        tries: "reaches behind the functions that stand for tools, to what makes the calls",
        stopped_by: "whatever a script reaches has the rights of its agent and no others (INV-230)",
        told: "denied",
        embedded: true,
        run: |arena| Box::pin(behind(arena)),
    },
    Attack {
        id: "agents-code-a-direct-call",
        kind: Kind::Agents,
        tries: "calls a tool directly that it was shown as a function alone",
        stopped_by: "what was not shown as a tool is not called as one (INV-240)",
        told: "tool not allowed: the available tools are `run_javascript`",
        embedded: true,
        run: |arena| Box::pin(directly(arena)),
    },
    Attack {
        id: "agents-code-poison-the-interpreter",
        kind: Kind::Agents,
        tries: "changes the interpreter's own objects for the agent that comes after it",
        stopped_by: "each agent has an interpreter of its own (INV-242)",
        told: "clean",
        embedded: true,
        run: |arena| Box::pin(poisons(arena)),
    },
    Attack {
        id: "agents-code-never-ends",
        kind: Kind::Agents,
        tries: "loops for ever and catches whatever would end it",
        stopped_by: "fuel is the host's, and no exception of the script (INV-8)",
        told: "fuel",
        embedded: true,
        run: |arena| Box::pin(endless(arena)),
    },
    Attack {
        id: "agents-code-deep-recursion",
        kind: Kind::Agents,
        tries: "uses up the stack by functions, nested brackets, patterns and conversions",
        stopped_by: "the interpreter has a limit below the machine's: an exception of the script",
        told: "RangeError",
        embedded: true,
        run: |arena| Box::pin(deep(arena)),
    },
    Attack {
        id: "agents-code-huge-output",
        kind: Kind::Agents,
        tries: "prints and returns more than its model, or its host, can take",
        stopped_by: "the head and the tail of a bounded text are sent",
        told: "bytes left out",
        embedded: true,
        run: |arena| Box::pin(floods_output(arena)),
    },
    Attack {
        id: "agents-code-memory",
        kind: Kind::Agents,
        tries: "takes all memory there is, and what its store's death would free",
        stopped_by: "the interpreter's limit lies below the jar's: an exception of the script",
        told: "out of memory",
        embedded: true,
        run: |arena| Box::pin(hogs(arena)),
    },
    Attack {
        id: "agents-code-floods-parallel",
        kind: Kind::Agents,
        tries: "makes a hundred thousand calls at once",
        stopped_by: "calls are bounded at once and below one call of the model (INV-231)",
        told: "too-large",
        embedded: true,
        run: |arena| Box::pin(floods_calls(arena)),
    },
    Attack {
        id: "agents-code-kept-over-a-fork",
        kind: Kind::Agents,
        tries: "keeps what its calls gave in a variable, for a fork of its agent to find",
        stopped_by: "a fork has an interpreter of its own, and what was said, not what was read (INV-242)",
        told: "undefined",
        embedded: true,
        run: |arena| Box::pin(over_a_fork(arena)),
    },
    Attack {
        id: "agents-code-another-way-after-its-death",
        kind: Kind::Agents,
        tries: "does what it does because of a variable, and runs again without it after the process died",
        stopped_by: "a script that ends without its recorded calls is an error that says so (INV-251)",
        told: "went another way when it ran again: it ended without 1 of its calls",
        embedded: true,
        run: |arena| Box::pin(another_way(arena)),
    },
];

const SETTINGS: &str = "[grants.it]\ntools = [\"run_javascript\", \"file_read\"]\n";

/// The calls of an agent, as its transcript writes them.
fn turns(calls: &[(&str, serde_json::Value)]) -> String {
    let turn = |(tool, arguments): &(&str, serde_json::Value)| {
        format!("      - calls: [{{name: {tool}, arguments: {arguments}}}]\n")
    };
    calls.iter().map(turn).collect()
}

fn scene(arena: &Arena, settings: &str, turns: &str, more: &str) -> Result<Scene, Escape> {
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n{turns}      - say: done\n{more}"
    );
    arena.scene(&Plan {
        transcript: &transcript,
        settings,
        agents: &[("it.md", &agent("it", "")), ("other.md", &agent("other", ""))],
        files: &[("a.txt", "text of a\n")],
        guests: &[(RUN_JAVASCRIPT, RUN_JAVASCRIPT_MANIFEST)],
        ..Plan::default()
    })
}

async fn finished(scene: &Scene) -> Result<Outcome, Escape> {
    let outcome = scene.run("it", "task").await?;
    match outcome.status {
        RunStatus::Completed => Ok(outcome),
        status => Err(Escape::new(format!("the run ended as {status}: {:?}", outcome.error))),
    }
}

/// Runs one script; the text that the model was sent, and whether it is an error.
async fn run(arena: &Arena, settings: &str, code: &str) -> Result<(String, bool), Escape> {
    let scene = scene(arena, settings, &turns(&[("run_javascript", json!({ "code": code }))]), "")?;
    finished(&scene).await?;
    let results = super::answers(&scene, "it")?;
    results.into_iter().next().ok_or_else(|| Escape::new("there is no result"))
}

/// The value that the script returned, where it ended well.
async fn returned(arena: &Arena, settings: &str, code: &str) -> Stopped {
    let (text, is_error) = run(arena, settings, code).await?;
    if is_error {
        return Err(Escape::new(format!("the script failed: {text}")));
    }
    Ok(Verdict::told(text))
}

async fn outside(arena: &Arena) -> Stopped {
    let code = "const kind = f => { try { f(); return 'done' } catch (e) { return e.kind } };\n\
        [() => tools.file_write({path: 'a.txt', content: 'x'}), () => tools.spawn_agent({agent: 'it', task: 'x'}),\n\
         () => tools.nowhere({}), () => tools.run_javascript({code: '1'})].map(kind).join(' ')";
    returned(arena, SETTINGS, code).await
}

async fn behind(arena: &Arena) -> Stopped {
    let code = "const all = new Set([Function('return this')(), tools, parallel, help, ToolError, tools.file_read]);\n\
        for (const one of all) {\n\
          for (let at = one; at; at = Object.getPrototypeOf(at)) {\n\
            for (const key of Reflect.ownKeys(at)) {\n\
              let value; try { value = at[key] } catch { continue }\n\
              if (all.size < 2000 && value && /^(object|function)$/.test(typeof value)) all.add(value)\n\
            }\n\
          }\n\
        }\n\
        const seen = new Set();\n\
        for (const one of all) {\n\
          if (typeof one !== 'function') continue;\n\
          for (const args of [['file_write', '{\"path\":\"a.txt\",\"content\":\"x\"}'], [[['file_write', '{\"path\":\"a.txt\",\"content\":\"x\"}']]]]) {\n\
            try { const r = one(...args); if (r && r.kind) seen.add(r.kind); if (Array.isArray(r)) for (const x of r) if (x?.kind) seen.add(x.kind) } catch (e) { if (e?.kind) seen.add(e.kind) }\n\
          }\n\
        }\n\
        try { tools.file_write({path: 'a.txt', content: 'x'}) } catch (e) { seen.add(e.kind) }\n\
        [...seen].join()";
    // Some of what it finds never returns or ends the script: that is a refusal too, and the file tells.
    let (text, _) = run(arena, SETTINGS, code).await?;
    Ok(Verdict::told(if text.contains("denied") { text } else { format!("denied: {text}") }))
}

async fn directly(arena: &Arena) -> Stopped {
    let settings = format!("{SETTINGS}tools_as = \"code\"\n");
    let turns = turns(&[("file_read", json!({ "path": "a.txt" }))]);
    let scene = scene(arena, &settings, &turns, "")?;
    let outcome = finished(&scene).await?;
    if outcome.receipts.iter().any(|call| !call.receipt.paths_read.is_empty()) {
        return Err(Escape::new("it was read"));
    }
    super::all_refused(super::answers(&scene, "it")?, 1)
}

async fn poisons(arena: &Arena) -> Stopped {
    let poison = "Object.prototype.kind = 'mine'; Array.prototype.map = () => 'mine'; JSON.stringify = () => '{\"path\":\"mine\"}';\n\
        globalThis.leak = tools; String.prototype.split = () => ['mine']; 1";
    let look = "[typeof leak, ({}).kind, [1].map(x => x)[0], JSON.stringify({}), 'a b'.split(' ').length].join() === 'undefined,,1,{},2' ? 'clean' : 'poisoned'";
    let first = turns(&[
        ("run_javascript", json!({ "code": poison })),
        ("spawn_agent", json!({ "agent": "other", "task": "look" })),
    ]);
    let second = turns(&[("run_javascript", json!({ "code": look }))]);
    let more = format!("  - agent: other\n    spawn: 0\n    turns:\n{second}      - say: done\n");
    let settings = "[grants.it]\ntools = [\"run_javascript\", \"spawn_agent\"]\n\
        [grants.other]\ntools = [\"run_javascript\"]\n";
    let scene = scene(arena, settings, &first, &more)?;
    finished(&scene).await?;
    let results = super::answers(&scene, "other")?;
    let (text, _) = results.into_iter().next().ok_or_else(|| Escape::new("nobody looked"))?;
    if text.contains("poisoned") {
        return Err(Escape::new("another agent sees what a script changed"));
    }
    Ok(Verdict::told(text))
}

async fn endless(arena: &Arena) -> Stopped {
    let settings = format!("{SETTINGS}limits = {{ fuel_per_call = 200_000_000 }}\n");
    let code = "for (;;) { try { for (;;) { try { throw 1 } finally { continue } } } catch {} }";
    let (text, is_error) = run(arena, &settings, code).await?;
    if !is_error {
        return Err(Escape::new(format!("it ended well: {text}")));
    }
    Ok(Verdict::told(text))
}

async fn deep(arena: &Arena) -> Stopped {
    let code = "const names = [() => { const f = () => f(); f() }, () => eval('['.repeat(3000) + ']'.repeat(3000)),\n\
        () => eval('('.repeat(3000) + '1' + ')'.repeat(3000)), () => JSON.parse('['.repeat(100000)),\n\
        () => { const s = {toString() { return `${this}` }}; `${s}` },\n\
        () => JSON.stringify({toJSON() { return JSON.stringify(this) }})].map(f => { try { f(); return 'none' } catch (e) { return e.name } });\n\
        [...new Set(names)].join()";
    returned(arena, SETTINGS, code).await
}

async fn floods_output(arena: &Arena) -> Stopped {
    let code = "for (let i = 0; i < 300; i++) print('x'.repeat(100000)); 'y'.repeat(10000000)";
    let (text, _) = run(arena, SETTINGS, code).await?;
    if text.len() > MOST {
        return Err(Escape::new(format!("the model was sent {} bytes", text.len())));
    }
    Ok(Verdict::told(text.split("[belljar: ").nth(1).unwrap_or_default().to_owned()))
}

async fn hogs(arena: &Arena) -> Stopped {
    let code = "let big = []; for (;;) big.push(new Array(1e6).fill(1))";
    let (text, is_error) = run(arena, SETTINGS, code).await?;
    if !is_error {
        return Err(Escape::new(format!("it ended well: {text}")));
    }
    Ok(Verdict::told(text))
}

async fn floods_calls(arena: &Arena) -> Stopped {
    let code = "const many = parallel(new Array(100000).fill(tools.file_read.of({path: 'a.txt'})), {settle: true});\n\
        [...new Set(many.map(x => x.kind ?? 'done'))].join()";
    returned(arena, SETTINGS, code).await
}

async fn over_a_fork(arena: &Arena) -> Stopped {
    let keep = "globalThis.kept = tools.file_read({path: 'a.txt'});\n\
        tools.spawn_agent({mode: 'fork', task: 'look'}); 'kept'";
    let first = turns(&[("run_javascript", json!({ "code": keep }))]);
    let look = turns(&[("run_javascript", json!({ "code": "typeof globalThis.kept" }))]);
    let more = format!("  - agent: it\n    spawn: 1\n    turns:\n{look}      - say: done\n");
    let settings = "[grants.it]\ntools = [\"run_javascript\", \"file_read\", \"spawn_agent\"]\n";
    let scene = scene(arena, settings, &first, &more)?;
    let outcome = finished(&scene).await?;
    let Some(fork) = outcome.children.first() else {
        return Err(Escape::new(format!("there is no fork: {:?}", super::answers(&scene, "it")?)));
    };
    if fork.outcome.status != RunStatus::Completed {
        return Err(Escape::new(format!("the fork: {:?}", fork.outcome.error)));
    }
    let sent = scene.sent_by("it", 1);
    if sent.iter().any(|request| format!("{request:?}").contains("text of a")) {
        return Err(Escape::new("the fork was sent what a script had read"));
    }
    let last = sent.last().ok_or_else(|| Escape::new("the fork asked nothing"))?;
    let (text, _) = super::results(last).pop().ok_or_else(|| Escape::new("it did not look"))?;
    Ok(Verdict::told(text))
}

/// The steps of a run, as a store would keep them.
struct Steps(Mutex<Vec<StepEntry>>);

#[async_trait]
impl Journal for Steps {
    async fn subagent_ended(
        &self,
        _: &RunId,
        _: &ChildSummary,
        _: Option<StepEntry>,
    ) -> std::io::Result<()> {
        Ok(())
    }

    async fn step(&self, _: &RunId, entry: StepEntry) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Ok(())
    }

    fn persists_steps(&self) -> bool {
        true
    }
}

async fn another_way(arena: &Arena) -> Stopped {
    let set = "globalThis.ready = true";
    let act = "if (globalThis.ready) { tools.file_read({path: 'a.txt'}) }\n'nothing to do'";
    let calls =
        [("run_javascript", json!({ "code": set })), ("run_javascript", json!({ "code": act }))];
    let mut scene = scene(arena, SETTINGS, &turns(&calls), "")?;
    let steps = Arc::new(Steps(Mutex::default()));
    scene.host.journal = Arc::clone(&steps) as Arc<dyn Journal>;
    let run = RunId::from("20261120T100000000Z-00000000".to_owned());
    scene.run_spec(RunSpec { run: Some(run.clone()), ..scene.spec("it", "task")? }).await;
    // All of it up to the result of the call that the second script made.
    let mut kept = steps.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_inner =
        |entry: &StepEntry| entry.agent.contains('@') && matches!(entry.kind, StepKind::Result(_));
    let died = kept.iter().position(is_inner);
    kept.truncate(died.map_or(0, |at| at + 1));
    let before = scene.sent().len();
    let replay = Some(Arc::new(Replay::of(kept)));
    let outcome =
        scene.run_spec(RunSpec { run: Some(run), replay, ..scene.spec("it", "task")? }).await;
    if !outcome.receipts.iter().any(|call| call.parent.is_some()) {
        return Err(Escape::new("what it did before has no receipt any more"));
    }
    let sent = scene.sent();
    let resumed = sent.get(before).ok_or_else(|| Escape::new("the run was not resumed"))?;
    super::all_refused(super::results(resumed), 1)
}
