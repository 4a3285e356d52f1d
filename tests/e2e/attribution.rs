//! Who decided: a run, `explain`, `agents check` and the API name the same source, as all of them
//! print one decision.

use std::fs;

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::Server;

/// A tool that an agent is refused.
struct Refused {
    /// The agent's name; its file, grants and transcript go by it.
    agent: &'static str,
    /// Lines of its frontmatter.
    file: &'static str,
    /// Its section in `belljar.toml`; empty = none.
    grant: &'static str,
    /// The tool that it calls, with which arguments, and what `explain` is asked about.
    call: (&'static str, &'static str, Option<&'static str>),
    /// Who decides.
    by: &'static str,
    /// Words of the reason that both show.
    why: &'static str,
    /// Whether the agent asks for the tool by name, so that it counts as withheld.
    withheld: bool,
}

const REFUSED: &[Refused] = &[
    Refused {
        agent: "unlisted",
        file: "tools: [file_read]",
        grant: "tools = ['file_read', 'file_write']",
        call: ("file_write", "{path: a, content: x}", None),
        by: "definition",
        why: "its `tools` do not name it",
        withheld: false,
    },
    Refused {
        agent: "given-up",
        file: "disallowedTools: [file_read]",
        grant: "",
        call: ("file_read", "{path: a}", None),
        by: "definition",
        why: "`disallowedTools` on line",
        withheld: false,
    },
    // Both refuse: the first of the two decides.
    Refused {
        agent: "neither",
        file: "tools: [file_read]",
        grant: "",
        call: ("shell", "{command: ls}", None),
        by: "definition",
        why: "its `tools` do not name it",
        withheld: false,
    },
    Refused {
        agent: "not-granted",
        file: "tools: [file_read, shell]",
        grant: "",
        call: ("shell", "{command: ls}", None),
        by: "grants",
        why: "denied or not granted",
        withheld: true,
    },
    Refused {
        agent: "denied",
        file: "tools: [file_read, file_list]",
        grant: "tools = { file_read = 'deny', file_list = 'allow' }",
        call: ("file_read", "{path: a}", None),
        by: "grants",
        why: "denied or not granted",
        withheld: true,
    },
    Refused {
        agent: "narrowed",
        file: "tools: [file_read, file_list]",
        grant: "tools = ['file_read', 'file_list']",
        call: ("file_list", "{}", None),
        by: "grants",
        why: "denied or not granted",
        withheld: true,
    },
    Refused {
        agent: "unpinned",
        file: "tools: [file_read, fresh]",
        grant: "tools = ['file_read', 'fresh']",
        call: ("fresh", "{}", None),
        by: "host",
        why: "tool `fresh` is not pinned",
        withheld: true,
    },
    Refused {
        agent: "changed",
        file: "tools: [file_read, swapped]",
        grant: "tools = ['file_read', 'swapped']",
        call: ("swapped", "{}", None),
        by: "host",
        why: "tool `swapped` is not the one that is pinned",
        withheld: true,
    },
    Refused {
        agent: "asks",
        file: "tools: [file_read]",
        grant: "tools = { file_read = 'ask' }",
        call: ("file_read", "{path: a}", None),
        by: "grants",
        why: "",
        withheld: false,
    },
    Refused {
        agent: "own-hosts",
        file: "tools: [web_fetch]\nhosts: ['https://b.test']",
        grant: "hosts = ['https://b.test']",
        call: ("web_fetch", "{url: 'https://a.test/'}", Some("https://a.test/")),
        by: "definition",
        why: "",
        withheld: false,
    },
    Refused {
        agent: "no-hosts",
        file: "tools: [web_fetch]",
        grant: "hosts = ['https://b.test']",
        call: ("web_fetch", "{url: 'https://a.test/'}", Some("https://a.test/")),
        by: "grants",
        why: "",
        withheld: false,
    },
    Refused {
        agent: "at-the-bottom",
        file: "tools: [file_read, spawn_agent]",
        grant: "",
        call: ("spawn_agent", "{task: x}", None),
        by: "host",
        why: "not offered at this depth",
        withheld: false,
    },
];

fn words(source: &str) -> &'static str {
    match source {
        "definition" => "the agent definition",
        "manifest" => "the tool manifest",
        "grants" => "the operator's grants",
        "host" => "belljar itself",
        other => panic!("{other}"),
    }
}

