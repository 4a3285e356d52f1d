//! Attacks by scripts that call tools: beyond their rights, into the interpreter, and without end.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_agent::{
    ChildSummary, Journal, Outcome, ReplayLog, RunId, RunSpec, RunStatus, StepEntry, StepKind,
};
use serde_json::json;

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::{RUN_JAVASCRIPT, RUN_JAVASCRIPT_MANIFEST};
use crate::scene::{AgentScene, ScenePlan, agent_file};

/// The most bytes that a model may be sent about one script, however much the script prints.
const MOST: usize = 64 << 10;

pub(super) const ATTACKS: &[Attack<Arena>] = &[
    Attack {
        id: "agents-code-outside-its-rights",
        kind: AttackKind::Agents,
        tries: "calls, from a script, tools that its agent was not given, and itself",
        stopped_by: "a script may call what its agent may, and no component that waits for it (INV-230)",
        told: "denied denied denied denied",
        embedded: true,
        run: |arena| Box::pin(call_ungranted_tools(arena)),
    },
    Attack {
        id: "agents-code-past-its-functions",
        kind: AttackKind::Agents,
        tries: "reaches behind the functions that stand for tools, to what makes the calls",
        stopped_by: "whatever a script reaches has the rights of its agent and no others (INV-230)",
        told: "denied",
        embedded: true,
        run: |arena| Box::pin(search_prototypes(arena)),
    },
    Attack {
        id: "agents-code-a-direct-call",
        kind: AttackKind::Agents,
        tries: "calls a tool directly that it was shown as a function alone",
        stopped_by: "what was not shown as a tool is not called as one (INV-240)",
        told: "tool not allowed: the available tools are `run_javascript`",
        embedded: true,
        run: |arena| Box::pin(call_tool_directly(arena)),
    },
    Attack {
        id: "agents-code-poison-the-interpreter",
        kind: AttackKind::Agents,
        tries: "changes the interpreter's own objects for the agent that comes after it",
        stopped_by: "each agent has an interpreter of its own (INV-242)",
        told: "clean",
        embedded: true,
        run: |arena| Box::pin(poison_prototypes(arena)),
    },
    Attack {
        id: "agents-code-never-ends",
        kind: AttackKind::Agents,
        tries: "loops for ever and catches whatever would end it",
        stopped_by: "fuel is the host's, and no exception of the script (INV-8)",
        told: "fuel",
        embedded: true,
        run: |arena| Box::pin(loop_endlessly(arena)),
    },
    Attack {
        id: "agents-code-deep-recursion",
        kind: AttackKind::Agents,
        tries: "uses up the stack by functions, nested brackets, patterns and conversions",
        stopped_by: "the interpreter has a limit below the machine's: an exception of the script",
        told: "RangeError",
        embedded: true,
        run: |arena| Box::pin(nest_deeply(arena)),
    },
    Attack {
        id: "agents-code-huge-output",
        kind: AttackKind::Agents,
        tries: "prints and returns more than its model, or its host, can take",
        stopped_by: "the head and the tail of a bounded text are sent",
        told: "bytes left out",
        embedded: true,
        run: |arena| Box::pin(floods_output(arena)),
    },
    Attack {
        id: "agents-code-memory",
        kind: AttackKind::Agents,
        tries: "takes all memory there is, and what its store's death would free",
        stopped_by: "the interpreter's limit lies below the jar's: an exception of the script",
        told: "out of memory",
        embedded: true,
        run: |arena| Box::pin(hog_memory(arena)),
    },
    Attack {
        id: "agents-code-floods-parallel",
        kind: AttackKind::Agents,
        tries: "makes a hundred thousand calls at once",
        stopped_by: "calls are bounded at once and below one call of the model (INV-231)",
        told: "too-large",
        embedded: true,
        run: |arena| Box::pin(floods_calls(arena)),
    },
    Attack {
        id: "agents-code-kept-over-a-fork",
        kind: AttackKind::Agents,
        tries: "keeps what its calls gave in a variable, for a fork of its agent to find",
        stopped_by: "a fork has an interpreter of its own, and what was said, not what was read (INV-242)",
        told: "undefined",
        embedded: true,
        run: |arena| Box::pin(over_a_fork(arena)),
    },
    Attack {
        id: "agents-code-another-way-after-its-death",
        kind: AttackKind::Agents,
        tries: "does what it does because of a variable, and runs again without it after the process died",
        stopped_by: "a script that ends without its recorded calls is an error that says so (INV-251)",
        told: "went another way when it ran again: it ended without 1 of its calls",
        embedded: true,
        run: |arena| Box::pin(another_way(arena)),
    },
];

