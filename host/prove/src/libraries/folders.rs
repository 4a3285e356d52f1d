//! Attacks by folders with links, special files, and misleading names.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::attack_row;
use super::stage::{CANARY, LibraryStage, agent_file};
use crate::attack::Attack;

const WALK: &str = "folders are walked from open descriptors, and no link is followed (INV-141)";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-folder-links",
        "has links to files and folders outside, and to itself",
        WALK,
        "it is a link or no regular file",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                let source = stage.path("source");
                symlink(stage.path("outside/secret.md"), source.join("agents/link.md"))?;
                symlink(stage.path("outside/agents"), source.join("more"))?;
                symlink(&source, source.join("agents/loop"))?;
                symlink("../../outside/secret.md", source.join("relative.md"))?;
                stage.expect_installed(&source, &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-folder-special-files",
        "has a FIFO and a socket that are called like agents",
        WALK,
        "it is a link or no regular file",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                let source = stage.path("source");
                mknodat(CWD, source.join("fifo.md"), FileType::Fifo, Mode::RUSR, 0)
                    .map_err(std::io::Error::from)?;
                let _socket = UnixListener::bind(source.join("socket.md"))?;
                stage.expect_installed(&source, &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-folder-deep",
        "has an agent two hundred folders down",
        "a bound on how deep is looked (INV-142)",
        "installed 1 agent",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                let deep = format!("source/{}stolen.md", "d/".repeat(200));
                stage.write_file(&deep, agent_file("stolen", CANARY))?;
                stage.expect_installed(&stage.path("source"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-folder-sparse-file",
        "has an agent of a terabyte that takes no room",
        "a bound on an agent's length (INV-142)",
        "it is longer than an agent may be",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                fs::File::create(stage.path("source/agents/long.md"))?.set_len(1 << 40)?;
                stage.expect_installed(&stage.path("source"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-folder-blurred-name",
        "has folders and agents whose names end in what nobody sees there",
        "a path is used as it is shown (INV-143)",
        "begins or ends with what nobody sees there",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                stage.write_file("source/agents./stolen.md", agent_file("stolen", CANARY))?;
                stage.write_file("source/agents /stolen.md", agent_file("stolen", CANARY))?;
                stage.expect_installed(&stage.path("source"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-folder-update-elsewhere",
        "becomes a link to another folder once it is installed",
        "an update comes from where the library came from (INV-143)",
        "leads elsewhere now",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/agents/guest.md", agent_file("guest", "Read."))?;
                let source = stage.path("source");
                stage.expect_installed(&source, &["guest"]).await?;
                fs::rename(&source, stage.path("source-before"))?;
                symlink(stage.path("outside"), &source)?;
                stage.expect_update_refused().await
            })
        },
    ),
];
