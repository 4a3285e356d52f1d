//! Agents that ask for tools that nobody has here. Those of others run with what they have, and say
//! so; in a person's own home a name that nobody knows is a slip, and an error.

use crate::kit::World;

/// The name of a tool that nobody has, in a file for another program.
const SLIP: &str = "tools: [file_read, file_serch]\n";

const SCRIPT: &str = "transcript: 1\nagents:\n  - agent: some\n    turns: [{say: done}]\n";

fn world() -> World {
    let world = World::new();
    let agent = |name: &str, tools: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: {tools}\n---\nBe brief.\n");
        world.other(&format!("lib/{name}.md"), text.as_bytes())
    };
    agent("some", "Read, mcp__docs__search, githubRepo, Frobnicate");
    agent("none", "mcp__docs__search, Frobnicate");
    let file = agent("unclear", "Read\ndisallowedTools: Edit and whatever writes");
    let library = file.parent().unwrap().to_str().unwrap();
    world.run(&["agents", "add", library, "--yes"]).exits(0);
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

/// INV-486.
#[test]
fn a_tool_that_nobody_knows_is_an_error_in_every_file_of_ones_own_home() {
    let forms = [
        "",
        "visibility: user-facing\n",
        "model: sonnet\n",
        "permissionMode: default\n",
        "mode: subagent\n",
        "kind: local\n",
        "user-invocable: true\n",
    ];
    for more in forms {
        let world = World::new();
        let text = format!("---\nname: slip\ndescription: d\n{SLIP}{more}---\nBe brief.\n");
        let path = world.home_file("agents/slip.md", &text);
        let why = "tool `file_serch` does not exist";
        for checked in [&["agents", "check"][..], &["agents", "check", path.to_str().unwrap()]] {
            let done = world.run(checked).exits(2).complains(":4:").complains(why);
            done.complains("did you mean `file_search`?");
        }
        world.run(&["agents", "list"]).exits(2).complains(why);
        let script = world.other("script.yaml", SCRIPT.replace("some", "slip").as_bytes());
        let run = ["run", "--agent", "slip", "--transcript", script.to_str().unwrap(), "go"];
        world.run(&run).exits(2).complains("could not be understood");
        // A draft is on its way there.
        world.home_file("drafts/agents/late.md", &text.replace("slip", "late"));
        world.run(&["drafts", "promote", "agents/late"]).exits(2).complains(why);
        assert!(!world.home().join("agents/late.md").exists());

        // What another program has and nobody has here is no slip, and the neighbour runs.
        let text = text.replace("file_serch", "mcp__docs__search");
        if more.contains("sonnet") {
            world.home_file("agents/slip.md", &text);
            world.run(&["agents", "check", "slip"]).exits(0).says("ready with warnings");
            world.run(&run).exits(0);
        }
        // The same file in somebody's library keeps its warning, whoever checks or runs it.
        let theirs = world.other(
            "lib/theirs.md",
            text.replace("mcp__docs__search", "file_serch").replace("slip", "theirs").as_bytes(),
        );
        let code = if more.contains("visibility") { 2 } else { 0 };
        world.run(&["agents", "check", theirs.to_str().unwrap()]).exits(code);
    }
}