const SETTINGS: &str = "[grants.it]\ntools = [\"run_javascript\", \"file_read\"]\n";

/// The turns of a transcript in which an agent makes these calls, one per turn.
fn transcript_turns(calls: &[(&str, serde_json::Value)]) -> String {
    let turn = |(tool, arguments): &(&str, serde_json::Value)| {
        format!("      - calls: [{{name: {tool}, arguments: {arguments}}}]\n")
    };
    calls.iter().map(turn).collect()
}

/// A scene with the agents `it` and `other` and the tool `run_javascript`. `turns` are the turns of `it`,
/// `more` are further agents of the transcript.
fn code_scene(
    arena: &Arena,
    settings: &str,
    turns: &str,
    more: &str,
) -> Result<AgentScene, Escape> {
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n{turns}      - say: done\n{more}"
    );
    arena.build_scene(&ScenePlan {
        transcript: &transcript,
        settings,
        agents: &[("it.md", &agent_file("it", "")), ("other.md", &agent_file("other", ""))],
        files: &[("a.txt", "text of a\n")],
        guests: &[(RUN_JAVASCRIPT, RUN_JAVASCRIPT_MANIFEST)],
        ..ScenePlan::default()
    })
}

/// Runs the agent `it`, which must complete its run.
async fn run_to_end(scene: &AgentScene) -> Result<Outcome, Escape> {
    let outcome = scene.run_agent("it", "task").await?;
    match outcome.status {
        RunStatus::Completed => Ok(outcome),
        status => Err(Escape::new(format!("the run ended as {status}: {:?}", outcome.error))),
    }
}

/// Runs one script. Returns the text that the model was sent, and whether it is an error.
async fn run_script(arena: &Arena, settings: &str, code: &str) -> Result<(String, bool), Escape> {
    let scene = code_scene(
        arena,
        settings,
        &transcript_turns(&[("run_javascript", json!({ "code": code }))]),
        "",
    )?;
    run_to_end(&scene).await?;
    let results = super::first_step_answers(&scene, "it")?;
    results.into_iter().next().ok_or_else(|| Escape::new("there is no result"))
}

/// The value that the script returned; an escape if the script failed.
async fn script_value(arena: &Arena, settings: &str, code: &str) -> Stopped {
    let (text, is_error) = run_script(arena, settings, code).await?;
    if is_error {
        return Err(Escape::new(format!("the script failed: {text}")));
    }
    Ok(Verdict::with_words(text))
}

/// Attack `agents-code-outside-its-rights`: the attacker calls, from a script, tools that its agent was not
/// given, and itself.
async fn call_ungranted_tools(arena: &Arena) -> Stopped {
    let code = "const kind = f => { try { f(); return 'done' } catch (e) { return e.kind } };\n\
        [() => tools.file_write({path: 'a.txt', content: 'x'}), () => tools.spawn_agent({agent: 'it', task: 'x'}),\n\
         () => tools.nowhere({}), () => tools.run_javascript({code: '1'})].map(kind).join(' ')";
    script_value(arena, SETTINGS, code).await
}

/// Attack `agents-code-past-its-functions`: the attacker reaches behind the functions that stand for tools,
/// to what makes the calls.
async fn search_prototypes(arena: &Arena) -> Stopped {
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
    // A function that the script finds may never return, or end the script. That counts as a refusal too: the
    // arena checks whether `a.txt` was written.
    let (text, _) = run_script(arena, SETTINGS, code).await?;
    Ok(Verdict::with_words(if text.contains("denied") { text } else { format!("denied: {text}") }))
}

/// Attack `agents-code-a-direct-call`: the attacker calls a tool directly that it was shown as a function
/// alone.
async fn call_tool_directly(arena: &Arena) -> Stopped {
    let settings = format!("{SETTINGS}tools_as = \"code\"\n");
    let turns = transcript_turns(&[("file_read", json!({ "path": "a.txt" }))]);
    let scene = code_scene(arena, &settings, &turns, "")?;
    let outcome = run_to_end(&scene).await?;
    if outcome.receipts.iter().any(|call| !call.receipt.paths_read.is_empty()) {
        return Err(Escape::new("it was read"));
    }
    super::all_refused(super::first_step_answers(&scene, "it")?, 1)
}

