//! Tests of the steps in a tree of agents: parallel agents never exceed a budget above them.

use belljar_agent::{Outcome, RunError, RunStatus};
use belljar_policy::{LimitsRequest, Meter};

use belljar_kit::world::{Plan, World, agent};

const GRANTS: &str = r#"
[grants.boss]
tools = ["delegate_parallel", "file_read"]
[grants.scout]
tools = ["file_read"]
limits = { steps = 3 }
"#;

/// A boss and scouts that continue as long as the budgets allow.
fn world() -> World {
    let read = "{name: file_read, arguments: {path: a.txt}}";
    let scouts = ["{agent: scout, task: x}"; 5].join(", ");
    let hands = format!("{{name: delegate_parallel, arguments: {{tasks: [{scouts}]}}}}");
    let turns = |call: &str| format!("      - {{calls: [{call}], say: so far}}\n").repeat(20);
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n{}  - agent: scout\n    spawn: any\n    turns:\n{}",
        turns(&hands),
        turns(read),
    );
    World::new(Plan {
        transcript: &transcript,
        settings: GRANTS,
        agents: &[("boss.md", &agent("boss", "")), ("scout.md", &agent("scout", ""))],
        files: &[("a.txt", "text of a\n")],
        ..Plan::default()
    })
}

fn each<'a>(outcome: &'a Outcome, all: &mut Vec<&'a Outcome>) {
    all.push(outcome);
    outcome.children.iter().for_each(|child| each(&child.outcome, all));
}

#[tokio::test]
async fn a_tree_takes_one_step_more_than_its_own_limit_and_none_more_than_those_above() {
    for limit in [1, 2, 3, 5, 8, 10, 13, 30] {
        let world = world();
        let mut spec = world.spec("boss", "t");
        spec.limits = LimitsRequest { steps: Some(limit), ..LimitsRequest::default() };
        let outcome = world.run(spec).await;
        assert_eq!(outcome.status, RunStatus::Partial, "{limit}: {:?}", outcome.error);
        let Some(RunError::Budget { exhausted }) = &outcome.error else { panic!("{outcome:?}") };
        assert_eq!((exhausted.meter, exhausted.limit), (Meter::Steps, limit));
        assert_eq!(outcome.total.steps, limit + 1, "the last turn of the boss is the one more");
        let asked = world.sent().len();
        assert_eq!(asked as u64, limit + 1, "what the model was asked");
        let mut all = Vec::new();
        each(&outcome, &mut all);
        for child in &all[1..] {
            assert!(child.usage.steps <= 4, "three of its own and its last turn");
            assert_eq!(child.status, RunStatus::Partial);
        }
    }
}
