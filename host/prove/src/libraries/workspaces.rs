//! Attacks by repositories that a person works in: links in place of files that belljar writes, and models
//! that request the attacker's host.

use std::os::unix::fs::symlink;

use super::attack_row;
use super::stage::LibraryStage;
use crate::attack::Attack;

const BELOW: &str = "names are opened from the open workspace, and no link is followed (INV-433)";

const NAMED: &str = "a ready command is for hosts that a person's file or words name (INV-432)";

/// The agent file whose model makes the request.
const GUEST: &str =
    "---\nname: guest\ndescription: Reads.\ntools: [web_fetch]\n---\nRead what you are told.\n";

/// A model's transcript that requests the attacker's host.
const ASKS: &str = "transcript: 1\nagents:\n  - agent: guest\n    turns:\n      - calls: \
    [{name: web_fetch, arguments: {url: 'https://attacker.test/collect'}}]\n      - say: \
    Let me have the host.\n";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-workspace-linked-client-file",
        "has the file of an MCP client lead to a person's token",
        BELOW,
        ".mcp.json` is a link",
        false,
        |stage| {
            Box::pin(async move {
                symlink(stage.path("outside/secret.md"), stage.path("workspace/.mcp.json"))?;
                stage.expect_command_refused(&["mcp", "config", "claude-code", "--write"]).await
            })
        },
    ),
    attack_row(
        "libraries-workspace-linked-folder",
        "has `.belljar` lead to a folder outside",
        BELOW,
        ".belljar` is a link",
        false,
        |stage| {
            Box::pin(async move {
                // A separate workspace, because the neighbour's commands would report the link too.
                let workspace = stage.path("workspace/cloned");
                std::fs::create_dir(&workspace)?;
                symlink(stage.path("outside"), workspace.join(".belljar"))?;
                let workspace = workspace.to_string_lossy();
                stage.expect_command_refused(&["init", "--workspace", &workspace]).await
            })
        },
    ),
    attack_row(
        "libraries-workspace-linked-output",
        "has a folder for output lead to a folder outside",
        BELOW,
        "out` is a link",
        false,
        |stage| {
            Box::pin(async move {
                symlink(stage.path("outside"), stage.path("workspace/out"))?;
                stage.expect_command_refused(&["man", "out/pages"]).await
            })
        },
    ),
    attack_row(
        "libraries-host-of-a-model",
        "asks for its own host, so that a command which opens it stands at the end",
        NAMED,
        "have named that host",
        false,
        |stage| {
            Box::pin(async move {
                let script = stage.write_file("home/script.yaml", ASKS)?;
                let script = script.to_string_lossy();
                stage.write_file("home/agents/guest.md", GUEST)?;
                let run = ["run", "--no-save", "--agent", "guest", "--transcript", &script, "go"];
                stage.expect_output_without(&run, "belljar grant").await
            })
        },
    ),
];