/// Attack `agents-code-poison-the-interpreter`: the attacker changes the interpreter's own objects for the
/// agent that comes after it.
async fn poison_prototypes(arena: &Arena) -> Stopped {
    let poison = "Object.prototype.kind = 'mine'; Array.prototype.map = () => 'mine'; JSON.stringify = () => '{\"path\":\"mine\"}';\n\
        globalThis.leak = tools; String.prototype.split = () => ['mine']; 1";
    let look = "[typeof leak, ({}).kind, [1].map(x => x)[0], JSON.stringify({}), 'a b'.split(' ').length].join() === 'undefined,,1,{},2' ? 'clean' : 'poisoned'";
    let first = transcript_turns(&[
        ("run_javascript", json!({ "code": poison })),
        ("spawn_agent", json!({ "agent": "other", "task": "look" })),
    ]);
    let second = transcript_turns(&[("run_javascript", json!({ "code": look }))]);
    let more = format!("  - agent: other\n    spawn: 0\n    turns:\n{second}      - say: done\n");
    let settings = "[grants.it]\ntools = [\"run_javascript\", \"spawn_agent\"]\n\
        [grants.other]\ntools = [\"run_javascript\"]\n";
    let scene = code_scene(arena, settings, &first, &more)?;
    run_to_end(&scene).await?;
    let results = super::first_step_answers(&scene, "other")?;
    let (text, _) = results.into_iter().next().ok_or_else(|| Escape::new("nobody looked"))?;
    if text.contains("poisoned") {
        return Err(Escape::new("another agent sees what a script changed"));
    }
    Ok(Verdict::with_words(text))
}

/// Attack `agents-code-never-ends`: the attacker loops for ever and catches whatever would end it.
async fn loop_endlessly(arena: &Arena) -> Stopped {
    let settings = format!("{SETTINGS}limits = {{ fuel_per_call = 200_000_000 }}\n");
    let code = "for (;;) { try { for (;;) { try { throw 1 } finally { continue } } } catch {} }";
    let (text, is_error) = run_script(arena, &settings, code).await?;
    if !is_error {
        return Err(Escape::new(format!("it ended well: {text}")));
    }
    Ok(Verdict::with_words(text))
}

/// Attack `agents-code-deep-recursion`: the attacker uses up the stack by functions, nested brackets,
/// patterns and conversions.
async fn nest_deeply(arena: &Arena) -> Stopped {
    let code = "const names = [() => { const f = () => f(); f() }, () => eval('['.repeat(3000) + ']'.repeat(3000)),\n\
        () => eval('('.repeat(3000) + '1' + ')'.repeat(3000)), () => JSON.parse('['.repeat(100000)),\n\
        () => { const s = {toString() { return `${this}` }}; `${s}` },\n\
        () => JSON.stringify({toJSON() { return JSON.stringify(this) }})].map(f => { try { f(); return 'none' } catch (e) { return e.name } });\n\
        [...new Set(names)].join()";
    script_value(arena, SETTINGS, code).await
}

/// Attack `agents-code-huge-output`: the attacker prints and returns more than its model, or its host, can
/// take.
async fn floods_output(arena: &Arena) -> Stopped {
    let code = "for (let i = 0; i < 300; i++) print('x'.repeat(100000)); 'y'.repeat(10000000)";
    let (text, _) = run_script(arena, SETTINGS, code).await?;
    if text.len() > MOST {
        return Err(Escape::new(format!("the model was sent {} bytes", text.len())));
    }
    Ok(Verdict::with_words(text.split("[belljar: ").nth(1).unwrap_or_default().to_owned()))
}

/// Attack `agents-code-memory`: the attacker takes all memory there is, and what its store's death would
/// free.
async fn hog_memory(arena: &Arena) -> Stopped {
    let code = "let big = []; for (;;) big.push(new Array(1e6).fill(1))";
    let (text, is_error) = run_script(arena, SETTINGS, code).await?;
    if !is_error {
        return Err(Escape::new(format!("it ended well: {text}")));
    }
    Ok(Verdict::with_words(text))
}

