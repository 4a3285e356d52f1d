//! Skills in a run: what a task brings along.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use belljar_definition::Skill;
use belljar_model::Message;
use belljar_session::{Root, RunStatus, SkillLibrary};
use support::{Plan, World, agent, write};

const TIDES: &str = "---\nname: tides\ndescription: d\ntriggers: [tide table]\n---\nIn metres.\n";

const ANSWER: &str = "transcript: 1\nagents:\n  - agent: a\n    turns: [{say: ok}]\n";

/// A world in which agent `a` is granted these tools and the home has one skill.
fn world(tools: &str) -> World {
    let settings = format!("[grants.a]\ntools = [{tools}]\n");
    let agents = [("a.md", &*agent("a", ""))];
    let mut world = World::new(Plan {
        transcript: ANSWER,
        settings: &settings,
        agents: &agents,
        ..Plan::default()
    });
    write(&world.home.path().join("skills/tides/SKILL.md"), TIDES);
    let workspace = world.workspace.path().canonicalize().unwrap();
    let roots =
        vec![Root::in_home::<Skill>(world.home.path()), Root::in_workspace::<Skill>(&workspace)];
    world.host.skills = Arc::new(SkillLibrary::of(roots, Vec::new(), (), false));
    world
}

async fn first(world: &World, task: &str) -> String {
    let outcome = world.run(world.spec("a", task)).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let sent = world.sent();
    let [Message::User { text }] = &sent[0].messages[..] else { panic!("{sent:?}") };
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
