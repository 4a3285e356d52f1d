//! Agents that ask for tools that nobody has here: they run with what they have, and say so.

use crate::kit::World;

const SCRIPT: &str = "transcript: 1\nagents:\n  - agent: some\n    turns: [{say: done}]\n";

fn world() -> World {
    let world = World::new();
    let agent = |name: &str, tools: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: {tools}\n---\nBe brief.\n");
        world.home_file(&format!("agents/{name}.md"), &text);
    };
    agent("some", "Read, mcp__docs__search, githubRepo, Frobnicate");
    agent("none", "mcp__docs__search, Frobnicate");
    agent("unclear", "Read\ndisallowedTools: Edit and whatever writes");
    world
}

#[test]
fn an_agent_runs_without_the_tools_that_nobody_has_here() {
    let world = world();
    let script = world.other("script.yaml", SCRIPT.as_bytes());
    let run = |agent: &str, more: &[&str]| {
        let line = ["run", "--agent", agent, "--transcript", script.to_str().unwrap(), "go"];
        world.run(&[&line[..], more].concat())
    };
    let check = world.run(&["agents", "check", "some"]).exits(0).says("ready with warnings");
    check.says("mcp__docs__search").says("it is a tool of an MCP server").says("and 2 more");
    run("some", &[]).exits(0).complains("tool `Frobnicate` does not exist");
    // The tools that it has are those that its file names and that are here: no others instead.
    world.run(&["explain", "some", "file_read"]).exits(0);
    world.run(&["explain", "some", "file_search"]).exits(4);

    // Without any tool of its own it would be another agent.
    world.run(&["agents", "check", "none"]).exits(4).says("blocked");
    run("none", &[]).exits(4).complains("tool `Frobnicate` does not exist");

    // What takes tools away has to be understood.
    let why = "it names several things, and not all are tools";
    world.run(&["agents", "check", "unclear"]).exits(4).says(why);
    run("unclear", &[]).exits(4).complains(why);
}

#[test]
fn strict_blocks_an_agent_that_lacks_any_tool() {
    let world = world();
    world.home_file("belljar.toml", "[agents]\nstrict = true\n");
    world.run(&["agents", "check", "some"]).exits(4).says("tool `Frobnicate` does not exist");
    let script = world.other("script.yaml", SCRIPT.as_bytes());
    let run = ["run", "--agent", "some", "--transcript", script.to_str().unwrap(), "go"];
    world.run(&run).exits(4).complains("blocked");
    world.run(&[&run[..], &["--partial"]].concat()).exits(0);
    // A workspace does not loosen it.
    world.file(".belljar/belljar.toml", "[agents]\nstrict = false\n");
    world.run(&run).exits(2).complains("has no place in a workspace's");
}