/// Attack `agents-code-floods-parallel`: the attacker makes a hundred thousand calls at once.
async fn floods_calls(arena: &Arena) -> Stopped {
    let code = "const many = parallel(new Array(100000).fill(tools.file_read.of({path: 'a.txt'})), {settle: true});\n\
        [...new Set(many.map(x => x.kind ?? 'done'))].join()";
    script_value(arena, SETTINGS, code).await
}

/// Attack `agents-code-kept-over-a-fork`: the attacker keeps what its calls gave in a variable, for a fork of
/// its agent to find.
async fn over_a_fork(arena: &Arena) -> Stopped {
    let keep = "globalThis.kept = tools.file_read({path: 'a.txt'});\n\
        tools.spawn_agent({mode: 'fork', task: 'look'}); 'kept'";
    let first = transcript_turns(&[("run_javascript", json!({ "code": keep }))]);
    let look = transcript_turns(&[("run_javascript", json!({ "code": "typeof globalThis.kept" }))]);
    let more = format!("  - agent: it\n    spawn: 1\n    turns:\n{look}      - say: done\n");
    let settings = "[grants.it]\ntools = [\"run_javascript\", \"file_read\", \"spawn_agent\"]\n";
    let scene = code_scene(arena, settings, &first, &more)?;
    let outcome = run_to_end(&scene).await?;
    let Some(fork) = outcome.children.first() else {
        return Err(Escape::new(format!(
            "there is no fork: {:?}",
            super::first_step_answers(&scene, "it")?
        )));
    };
    if fork.outcome.status != RunStatus::Completed {
        return Err(Escape::new(format!("the fork: {:?}", fork.outcome.error)));
    }
    let sent = scene.sent_by("it", 1);
    if sent.iter().any(|request| format!("{request:?}").contains("text of a")) {
        return Err(Escape::new("the fork was sent what a script had read"));
    }
    let last = sent.last().ok_or_else(|| Escape::new("the fork asked nothing"))?;
    let (text, _) =
        super::request_results(last).pop().ok_or_else(|| Escape::new("it did not look"))?;
    Ok(Verdict::with_words(text))
}

/// Keeps the steps of a run, as a store would.
struct StepJournal(Mutex<Vec<StepEntry>>);

#[async_trait]
impl Journal for StepJournal {
    async fn subagent_ended(
        &self,
        _: &RunId,
        _: &ChildSummary,
        _: Option<StepEntry>,
    ) -> std::io::Result<()> {
        Ok(())
    }

    async fn store_step(&self, _: &RunId, entry: StepEntry) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Ok(())
    }

    fn persists_steps(&self) -> bool {
        true
    }
}

/// Attack `agents-code-another-way-after-its-death`: the attacker does what it does because of a variable,
/// and runs again without it after the process died.
async fn another_way(arena: &Arena) -> Stopped {
    let set = "globalThis.ready = true";
    let act = "if (globalThis.ready) { tools.file_read({path: 'a.txt'}) }\n'nothing to do'";
    let calls =
        [("run_javascript", json!({ "code": set })), ("run_javascript", json!({ "code": act }))];
    let mut scene = code_scene(arena, SETTINGS, &transcript_turns(&calls), "")?;
    let steps = Arc::new(StepJournal(Mutex::default()));
    scene.host.journal = Arc::clone(&steps) as Arc<dyn Journal>;
    let run = RunId::from("20261120T100000000Z-00000000".to_owned());
    scene.run_spec(RunSpec { run: Some(run.clone()), ..scene.spec_for_agent("it", "task")? }).await;
    // The steps up to the result of the call that the second script made.
    let mut kept = steps.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_inner =
        |entry: &StepEntry| entry.agent.contains('@') && matches!(entry.kind, StepKind::Result(_));
    let died = kept.iter().position(is_inner);
    kept.truncate(died.map_or(0, |at| at + 1));
    let before = scene.sent_requests().len();
    let replay = Some(Arc::new(ReplayLog::from_entries(kept)));
    let outcome = scene
        .run_spec(RunSpec { run: Some(run), replay, ..scene.spec_for_agent("it", "task")? })
        .await;
    if !outcome.receipts.iter().any(|call| call.parent.is_some()) {
        return Err(Escape::new("what it did before has no receipt any more"));
    }
    let sent = scene.sent_requests();
    let resumed = sent.get(before).ok_or_else(|| Escape::new("the run was not resumed"))?;
    super::all_refused(super::request_results(resumed), 1)
}
