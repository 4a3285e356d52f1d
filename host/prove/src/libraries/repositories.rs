//! Attacks by git repositories that refer to something outside themselves, or that make git run a program.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::attack_row;
use super::stage::{CANARY, LibraryStage, agent_file};
use crate::attack::{Attack, Stopped};

const COPY: &str = "git sees a copy of objects and references alone (INV-140)";
const SKELETON: &str = "0123456789012345678901234567890123456789";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-git-alternates",
        "borrows another repository's objects through `objects/info/alternates`",
        COPY,
        "borrows objects of another one",
        false,
        |stage| Box::pin(async move { borrow_objects(stage, "alternates").await }),
    ),
    attack_row(
        "libraries-git-http-alternates",
        "borrows objects through `objects/info/http-alternates`",
        COPY,
        "borrows objects of another one",
        false,
        |stage| Box::pin(async move { borrow_objects(stage, "http-alternates").await }),
    ),
    attack_row(
        "libraries-git-file",
        "has a `.git` file that names another repository",
        COPY,
        "its `.git` is a file",
        false,
        |stage| {
            Box::pin(async move {
                let outside = stage.path("outside/.git");
                stage.write_file("source/.git", format!("gitdir: {}\n", outside.display()))?;
                stage.expect_refused(&stage.path("source")).await
            })
        },
    ),
    attack_row(
        "libraries-git-link",
        "has a `.git` that is a link to another repository's",
        COPY,
        "its `.git` is a link",
        false,
        |stage| {
            Box::pin(async move {
                stage.write_file("source/README", "x")?;
                symlink(stage.path("outside/.git"), stage.path("source/.git"))?;
                stage.expect_refused(&stage.path("source")).await
            })
        },
    ),
    attack_row(
        "libraries-git-commondir",
        "has its objects in another repository by `commondir`",
        COPY,
        "`commondir`",
        false,
        |stage| {
            Box::pin(async move {
                let source = make_skeleton(stage)?;
                let outside = stage.path("outside/.git");
                stage.write_file("source/.git/commondir", format!("{}\n", outside.display()))?;
                stage.expect_refused(&source).await
            })
        },
    ),
    attack_row(
        "libraries-git-objects-link",
        "has an `objects` that is a link to another repository's",
        COPY,
        "its `objects` is a link",
        false,
        |stage| Box::pin(async move { link_objects(stage, "objects", "objects").await }),
    ),
    attack_row(
        "libraries-git-pack-link",
        "has a folder of packs that is a link to another repository's",
        COPY,
        "its `objects/pack` is a link",
        false,
        |stage| Box::pin(async move { link_objects(stage, "objects/pack", "objects/pack").await }),
    ),
    attack_row(
        "libraries-git-object-link",
        "has an object that is a link to a file outside",
        COPY,
        "is a link",
        false,
        |stage| {
            Box::pin(async move {
                let name = format!("objects/ab/{}", SKELETON.get(2..).unwrap_or_default());
                link_objects(stage, &name, "../secret.md").await
            })
        },
    ),
    attack_row(
        "libraries-git-refs-link",
        "has branches that are a link to another repository's",
        COPY,
        "its `refs/heads` is a link",
        false,
        |stage| Box::pin(async move { link_objects(stage, "refs/heads", "refs/heads").await }),
    ),
    attack_row(
        "libraries-git-packed-refs-link",
        "has a list of references that is a link to a file outside",
        COPY,
        "its `packed-refs` is a link",
        false,
        |stage| Box::pin(async move { link_objects(stage, "packed-refs", "../secret.md").await }),
    ),
    attack_row(
        "libraries-git-head-outside",
        "has a `HEAD` that names a file outside by `..`",
        COPY,
        "names neither a branch nor a commit",
        false,
        |stage| {
            Box::pin(async move {
                let source = make_skeleton(stage)?;
                stage
                    .write_file("source/.git/HEAD", "ref: ../../outside/.git/refs/heads/main\n")?;
                stage.expect_refused(&source).await
            })
        },
    ),
    attack_row(
        "libraries-git-head-fifo",
        "has a FIFO for its `HEAD`, so that whoever reads it waits",
        "regular files alone, opened without waiting (INV-141)",
        "neither file nor folder",
        false,
        |stage| Box::pin(async move { place_fifo(stage, "HEAD").await }),
    ),
    attack_row(
        "libraries-git-pack-fifo",
        "has a FIFO for a pack",
        "regular files alone, opened without waiting (INV-141)",
        "neither file nor folder",
        false,
        |stage| {
            Box::pin(async move {
                place_fifo(stage, &format!("objects/pack/pack-{SKELETON}.pack")).await
            })
        },
    ),
    attack_row(
        "libraries-git-sparse-pack",
        "has a pack of a terabyte that takes no room",
        "a bound on all objects, asked before they are read (INV-142)",
        "more than 1073741824 bytes",
        false,
        |stage| {
            Box::pin(async move {
                let source = make_skeleton(stage)?;
                let pack = format!("source/.git/objects/pack/pack-{SKELETON}.pack");
                let pack = fs::File::create(stage.path(&pack))?;
                pack.set_len(1 << 40)?;
                stage.expect_refused(&source).await
            })
        },
    ),
    attack_row(
        "libraries-git-reftable",
        "keeps its references where no list of them is read",
        COPY,
        "`reftable`",
        false,
        |stage| {
            Box::pin(async move {
                let source = make_skeleton(stage)?;
                fs::create_dir(stage.path("source/.git/reftable"))?;
                stage.expect_refused(&source).await
            })
        },
    ),
    attack_row(
        "libraries-git-config-fifo",
        "has a FIFO for its configuration, so that whoever reads it waits",
        COPY,
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                let config = stage.path("repository/.git/config");
                fs::remove_file(&config)?;
                mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                    .map_err(std::io::Error::from)?;
                stage.expect_installed(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-git-config-runs",
        "has programs run by its configuration, hooks, filters and attributes",
        COPY,
        "installed 1 agent",
        true,
        |stage| Box::pin(async move { run_by_config(stage).await }),
    ),
    attack_row(
        "libraries-git-percent",
        "is called `%70riv`, which decodes to the name of its neighbour `priv`",
        "a path is used as it is shown (INV-143)",
        "%70riv",
        true,
        |stage| {
            Box::pin(async move {
                fs::rename(stage.path("repository"), stage.path("%70riv"))?;
                fs::rename(stage.path("outside"), stage.path("priv"))?;
                stage.expect_installed(&stage.path("%70riv"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-git-replace",
        "replaces an agent by another text that no commit names",
        COPY,
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                let of = |rev: &str| stage.git_command("repository", &["rev-parse", rev]);
                let old = of("HEAD:agents/guest.md")?;
                let new = stage.write_file("repository/new", agent_file("guest", CANARY))?;
                let new = stage
                    .git_command("repository", &["hash-object", "-w", &new.to_string_lossy()])?;
                stage.git_command("repository", &["replace", &old, &new])?;
                stage.write_file("repository/.git/info/grafts", format!("{}\n", of("HEAD")?))?;
                stage.expect_installed(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-git-export-subst",
        "has git write other text into an agent than was committed",
        "attributes of the clone come before those of the commit (INV-143)",
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                stage.write_file("repository/.gitattributes", "*.md export-subst ident\n")?;
                let text = "$Format:%an$ $Id$";
                stage.write_file("repository/agents/guest.md", agent_file("guest", text))?;
                commit_all(stage)?;
                let stopped = stage.expect_installed(&stage.path("repository"), &["guest"]).await?;
                match stage.contains_text("home/libraries", text)? {
                    true => Ok(stopped),
                    false => Err(crate::Escape::new("the text is not the one that was committed")),
                }
            })
        },
    ),
    attack_row(
        "libraries-git-submodule",
        "has a submodule that names a repository outside",
        COPY,
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                let id = stage.git_command("outside", &["rev-parse", "HEAD"])?;
                let url = stage.path("outside");
                let modules = format!(
                    "[submodule \"agents/sub\"]\n\tpath = agents/sub\n\turl = {}\n",
                    url.display()
                );
                stage.write_file("repository/.gitmodules", modules)?;
                let entry = format!("160000,{id},agents/sub");
                stage.git_command("repository", &["add", ".gitmodules"])?;
                stage
                    .git_command("repository", &["update-index", "--add", "--cacheinfo", &entry])?;
                stage.git_command("repository", &["commit", "--quiet", "-m", "sub"])?;
                stage.expect_installed(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-git-committed-link",
        "has committed links to files and folders outside",
        "links of an archive are left out (INV-72)",
        "it is a link",
        true,
        |stage| {
            Box::pin(async move {
                symlink(stage.path("outside/secret.md"), stage.path("repository/agents/l.md"))?;
                symlink(stage.path("outside/agents"), stage.path("repository/agents/f"))?;
                commit_all(stage)?;
                stage.expect_installed(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    attack_row(
        "libraries-git-many-trees",
        "has one tree within itself many times, three hundred thousand files in all",
        "a bound on what is looked at (INV-142)",
        "more than 100000 files",
        true,
        |stage| Box::pin(async move { repeat_trees(stage).await }),
    ),
    attack_row(
        "libraries-git-update-borrows",
        "borrows another repository's objects once it is installed",
        COPY,
        "borrows objects of another one",
        true,
        |stage| {
            Box::pin(async move {
                stage.expect_installed(&stage.path("repository"), &["guest"]).await?;
                let outside = stage.path("outside/.git/objects");
                let text = format!("{}\n", outside.display());
                stage.write_file("repository/.git/objects/info/alternates", text)?;
                let id = stage.git_command("outside", &["rev-parse", "HEAD"])?;
                stage.write_file("repository/.git/refs/heads/main", format!("{id}\n"))?;
                stage.expect_update_refused().await
            })
        },
    ),
];

/// Makes the parts of a repository that the program itself reads before it starts git.
fn make_skeleton(stage: &LibraryStage) -> std::io::Result<PathBuf> {
    for below in ["objects/pack", "objects/info", "objects/ab", "refs/heads", "refs/tags"] {
        fs::create_dir_all(stage.path("source/.git").join(below))?;
    }
    stage.write_file("source/.git/HEAD", "ref: refs/heads/main\n")?;
    let main = fs::read(stage.path("outside/.git/refs/heads/main"));
    let id = main.unwrap_or_else(|_| format!("{SKELETON}\n").into_bytes());
    stage.write_file("source/.git/refs/heads/main", id)?;
    stage.write_file("source/.git/config", "[core]\n\tbare = false\n")?;
    Ok(stage.path("source"))
}

/// Makes 2 attacks, for example `libraries-git-alternates`: the attacker borrows another repository's objects
/// through `objects/info/alternates`.
async fn borrow_objects(stage: &LibraryStage, list: &str) -> Stopped {
    let source = make_skeleton(stage)?;
    let outside = stage.path("outside/.git/objects");
    stage.write_file(
        &format!("source/.git/objects/info/{list}"),
        format!("{}\n", outside.display()),
    )?;
    stage.expect_refused(&source).await
}

/// Makes 5 attacks, for example `libraries-git-objects-link`: the attacker has an `objects` that is a link to
/// another repository's.
async fn link_objects(stage: &LibraryStage, name: &str, to: &str) -> Stopped {
    let source = make_skeleton(stage)?;
    let link = stage.path("source/.git").join(name);
    if link.is_dir() {
        fs::remove_dir_all(&link)?;
    }
    symlink(stage.path("outside/.git").join(to), link)?;
    stage.expect_refused(&source).await
}

/// Makes 2 attacks, for example `libraries-git-head-fifo`: the attacker has a FIFO for its `HEAD`, so that
/// whoever reads it waits.
async fn place_fifo(stage: &LibraryStage, name: &str) -> Stopped {
    let source = make_skeleton(stage)?;
    let path = stage.path("source/.git").join(name);
    if path.exists() {
        fs::remove_file(&path)?;
    }
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .map_err(std::io::Error::from)?;
    stage.expect_refused(&source).await
}

fn commit_all(stage: &LibraryStage) -> anyhow::Result<()> {
    stage.git_command("repository", &["add", "."])?;
    stage.git_command("repository", &["commit", "--quiet", "-m", "two"]).map(drop)
}

/// Attack `libraries-git-config-runs`: the attacker has programs run by its configuration, hooks, filters and
/// attributes.
async fn run_by_config(stage: &LibraryStage) -> Stopped {
    let run = format!("touch '{}'; cat", stage.path("ran").display());
    stage.write_file("repository/.gitattributes", "*.md filter=x diff=x merge=x\n")?;
    commit_all(stage)?;
    for name in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "filter.x.smudge",
        "filter.x.process",
        "diff.x.textconv",
        "tar.tar.command",
        "credential.helper",
    ] {
        stage.git_command("repository", &["config", name, &run])?;
    }
    stage.git_command("repository", &["config", "core.worktree", "/"])?;
    let secret = stage.path("outside/secret.md");
    stage.git_command("repository", &["config", "include.path", &secret.to_string_lossy()])?;
    for hook in ["post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"] {
        let hook = format!("repository/.git/hooks/{hook}");
        let path = stage.write_file(&hook, format!("#!/bin/sh\n{run}\n"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let verdict = stage.expect_installed(&stage.path("repository"), &["guest"]).await?;
    match stage.path("ran").exists() {
        false => Ok(verdict),
        true => Err(crate::Escape::new("something of the repository was run")),
    }
}

/// Four trees that each contain 24 names for one tree: 331,776 files of one object.
async fn repeat_trees(stage: &LibraryStage) -> Stopped {
    let empty = stage.write_file("repository/empty", "")?;
    let blob = stage.git_command("repository", &["hash-object", "-w", &empty.to_string_lossy()])?;
    let mut below = ("100644 blob", blob);
    for _ in 0..4 {
        let lines: String =
            (0..24).map(|n| format!("{} {}\tn{n:02}\n", below.0, below.1)).collect();
        stage.write_file("repository/lines", lines)?;
        below = ("040000 tree", stage.git_reading("repository", "mktree", "repository/lines")?);
    }
    let id = stage.git_command("repository", &["commit-tree", "-m", "trees", &below.1])?;
    stage.git_command("repository", &["update-ref", "HEAD", &id])?;
    stage.expect_refused(&stage.path("repository")).await
}
