//! Attacks by libraries under a misleading name.

use super::attack_row;
use super::stage::{HONEST, LibraryStage, agent_file};
use crate::attack::{Attack, Stopped};

const RESERVED: &str = "names of belljar's own are no library's (INV-144)";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-name-api",
        "is called `api`, as the agents are that are made through the API",
        RESERVED,
        "is belljar's own word",
        false,
        |stage| Box::pin(async move { add_under_name(stage, "api").await }),
    ),
    attack_row(
        "libraries-name-scope",
        "is called `workspace`, as what a workspace brings",
        RESERVED,
        "is belljar's own word",
        false,
        |stage| Box::pin(async move { add_under_name(stage, "workspace").await }),
    ),
    attack_row(
        "libraries-name-taken",
        "is called as a library is that is there already",
        "a name is taken once (INV-69)",
        "there is a library `honest` already",
        false,
        |stage| Box::pin(async move { add_under_name(stage, HONEST).await }),
    ),
    attack_row(
        "libraries-name-leads-out",
        "is called `../agents`",
        "a name is a plain one (INV-70)",
        "is no name for a library",
        false,
        |stage| Box::pin(async move { add_under_name(stage, "../agents").await }),
    ),
    attack_row(
        "libraries-name-hidden",
        "lies in a folder whose name is turned round and moves the cursor",
        "a path is used as it is shown (INV-143)",
        "characters that no screen shows",
        false,
        |stage| {
            Box::pin(async move {
                let folder = "so\u{202e}ecr\u{1b}[2Ju";
                stage.write_file(
                    &format!("{folder}/agents/guest.md"),
                    agent_file("guest", "Read."),
                )?;
                stage.expect_refused(&stage.path(folder)).await
            })
        },
    ),
];

/// Makes 2 attacks, for example `libraries-name-taken`: the attacker is called as a library is that is there
/// already.
async fn add_under_name(stage: &LibraryStage, name: &str) -> Stopped {
    stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
    stage.expect_refused_as(&stage.path("source"), name).await
}
