//! Attacks by which one subagent tries to learn about another.

use belljar_model::ChatMessage;

use super::first_step_answers;
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests;
use crate::scene::{AgentScene, BARE, ScenePlan, agent_file};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "agents-history-of-a-sibling",
        kind: AttackKind::Agents,
        tries: "looks for what its sibling and its parent said in what it is sent itself",
        stopped_by: "each subagent has a history of its own (INV-27, INV-28)",
        told: "my own task",
        embedded: true,
        run: |arena| Box::pin(read_sibling_history(arena)),
    },
    Attack {
        id: "agents-memory-of-a-tool",
        kind: AttackKind::Agents,
        tries: "leaves a mark in a tool's memory, for its sibling to find",
        stopped_by: "each subagent has stores of its own (INV-19)",
        told: "x, xx",
        embedded: true,
        run: |arena| Box::pin(read_sibling_memory(arena)),
    },
    Attack {
        id: "agents-files-of-a-sibling",
        kind: AttackKind::Agents,
        tries: "reads, as a child with fewer rights, what only its sibling's tool may read",
        stopped_by: "mounts are granted to one agent, not to a tool (INV-24, INV-27)",
        told: "a.txt",
        embedded: true,
        run: |arena| Box::pin(read_sibling_files(arena)),
    },
    Attack {
        id: "agents-conclusion-of-a-sibling",
        kind: AttackKind::Agents,
        tries: "asks, from the background, for its sibling's conclusion",
        stopped_by: "background subagents are their parent's alone (INV-27)",
        told: "tool not allowed",
        embedded: true,
        run: |arena| Box::pin(read_sibling_result(arena)),
    },
];

/// A scene with a parent `boss`, the subagents `one` and `two`, and the guest `counter`.
fn sibling_scene(arena: &Arena, transcript: &str, settings: &str) -> Result<AgentScene, Escape> {
    arena.build_scene(&ScenePlan {
        transcript,
        settings,
        agents: &[
            ("boss.md", &agent_file("boss", "")),
            ("one.md", &agent_file("one", "")),
            ("two.md", &agent_file("two", "")),
        ],
        files: &[("a.txt", "MARK-OF-A-FILE")],
        guests: &[(guests::COUNTER, BARE)],
        ..ScenePlan::default()
    })
}

/// Attack `agents-history-of-a-sibling`: the attacker looks for what its sibling and its parent said in what
/// it is sent itself.
async fn read_sibling_history(arena: &Arena) -> Stopped {
    let scene = sibling_scene(
        arena,
        "
transcript: 1
agents:
  - agent: boss
    turns:
      - say: MARK-OF-THE-PARENT
        calls:
          - {name: spawn_agent, arguments: {agent: one, task: MARK-OF-A-TASK}}
      - calls:
          - {name: spawn_agent, arguments: {agent: two, task: my own task}}
      - say: done
  - agent: one
    turns:
      - say: MARK-OF-A-THOUGHT
        calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: MARK-OF-A-CONCLUSION
  - agent: two
    turns:
      - calls: [{name: file_read, arguments: {path: b.txt}}]
      - say: done
",
        "",
    )?;
    scene.run_agent("boss", "MARK-OF-THE-RUN").await?;
    let two = format!("{:?}", scene.sent_by("two", 0));
    if let Some((_, rest)) = two.split_once("MARK-") {
        let what: String = rest.chars().take(100).collect();
        return Err(Escape::new(format!("it knows of {what}")));
    }
    let one = format!("{:?}", scene.sent_by("one", 0));
    let boss = format!("{:?}", scene.sent_by("boss", 0));
    let hidden = ["MARK-OF-A-THOUGHT", "MARK-OF-A-FILE"];
    if hidden.iter().any(|mark| boss.contains(mark) || !one.contains(mark)) {
        return Err(Escape::new("the parent knows more than the conclusion"));
    }
    match scene.sent_by("two", 0).first().and_then(|request| request.messages.first()) {
        Some(ChatMessage::User { text, .. }) => Ok(Verdict::with_words(text)),
        other => Err(Escape::new(format!("it was asked nothing: {other:?}"))),
    }
}

