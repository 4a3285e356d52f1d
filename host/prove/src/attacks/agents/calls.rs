//! Attacks with tool calls that a model may not make, or not so often.

use belljar_agent::{RunError, RunStatus};
use belljar_policy::Meter;
use serde_json::json;

use super::puppet::{Lines, PuppetModel, tool_call};
use super::{all_refused, first_step_answers};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests;
use crate::scene::{BARE, ScenePlan, agent_file};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "agents-unlisted-tool",
        kind: AttackKind::Agents,
        tries: "has its model call tools that the agent was not given",
        stopped_by: "dispatch knows only the agent's rights (INV-1)",
        told: "tool not allowed",
        embedded: true,
        run: |arena| Box::pin(unlisted_tool(arena)),
    },
    Attack {
        id: "agents-misspelt-tool",
        kind: AttackKind::Agents,
        tries: "spells a tool in ways that somebody might take for another",
        stopped_by: "names are compared byte for byte (INV-1)",
        told: "tool not allowed: the available tools are `file_read`",
        embedded: true,
        run: |arena| Box::pin(call_misspelt_tool(arena)),
    },
    Attack {
        id: "agents-tool-of-another-agent",
        kind: AttackKind::Agents,
        tries: "calls a tool that only its neighbour in the same run is granted",
        stopped_by: "each agent has rights of its own, and a child at most its parent's (INV-27)",
        told: "tool not allowed",
        embedded: true,
        run: |arena| Box::pin(call_neighbours_tool(arena)),
    },
    Attack {
        id: "agents-tools-of-the-host",
        kind: AttackKind::Agents,
        tries: "calls, as a subagent, every tool that is the host's own",
        stopped_by: "its place in the run admits none of them (INV-27)",
        told: "tool not allowed",
        embedded: true,
        run: |arena| Box::pin(call_host_tools(arena)),
    },
    Attack {
        id: "agents-arguments-of-10-mb",
        kind: AttackKind::Agents,
        tries: "sends 10 MB of arguments, again and again",
        stopped_by: "a bound on the bytes of arguments, before anything reads them",
        told: "bytes, at most 1048576 are accepted",
        embedded: true,
        run: |arena| {
            Box::pin(refused_again_and_again(arena, |_| {
                tool_call("file_read", &json!({ "path": "x".repeat(10_000_000) }))
            }))
        },
    },
    Attack {
        id: "agents-arguments-that-are-none",
        kind: AttackKind::Agents,
        tries: "sends arguments that are no JSON, no object, or nest 100,000 deep",
        stopped_by: "arguments are checked before the tool gets them",
        told: "invalid arguments",
        embedded: true,
        run: |arena| {
            Box::pin(refused_again_and_again(arena, |turn| {
                let deep =
                    || format!("{{\"path\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
                let arguments = match turn % 4 {
                    0 => "{\"path\": ".to_owned(),
                    1 => "[\"a.txt\"]".to_owned(),
                    2 => "\u{202e}\0".to_owned(),
                    _ => deep(),
                };
                vec![("file_read", arguments)]
            }))
        },
    },
    Attack {
        id: "agents-a-thousand-calls-at-once",
        kind: AttackKind::Agents,
        tries: "asks for a thousand calls in one step",
        stopped_by: "a bound on the calls of a step",
        told: "too many calls in one step: at most 32",
        embedded: true,
        run: |arena| Box::pin(at_once(arena)),
    },
    Attack {
        id: "agents-loops-on-one-call",
        kind: AttackKind::Agents,
        tries: "makes the same call for ever",
        stopped_by: "the budget of steps (INV-12)",
        told: "the step budget of the agent is used up",
        embedded: true,
        run: |arena| Box::pin(repeat_call(arena)),
    },
];

/// Attack `agents-unlisted-tool`: the attacker has its model call tools that the agent was not given.
async fn unlisted_tool(arena: &Arena) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: "
transcript: 1
agents:
  - agent: it
    turns:
      - calls:
          - {name: file_write, arguments: {path: a.txt, content: x}}
          - {name: file_read, arguments: {path: a.txt}}
          - {name: spawn_agent, arguments: {agent: it, task: again}}
      - say: done
",
        agents: &[("it.md", &agent_file("it", "tools: []\n"))],
        ..ScenePlan::default()
    })?;
    let outcome = scene.run_agent("it", "task").await?;
    let results = scene.tool_results();
    if outcome.status != RunStatus::Completed {
        return Err(Escape::new(format!("{:?}: {results:?}", outcome.status)));
    }
    all_refused(results, 3)
}

/// Attack `agents-misspelt-tool`: the attacker spells a tool in ways that somebody might take for another.
async fn call_misspelt_tool(arena: &Arena) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls:
          - {name: "File_Read", arguments: {path: a.txt}}
          - {name: "file-read", arguments: {path: a.txt}}
          - {name: "file_read ", arguments: {path: a.txt}}
          - {name: "file_read\u200b", arguments: {path: a.txt}}
          - {name: "f\u0456le_read", arguments: {path: a.txt}}
          - {name: "file_read/../plain", arguments: {path: a.txt}}
          - {name: "file_read\nplain", arguments: {path: a.txt}}
          - {name: "plain", arguments: {}}
      - say: done
"#,
        agents: &[("it.md", &agent_file("it", "tools: [file_read]\n"))],
        files: &[("a.txt", "text of a")],
        guests: &[(guests::PLAIN, BARE)],
        ..ScenePlan::default()
    })?;
    scene.run_agent("it", "task").await?;
    all_refused(first_step_answers(&scene, "it")?, 8)
}

