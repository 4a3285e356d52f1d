//! Parents that hand work to subagents.

mod auto_background;
mod background;
mod basics;
mod blocks;
mod depth;
mod fork;
mod isolated;
mod known_files;
mod limits;
mod parallel;
mod person;
mod small;
mod steps;
mod worktree;

use belljar_kit::world::{Plan, World, agent};

const SETTINGS: &str = "[grants.boss]\ntools = [\"spawn_agent\", \"file_read\"]\n";

/// Grants `boss` all tools for subagents.
const ALL: &str = "[grants.boss]\ntools = [\"spawn_agent\", \"delegate_parallel\", \
\"agent_status\", \"agent_result\", \"agent_cancel\", \"file_read\"]\n";

fn world(transcript: &str) -> World {
    world_with(transcript, SETTINGS)
}

/// A world with the agents of these tests, this transcript and these settings.
fn world_with(transcript: &str, settings: &str) -> World {
    World::new(Plan {
        transcript,
        settings,
        agents: &[
            ("boss.md", &agent("boss", "")),
            ("scout.md", &agent("scout", "tools: [file_read]\n")),
            ("hidden.md", &agent("hidden", "").replace("user-facing", "internal")),
            ("writer.md", &agent("writer", "tools: [file_read, web_fetch]\n")),
            ("stuck.md", &agent("stuck", "tools: [file_read, spawn_agent]\n")),
        ],
        files: &[("a.txt", "text of a\n"), ("b.txt", "text of b\n")],
        ..Plan::default()
    })
}