/// Attack `agents-memory-of-a-tool`: the attacker leaves a mark in a tool's memory, for its sibling to find.
async fn read_sibling_memory(arena: &Arena) -> Stopped {
    let child = "
    turns:
      - calls:
          - {name: counter, arguments: {}}
          - {name: counter, arguments: {}}
      - say: done
";
    let transcript = format!(
        "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {{name: counter, arguments: {{}}}}
          - {{name: spawn_agent, arguments: {{agent: one, task: go}}}}
          - {{name: spawn_agent, arguments: {{agent: one, task: go}}}}
          - {{name: spawn_agent, arguments: {{agent: two, task: go}}}}
      - say: done
  - agent: one{child}  - agent: one
    spawn: 1{child}  - agent: two{child}"
    );
    let tools = "tools = ['counter', 'spawn_agent']\n";
    let settings = format!("[grants.boss]\n{tools}[grants.one]\n{tools}[grants.two]\n{tools}");
    let scene = sibling_scene(arena, &transcript, &settings)?;
    scene.run_agent("boss", "task").await?;
    let mut told = Vec::new();
    for (name, spawn) in [("one", 0), ("one", 1), ("two", 0)] {
        let sent = scene.sent_by(name, spawn);
        let marks = sent.get(1).map(super::request_results).unwrap_or_default();
        let marks: Vec<_> = marks.into_iter().map(|(text, _)| text).collect();
        if marks != ["x", "xx"] {
            return Err(Escape::new(format!("{name}#{spawn} finds {marks:?}")));
        }
        told = marks;
    }
    Ok(Verdict::with_words(told.join(", ")))
}

/// Attack `agents-files-of-a-sibling`: the attacker reads, as a child with fewer rights, what only its
/// sibling's tool may read.
async fn read_sibling_files(arena: &Arena) -> Stopped {
    let scene = sibling_scene(
        arena,
        "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: one, task: go}}
          - {name: spawn_agent, arguments: {agent: two, task: go}}
      - say: done
  - agent: one
    turns:
      - calls: [{name: file_read, arguments: {path: a.txt}}]
      - say: done
  - agent: two
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt}}
          - {name: file_read, arguments: {path: /workspace/a.txt}}
      - say: done
",
        "[grants.two]\nmounts = []\n",
    )?;
    scene.run_agent("boss", "task").await?;
    let one = first_step_answers(&scene, "one")?;
    if !one.iter().all(|(text, is_error)| text.contains("MARK") && !is_error) {
        return Err(Escape::new(format!("who may read it does not: {one:?}")));
    }
    super::all_refused(first_step_answers(&scene, "two")?, 2)
}

/// Attack `agents-conclusion-of-a-sibling`: the attacker asks, from the background, for its sibling's
/// conclusion.
async fn read_sibling_result(arena: &Arena) -> Stopped {
    let tools = "tools = ['spawn_agent', 'agent_result', 'agent_status']\n";
    let settings = format!("[grants.boss]\n{tools}[grants.one]\n{tools}[grants.two]\n{tools}");
    let scene = sibling_scene(
        arena,
        "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: one, task: go, background: true}}]
      - calls: [{name: agent_result, arguments: {id: bg-1}}]
      - calls: [{name: spawn_agent, arguments: {agent: two, task: go, background: true}}]
      - calls: [{name: agent_result, arguments: {id: bg-2}}]
      - say: done
  - agent: one
    turns: [{say: MARK}]
  - agent: two
    turns:
      - calls:
          - {name: agent_result, arguments: {id: bg-1}}
          - {name: agent_status, arguments: {}}
      - say: done
",
        &settings,
    )?;
    scene.run_agent("boss", "task").await?;
    super::all_refused(first_step_answers(&scene, "two")?, 2)
}
