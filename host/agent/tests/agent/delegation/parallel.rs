//! Tests of several children of one call.

use belljar_agent::{EventKind, RunStatus};

use super::{ALL, world_with};
use belljar_kit::world::results;

const FIVE: &str = r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - name: delegate_parallel
            arguments:
              tasks:
                - {agent: scout, task: one}
                - {agent: nobody, task: two}
                - {agent: scout, task: three, context: it is the third}
                - {agent: scout, task: four}
                - {agent: scout, task: five}
      - say: done
  - agent: scout
    turns: [{expect: {last_user_contains: one}, say: first}]
  - agent: scout
    spawn: 1
    turns: [{expect: {last_user_contains: "Context:\nit is the third"}, say: third}]
  - agent: scout
    spawn: 2
    turns: [{fail: {status: 500, message: no}}]
  - agent: scout
    spawn: 3
    turns: [{say: fifth}]
"#;

#[tokio::test]
async fn results_keep_the_order_asked_and_one_that_fails_does_not_stop_the_others() {
    let world = world_with(FIVE, ALL);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let (text, is_error) = results(&world.sent_by("boss", 0)[1])[0].clone();
    assert!(!is_error && text.starts_with("3 of 5 subagents"), "{text}");
    let found: Vec<&str> = text.split("status=\"").skip(1).collect();
    let words = ["completed", "refused", "completed", "failed", "completed"];
    for (part, word) in found.iter().zip(words) {
        assert!(part.starts_with(word), "{word}: {part}");
    }
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    assert!(place("first") < place("no such agent") && place("third") < place("fifth"));
    let tasks: Vec<&str> = outcome.children.iter().map(|child| child.task.as_str()).collect();
    assert_eq!(tasks, ["one", "three", "four", "five"]);
}

#[tokio::test]
async fn a_batch_has_its_title_and_ends_with_a_summary() {
    let titled = FIVE.replace(
        "              tasks:\n",
        "              title: \" The \\u001bfive \"\n              tasks:\n",
    );
    let world = world_with(&titled, ALL);
    world.go("boss").await;
    let kinds = world.kinds();
    let starts = kinds.iter().filter_map(|kind| match kind {
        EventKind::SubagentBatchStart { title, .. } => Some(title.as_deref()),
        _ => None,
    });
    assert_eq!(starts.collect::<Vec<_>>(), [Some("The \u{1b}five")], "whoever shows it escapes it");
    let ends = kinds.iter().enumerate().filter_map(|(at, kind)| match kind {
        EventKind::SubagentBatchEnd { summary, counts, .. } => Some((at, summary.clone(), *counts)),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    let (at, summary, counts) = &ends[0];
    assert_eq!((ends.len(), counts.completed, counts.failed), (1, 3, 1));
    assert!(summary.starts_with("3 completed, 1 failed; steps: "), "{summary}");
    let last = kinds.iter().rposition(|kind| matches!(kind, EventKind::SubagentDone { .. }));
    assert!(last.unwrap() < *at, "behind the last that ended");
    let (text, _) = results(&world.sent_by("boss", 0)[1])[0].clone();
    assert!(text.ends_with(&format!("\nsummary: {summary}")), "{text}");
}

#[tokio::test]
async fn a_batch_without_a_title_or_with_a_blank_one_has_none() {
    for title in ["", "              title: \"  \"\n"] {
        let transcript =
            FIVE.replace("              tasks:\n", &format!("{title}              tasks:\n"));
        let world = world_with(&transcript, ALL);
        world.go("boss").await;
        let titled =
            |kind: &EventKind| matches!(kind, EventKind::SubagentBatchStart { title: Some(_), .. });
        assert!(!world.kinds().iter().any(titled));
    }
}

#[tokio::test]
async fn the_person_hears_once_of_each_task_that_is_refused_escaped() {
    let five = FIVE.replace("agent: nobody", "agent: \"no\\eone\"");
    let world = world_with(&five, ALL);
    world.go("boss").await;
    let warnings: Vec<String> = world
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::Warning { message } => Some(message),
            _ => None,
        })
        .collect();
    let name = "no\\u{1b}one";
    let why = format!("agent `{name}` is unknown, internal or blocked");
    assert_eq!(warnings, [format!("subagent `{name}` was not started: {why}")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_run_at_a_time_than_the_operator_says() {
    let world = world_with(FIVE, &format!("{ALL}subagents = {{ max_concurrent = 2 }}\n"));
    world.go("boss").await;
    let counts: Vec<_> = world
        .kinds()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::SubagentUpdate { counts, .. } | EventKind::SubagentDone { counts, .. } => {
                Some(counts)
            }
            _ => None,
        })
        .collect();
    assert_eq!(counts.len(), 8);
    for at in &counts {
        assert!(at.running <= 2, "{at:?}");
        let ended = at.completed + at.partial + at.failed + at.cancelled;
        assert_eq!(at.queued + at.running + ended, at.total, "{at:?}");
    }
}

#[tokio::test]
async fn tasks_of_which_none_can_start_are_refused_as_one() {
    let world = world_with(
        r#"
transcript: 1
agents:
  - agent: boss
    turns:
      - calls:
          - name: delegate_parallel
            arguments: {tasks: [{agent: nobody, task: x}, {agent: hidden, task: y}]}
      - say: alone then
"#,
        ALL,
    );
    let outcome = world.go("boss").await;
    let (text, is_error) = results(&world.sent_by("boss", 0)[1])[0].clone();
    assert!(is_error && text.starts_with("no such agent"), "{text}");
    assert!(outcome.children.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_children_all_come_back() {
    let tasks: Vec<String> = (0..1000).map(|n| format!("{{agent: scout, task: t{n}}}")).collect();
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: boss\n    turns:\n      - calls:\n          - name: \
         delegate_parallel\n            arguments: {{tasks: [{}]}}\n      - say: done\n  - agent: \
         scout\n    spawn: any\n    turns: [{{say: seen, usage: {{input: 1, output: 1}}}}]\n",
        tasks.join(", ")
    );
    let settings =
        format!("{ALL}limits = {{ steps = 5000 }}\nsubagents = {{ max_concurrent = 8 }}\n");
    let world = world_with(&transcript, &settings);
    let outcome = world.go("boss").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    assert_eq!(outcome.children.len(), 1000);
    let indices: Vec<u32> = outcome.children.iter().map(|child| child.spawn_index).collect();
    assert!(indices.iter().copied().eq(0..1000), "in the order asked");
    assert!(outcome.children.iter().all(|child| child.outcome.output == "seen"));
}
