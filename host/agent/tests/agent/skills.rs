//! Tests of skills in a run: which skills a task triggers or loads.

use std::sync::Arc;

use belljar_agent::commands::CommandCall;
use belljar_agent::{CallerInput, RunStatus};
use belljar_catalogue::{LibraryRoot, SkillLibrary};
use belljar_definition::SkillDefinition;
use belljar_kit::world::{Plan, World, agent, results, stock, tool_names, write};
use belljar_model::ChatMessage;

const TIDES: &str = "---\nname: tides\ndescription: d\ntriggers: [tide table]\n---\nIn metres.\n";

/// A transcript that loads an existing skill and a missing one.
const USING: &str = r#"
transcript: 1
agents:
  - agent: a
    turns:
      - calls:
          - {name: use_skill, arguments: {name: tides}}
          - {name: use_skill, arguments: {name: nothing}}
      - say: ok
"#;

const ANSWER: &str = "transcript: 1\nagents:\n  - agent: a\n    turns: [{say: ok}]\n";

/// A world in which agent `a` is granted these tools and the home has one skill.
fn world(tools: &str) -> World {
    world_with(ANSWER, tools)
}

/// A world with this transcript, and these tools granted to `a`.
fn world_with(transcript: &str, tools: &str) -> World {
    let settings = format!("[grants.a]\ntools = [{tools}]\n");
    let agents = [("a.md", &*agent("a", ""))];
    let mut world =
        World::new(Plan { transcript, settings: &settings, agents: &agents, ..Plan::default() });
    write(&world.home.path().join("skills/tides/SKILL.md"), TIDES);
    let workspace = world.root();
    let roots = vec![
        LibraryRoot::in_home::<SkillDefinition>(world.home.path()),
        LibraryRoot::in_workspace::<SkillDefinition>(&workspace),
    ];
    world.host.skills = Arc::new(SkillLibrary::from_roots(roots, Vec::new(), (), false));
    world
}

/// The first message of a run with this task.
async fn first(world: &World, task: &str) -> String {
    let outcome = world.run(world.spec("a", task)).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent();
    let [ChatMessage::User { text, .. }] = &sent[0].messages[..] else { panic!("{sent:?}") };
    text.clone()
}

#[tokio::test]
async fn a_task_with_a_trigger_brings_its_skill_along_as_context() {
    let world = world("\"use_skill\"");
    let text = first(&world, "write the tide table").await;
    assert!(text.starts_with("Context:\n<skill name=\"tides\" from=\"own\">\n"), "{text}");
    assert!(text.ends_with("In metres.\n</skill>\n\nTask:\nwrite the tide table"), "{text}");
}

#[tokio::test]
async fn a_task_without_a_trigger_is_sent_byte_for_byte() {
    let task = "write the tides\n table ";
    assert_eq!(first(&world("\"use_skill\""), task).await, task);
}

#[tokio::test]
async fn an_agent_that_may_not_use_skills_gets_none() {
    let task = "write the tide table";
    assert_eq!(first(&world(""), task).await, task);
}

#[tokio::test]
async fn a_skill_written_during_a_session_counts_and_a_workspaces_is_not_heeded() {
    let world = world("\"use_skill\"");
    let path = world.workspace.path().join(".belljar/skills/theirs.md");
    write(&path, &TIDES.replace("tide table", "forecast").replace("tides", "theirs"));
    write(&world.home.path().join("skills/new.md"), &TIDES.replace("tides", "new"));
    let text = first(&world, "tide table and forecast").await;
    assert_eq!(text.matches("<skill ").count(), 2, "{text}");
    assert!(text.contains("name=\"new\"") && !text.contains("theirs"), "{text}");
}

#[tokio::test]
async fn a_model_sees_names_first_and_loads_the_text_when_it_asks() {
    let world = world_with(USING, "\"use_skill\"");
    let outcome = world.go("a").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent();
    assert_eq!(tool_names(&sent[0]), ["use_skill"]);
    let index = sent[0].system.last().unwrap();
    assert!(index.starts_with("# Skills") && index.ends_with("- `tides`: d"), "{index}");
    assert!(!index.contains("In metres."));
    let answers = results(&sent[1]);
    assert!(!answers[0].1 && answers[0].0.contains("In metres."), "{answers:?}");
    let refused = "no such skill: the available skills are `tides`";
    assert_eq!(answers[1], (refused.to_owned(), true));
    assert_eq!(outcome.receipts.len(), 2);
}

#[tokio::test]
async fn without_skills_there_is_neither_tool_nor_list() {
    let mut world = world_with(ANSWER, "\"use_skill\"");
    world.host.skills = Arc::new(SkillLibrary::from_roots(Vec::new(), Vec::new(), (), false));
    world.go("a").await;
    let sent = world.sent();
    assert_eq!(tool_names(&sent[0]), [""; 0]);
    assert_eq!(sent[0].system, ["You are a.\n"]);
}

#[tokio::test]
async fn an_agent_without_the_tool_is_told_of_no_skills() {
    let world = world("");
    world.go("a").await;
    assert_eq!(world.sent()[0].system, ["You are a.\n"]);
}

#[tokio::test]
async fn a_command_or_a_skill_that_is_gone_since_the_turn_began_leaves_no_tool() {
    let reads = "transcript: 1\nagents:\n  - agent: a\n    turns:\n      \
        - calls: [{name: file_read, arguments: {path: a.txt}}]\n      - say: ok\n";
    let call = CommandCall { name: "gone".to_owned(), arguments: "now".to_owned() };
    let command = CallerInput { command: Some(call), ..CallerInput::default() };
    let skill = CallerInput { skills: vec!["gone".to_owned()], ..CallerInput::default() };
    for (brought, warnings) in [(command, 1), (skill, 0)] {
        let world = World::new(Plan {
            transcript: reads,
            settings: "[grants.a]\ntools = [\"file_read\"]\n",
            agents: &[("a.md", &agent("a", ""))],
            files: &[("a.txt", "text of a\n")],
            tools: vec![stock("file_read")],
            ..Plan::default()
        });
        let mut spec = world.spec("a", "/gone now");
        spec.brought = brought;
        let outcome = world.run(spec).await;
        assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
        let warned = outcome.warnings.iter().filter(|it| it.contains("no command is called"));
        assert_eq!(warned.count(), warnings, "{:?}", outcome.warnings);
        let sent = world.sent();
        let [ChatMessage::User { text, .. }] = &sent[0].messages[..] else { panic!("{sent:?}") };
        assert_eq!(text, "/gone now");
        let (text, is_error) = results(&sent[1]).remove(0);
        assert!(is_error && text.contains("tool not allowed"), "{text}");
        assert!(outcome.receipts.iter().all(|call| call.error.is_some()), "nothing was read");
        // A turn without either still reads.
        let outcome = world.run(world.spec("a", "go")).await;
        assert!(outcome.receipts.iter().all(|call| call.error.is_none()), "{outcome:?}");
    }
}