fn world() -> World {
    let world = World::without_overlays();
    let wasm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/prebuilt/file_list.wasm");
    let wasm = fs::read(wasm).unwrap();
    let mut settings = format!(
        "[subagents]\nmax_depth = 0\n\n[tools.swapped]\ndigest = 'sha256:{}'\n\n\
         [models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n\n",
        "0".repeat(64)
    );
    for tool in ["fresh", "swapped"] {
        let manifest = "manifest = 1\ndescription = \"x\"\nmounts = \"read\"\n";
        world.home_file(&format!("tools/{tool}/tool.toml"), manifest);
        fs::write(world.home().join(format!("tools/{tool}/tool.wasm")), &wasm).unwrap();
    }
    let mut script = "transcript: 1\neach_run: true\nagents:\n".to_owned();
    for Refused { agent, file, grant, call: (tool, arguments, _), .. } in REFUSED {
        let text = format!(
            "---\nname: {agent}\ndescription: d\nvisibility: user-facing\n{file}\n---\nBe brief.\n"
        );
        world.home_file(&format!("agents/{agent}.md"), &text);
        if !grant.is_empty() {
            settings.push_str(&format!("[grants.{agent}]\n{grant}\n\n"));
        }
        script.push_str(&format!(
            "  - agent: {agent}\n    turns: [{{calls: [{{name: {tool}, arguments: {arguments}}}]}}, {{say: done}}]\n"
        ));
    }
    world.home_file("belljar.toml", &settings);
    world.home_file("script.yaml", &script);
    world.file(".belljar/belljar.toml", "[grants.narrowed]\ntools = ['file_read']\n");
    world
}

/// The facts of the one refusal of a run.
fn facts(world: &World, agent: &str) -> String {
    let outcome = world.run(&["run", "--partial", "--agent", agent, "--json", "go"]).json();
    let denials = outcome["receipts"][0]["receipt"]["denials"].as_array().unwrap().clone();
    let [denial] = &denials[..] else { panic!("{agent}: {outcome:#}") };
    denial["facts"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_and_explain_name_the_same_source_for_every_refusal_of_a_tool() {
    let world = world();
    for Refused { agent, call: (tool, _, target), by, why, .. } in REFUSED {
        let explain = [&["explain", agent, tool, "--json"][..], target.as_slice()].concat();
        let said = world.run(&explain).json();
        assert_eq!(said["decided_by"], *by, "{agent}: {said:#}");
        let facts = facts(&world, agent);
        assert!(facts.contains(words(by)), "{agent}: {facts}");
        let others = ["definition", "manifest", "grants", "host"].into_iter().filter(|it| it != by);
        for other in others {
            assert!(!facts.contains(words(other)), "{agent}: {facts}");
        }
        let vote = said["votes"].as_array().unwrap().iter().find(|it| it["source"] == *by).unwrap();
        assert!(vote["why"].as_str().unwrap().contains(why), "{agent}: {said:#}");
        assert!(facts.contains(why), "{agent}: {facts}");
    }
    // The neighbour of all these: what is allowed is called.
    world.file("a", "text");
    world.run(&["explain", "unlisted", "file_read"]).exits(0);
}

#[test]
fn what_a_run_refuses_an_agent_that_asks_for_it_is_withheld_by_the_same_source_everywhere() {
    let world = world();
    let server = Server::start(&world, &[]);
    for Refused { agent, call: (tool, ..), by, why, .. } in REFUSED.iter().filter(|it| it.withheld)
    {
        let (status, body) = server.get(&format!("/v1/grants?agent={agent}"), None);
        assert_eq!(status, 200, "{body}");
        let grants: Value = serde_json::from_str(&body).unwrap();
        let expected = json!([{ "by": words(by), "wanted": format!("tool `{tool}`") }]);
        assert_eq!(grants["withheld"], expected, "{agent}: {grants:#}");
        let reason = match *by {
            "host" => (*why).to_owned(),
            by => format!("tool `{tool}` is not given by {}", words(by)),
        };
        // What nobody can be given is missing; what this agent is not given blocks it.
        let code = if *by == "host" { 0 } else { 4 };
        world.run(&["agents", "check", agent]).exits(code).says(&reason);
        world.run(&["run", "--agent", agent, "go"]).exits(code).complains(&reason);
        let said = world.run(&["explain", agent, tool]).exits(4);
        said.says(&format!("{} ", words(by))).says("(this decided)");
    }
}

#[test]
fn a_tool_that_nobody_has_is_no_matter_of_grants() {
    let world = World::new();
    let script = "transcript: 1\nagents:\n  - agent: general-purpose\n    turns: [{calls: [{name: no_such_tool, arguments: {}}]}, {say: done}]\n";
    let script = world.other("script.yaml", script.as_bytes());
    let run = ["run", "--json", "--transcript", script.to_str().unwrap(), "go"];
    let outcome = world.run(&run).exits(0).json();
    let facts = outcome["receipts"][0]["receipt"]["denials"][0]["facts"].as_str().unwrap();
    assert_eq!(facts, "tool `no_such_tool`: there is no such tool (belljar itself decided)");
    let said = world.run(&["explain", "general-purpose", "no_such_tool"]).exits(2);
    said.complains("there is no tool `no_such_tool`");
}