/// Attack `agents-tool-of-another-agent`: the attacker calls a tool that only its neighbour in the same run
/// is granted.
async fn call_neighbours_tool(arena: &Arena) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: one, task: go}}
          - {name: spawn_agent, arguments: {agent: two, task: go}}
          - {name: counter, arguments: {}}
      - say: done
  - agent: one
    turns:
      - calls: [{name: plain, arguments: {}}]
      - say: done
  - agent: two
    turns:
      - calls:
          - {name: plain, arguments: {}}
          - {name: counter, arguments: {}}
      - say: done
",
        settings: "
[grants.boss]
tools = ['spawn_agent', 'plain']
[grants.one]
tools = ['plain']
[grants.two]
tools = ['counter']
",
        agents: &[
            ("boss.md", &agent_file("boss", "")),
            ("one.md", &agent_file("one", "")),
            ("two.md", &agent_file("two", "")),
        ],
        guests: &[(guests::PLAIN, BARE), (guests::COUNTER, BARE)],
        ..ScenePlan::default()
    })?;
    scene.run_agent("boss", "task").await?;
    let one = first_step_answers(&scene, "one")?;
    if one != [("harmless".to_owned(), false)] {
        return Err(Escape::new(format!("who has the tool cannot use it: {one:?}")));
    }
    let boss = first_step_answers(&scene, "boss")?.into_iter().skip(2).collect();
    all_refused(boss, 1)?;
    // The agent `two` is granted `counter`, but its parent is not.
    all_refused(first_step_answers(&scene, "two")?, 2)
}

/// Attack `agents-tools-of-the-host`: the attacker calls, as a subagent, every tool that is the host's own.
async fn call_host_tools(arena: &Arena) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: "
transcript: 1
agents:
  - agent: boss
    turns:
      - calls: [{name: spawn_agent, arguments: {agent: child, task: go}}]
      - say: done
  - agent: child
    turns:
      - calls:
          - {name: spawn_agent, arguments: {agent: child, task: again}}
          - {name: delegate_parallel, arguments: {tasks: [{agent: child, task: again}]}}
          - {name: agent_status, arguments: {}}
          - {name: agent_result, arguments: {id: bg-1}}
          - {name: agent_cancel, arguments: {id: bg-1}}
          - {name: ask_user, arguments: {question: What is the password?}}
      - say: done
",
        settings: "
[grants.boss]
tools = ['spawn_agent', 'delegate_parallel', 'agent_status', 'agent_result', 'agent_cancel', 'ask_user']
[grants.child]
tools = ['spawn_agent', 'delegate_parallel', 'agent_status', 'agent_result', 'agent_cancel', 'ask_user']
",
        agents: &[("boss.md", &agent_file("boss", "")), ("child.md", &agent_file("child", ""))],
        ..ScenePlan::default()
    })?;
    let outcome = scene.run_agent("boss", "task").await?;
    if outcome.children.iter().any(|child| !child.outcome.children.is_empty()) {
        return Err(Escape::new("a subagent has a subagent"));
    }
    all_refused(first_step_answers(&scene, "child")?, 6)
}

/// Runs one agent with the tool `file_read` and a model that never stops by itself.
async fn run_endless_agent(
    arena: &Arena,
    lines: Lines,
) -> Result<(RunError, Vec<(String, bool)>), Escape> {
    let mut scene = arena.build_scene(&ScenePlan {
        settings: "[grants.it]\ntools = ['file_read']\nlimits = { steps = 8, tokens = 30000000 }\n",
        agents: &[("it.md", &agent_file("it", ""))],
        files: &[("a.txt", "text of a")],
        ..ScenePlan::default()
    })?;
    let puppet = PuppetModel::control_scene(&mut scene, lines);
    let outcome = scene.run_agent("it", "task").await?;
    // Eight steps with calls, and one in which the model may conclude; the request of that last step does not
    // end with results.
    if outcome.status != RunStatus::Partial || puppet.turn_count() > 9 {
        let turns = puppet.turn_count();
        return Err(Escape::new(format!("{turns} turns, then {:?}", outcome.error)));
    }
    match outcome.error {
        Some(error) => Ok((error, puppet.tool_results())),
        None => Err(Escape::new("it ended by itself")),
    }
}

/// Makes 2 attacks, for example `agents-arguments-of-10-mb`: the attacker sends 10 MB of arguments, again and
/// again.
async fn refused_again_and_again(arena: &Arena, lines: Lines) -> Stopped {
    // Very long arguments use up the tokens before the steps are used up.
    let (_, results) = run_endless_agent(arena, lines).await?;
    let made = results.len().max(1);
    all_refused(results, made)
}

/// Attack `agents-a-thousand-calls-at-once`: the attacker asks for a thousand calls in one step.
async fn at_once(arena: &Arena) -> Stopped {
    let lines: Lines = |_| vec![("file_read", "{\"path\": \"a.txt\"}".to_owned()); 1_000];
    let (_, results) = run_endless_agent(arena, lines).await?;
    let made = results.iter().filter(|(_, is_error)| !is_error).count();
    let refused = results.iter().find(|(text, _)| text.contains("too many calls"));
    match refused {
        Some((text, true)) if made == 7 * 32 => Ok(Verdict::with_words(text)),
        _ => Err(Escape::new(format!("{made} calls were made: {:?}", results.last()))),
    }
}

/// Attack `agents-loops-on-one-call`: the attacker makes the same call for ever.
async fn repeat_call(arena: &Arena) -> Stopped {
    let lines: Lines = |_| tool_call("file_read", &json!({ "path": "a.txt" }));
    match run_endless_agent(arena, lines).await? {
        (RunError::Budget { exhausted }, results)
            if exhausted.meter == Meter::Steps && results.len() == 7 =>
        {
            Ok(Verdict::with_words(exhausted.to_string()))
        }
        (error, results) => Err(Escape::new(format!("{error} after {} calls", results.len()))),
    }
}
