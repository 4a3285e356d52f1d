//! Git repositories that name something outside themselves, or have something run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::row;
use super::stage::{CANARY, Stage, agent};
use crate::attack::{Attack, Stopped};

const COPY: &str = "git sees a copy of objects and references alone (INV-140)";
const SKELETON: &str = "0123456789012345678901234567890123456789";

pub(super) const ATTACKS: &[Attack<Stage>] = &[
    row(
        "libraries-git-alternates",
        "borrows another repository's objects through `objects/info/alternates`",
        COPY,
        "borrows objects of another one",
        false,
        |stage| Box::pin(async move { borrows(stage, "alternates").await }),
    ),
    row(
        "libraries-git-http-alternates",
        "borrows objects through `objects/info/http-alternates`",
        COPY,
        "borrows objects of another one",
        false,
        |stage| Box::pin(async move { borrows(stage, "http-alternates").await }),
    ),
    row(
        "libraries-git-file",
        "has a `.git` file that names another repository",
        COPY,
        "its `.git` is a file",
        false,
        |stage| {
            Box::pin(async move {
                let outside = stage.path("outside/.git");
                stage.put("source/.git", format!("gitdir: {}\n", outside.display()))?;
                stage.refuses(&stage.path("source")).await
            })
        },
    ),
    row(
        "libraries-git-link",
        "has a `.git` that is a link to another repository's",
        COPY,
        "its `.git` is a link",
        false,
        |stage| {
            Box::pin(async move {
                stage.put("source/README", "x")?;
                symlink(stage.path("outside/.git"), stage.path("source/.git"))?;
                stage.refuses(&stage.path("source")).await
            })
        },
    ),
    row(
        "libraries-git-commondir",
        "has its objects in another repository by `commondir`",
        COPY,
        "`commondir`",
        false,
        |stage| {
            Box::pin(async move {
                let source = skeleton(stage)?;
                let outside = stage.path("outside/.git");
                stage.put("source/.git/commondir", format!("{}\n", outside.display()))?;
                stage.refuses(&source).await
            })
        },
    ),
    row(
        "libraries-git-objects-link",
        "has an `objects` that is a link to another repository's",
        COPY,
        "its `objects` is a link",
        false,
        |stage| Box::pin(async move { linked(stage, "objects", "objects").await }),
    ),
    row(
        "libraries-git-pack-link",
        "has a folder of packs that is a link to another repository's",
        COPY,
        "its `objects/pack` is a link",
        false,
        |stage| Box::pin(async move { linked(stage, "objects/pack", "objects/pack").await }),
    ),
    row(
        "libraries-git-object-link",
        "has an object that is a link to a file outside",
        COPY,
        "is a link",
        false,
        |stage| {
            Box::pin(async move {
                let name = format!("objects/ab/{}", SKELETON.get(2..).unwrap_or_default());
                linked(stage, &name, "../secret.md").await
            })
        },
    ),
    row(
        "libraries-git-refs-link",
        "has branches that are a link to another repository's",
        COPY,
        "its `refs/heads` is a link",
        false,
        |stage| Box::pin(async move { linked(stage, "refs/heads", "refs/heads").await }),
    ),
    row(
        "libraries-git-packed-refs-link",
        "has a list of references that is a link to a file outside",
        COPY,
        "its `packed-refs` is a link",
        false,
        |stage| Box::pin(async move { linked(stage, "packed-refs", "../secret.md").await }),
    ),
    row(
        "libraries-git-head-outside",
        "has a `HEAD` that names a file outside by `..`",
        COPY,
        "names neither a branch nor a commit",
        false,
        |stage| {
            Box::pin(async move {
                let source = skeleton(stage)?;
                stage.put("source/.git/HEAD", "ref: ../../outside/.git/refs/heads/main\n")?;
                stage.refuses(&source).await
            })
        },
    ),
    row(
        "libraries-git-head-fifo",
        "has a FIFO for its `HEAD`, so that whoever reads it waits",
        "regular files alone, opened without waiting (INV-141)",
        "neither file nor folder",
        false,
        |stage| Box::pin(async move { waits(stage, "HEAD").await }),
    ),
    row(
        "libraries-git-pack-fifo",
        "has a FIFO for a pack",
        "regular files alone, opened without waiting (INV-141)",
        "neither file nor folder",
        false,
        |stage| {
            Box::pin(
                async move { waits(stage, &format!("objects/pack/pack-{SKELETON}.pack")).await },
            )
        },
    ),
    row(
        "libraries-git-sparse-pack",
        "has a pack of a terabyte that takes no room",
        "a bound on all objects, asked before they are read (INV-142)",
        "more than 1073741824 bytes",
        false,
        |stage| {
            Box::pin(async move {
                let source = skeleton(stage)?;
                let pack = format!("source/.git/objects/pack/pack-{SKELETON}.pack");
                let pack = fs::File::create(stage.path(&pack))?;
                pack.set_len(1 << 40)?;
                stage.refuses(&source).await
            })
        },
    ),
    row(
        "libraries-git-reftable",
        "keeps its references where no list of them is read",
        COPY,
        "`reftable`",
        false,
        |stage| {
            Box::pin(async move {
                let source = skeleton(stage)?;
                fs::create_dir(stage.path("source/.git/reftable"))?;
                stage.refuses(&source).await
            })
        },
    ),
    row(
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
                stage.takes(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    row(
        "libraries-git-config-runs",
        "has programs run by its configuration, hooks, filters and attributes",
        COPY,
        "installed 1 agent",
        true,
        |stage| Box::pin(async move { runs(stage).await }),
    ),
    row(
        "libraries-git-percent",
        "is called `%70riv`, which decodes to the name of its neighbour `priv`",
        "a path is used as it is shown (INV-143)",
        "%70riv",
        true,
        |stage| {
            Box::pin(async move {
                fs::rename(stage.path("repository"), stage.path("%70riv"))?;
                fs::rename(stage.path("outside"), stage.path("priv"))?;
                stage.takes(&stage.path("%70riv"), &["guest"]).await
            })
        },
    ),
    row(
        "libraries-git-replace",
        "replaces an agent by another text that no commit names",
        COPY,
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                let of = |rev: &str| stage.git("repository", &["rev-parse", rev]);
                let old = of("HEAD:agents/guest.md")?;
                let new = stage.put("repository/new", agent("guest", CANARY))?;
                let new =
                    stage.git("repository", &["hash-object", "-w", &new.to_string_lossy()])?;
                stage.git("repository", &["replace", &old, &new])?;
                stage.put("repository/.git/info/grafts", format!("{}\n", of("HEAD")?))?;
                stage.takes(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    row(
        "libraries-git-export-subst",
        "has git write other text into an agent than was committed",
        "attributes of the clone come before those of the commit (INV-143)",
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                stage.put("repository/.gitattributes", "*.md export-subst ident\n")?;
                let text = "$Format:%an$ $Id$";
                stage.put("repository/agents/guest.md", agent("guest", text))?;
                commit(stage)?;
                let stopped = stage.takes(&stage.path("repository"), &["guest"]).await?;
                match stage.holds("home/libraries", text)? {
                    true => Ok(stopped),
                    false => Err(crate::Escape::new("the text is not the one that was committed")),
                }
            })
        },
    ),
    row(
        "libraries-git-submodule",
        "has a submodule that names a repository outside",
        COPY,
        "installed 1 agent",
        true,
        |stage| {
            Box::pin(async move {
                let id = stage.git("outside", &["rev-parse", "HEAD"])?;
                let url = stage.path("outside");
                let modules = format!(
                    "[submodule \"agents/sub\"]\n\tpath = agents/sub\n\turl = {}\n",
                    url.display()
                );
                stage.put("repository/.gitmodules", modules)?;
                let entry = format!("160000,{id},agents/sub");
                stage.git("repository", &["add", ".gitmodules"])?;
                stage.git("repository", &["update-index", "--add", "--cacheinfo", &entry])?;
                stage.git("repository", &["commit", "--quiet", "-m", "sub"])?;
                stage.takes(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    row(
        "libraries-git-committed-link",
        "has committed links to files and folders outside",
        "links of an archive are left out (INV-72)",
        "it is a link",
        true,
        |stage| {
            Box::pin(async move {
                symlink(stage.path("outside/secret.md"), stage.path("repository/agents/l.md"))?;
                symlink(stage.path("outside/agents"), stage.path("repository/agents/f"))?;
                commit(stage)?;
                stage.takes(&stage.path("repository"), &["guest"]).await
            })
        },
    ),
    row(
        "libraries-git-many-trees",
        "has one tree within itself many times, three hundred thousand files in all",
        "a bound on what is looked at (INV-142)",
        "more than 100000 files",
        true,
        |stage| Box::pin(async move { trees(stage).await }),
    ),
    row(
        "libraries-git-update-borrows",
        "borrows another repository's objects once it is installed",
        COPY,
        "borrows objects of another one",
        true,
        |stage| {
            Box::pin(async move {
                stage.takes(&stage.path("repository"), &["guest"]).await?;
                let outside = stage.path("outside/.git/objects");
                let text = format!("{}\n", outside.display());
                stage.put("repository/.git/objects/info/alternates", text)?;
                let id = stage.git("outside", &["rev-parse", "HEAD"])?;
                stage.put("repository/.git/refs/heads/main", format!("{id}\n"))?;
                stage.refuses_update().await
            })
        },
    ),
];

/// A repository as far as it is looked at before git is.
fn skeleton(stage: &Stage) -> std::io::Result<PathBuf> {
    for below in ["objects/pack", "objects/info", "objects/ab", "refs/heads", "refs/tags"] {
        fs::create_dir_all(stage.path("source/.git").join(below))?;
    }
    stage.put("source/.git/HEAD", "ref: refs/heads/main\n")?;
    let main = fs::read(stage.path("outside/.git/refs/heads/main"));
    let id = main.unwrap_or_else(|_| format!("{SKELETON}\n").into_bytes());
    stage.put("source/.git/refs/heads/main", id)?;
    stage.put("source/.git/config", "[core]\n\tbare = false\n")?;
    Ok(stage.path("source"))
}

async fn borrows(stage: &Stage, list: &str) -> Stopped {
    let source = skeleton(stage)?;
    let outside = stage.path("outside/.git/objects");
    stage.put(&format!("source/.git/objects/info/{list}"), format!("{}\n", outside.display()))?;
    stage.refuses(&source).await
}

async fn linked(stage: &Stage, name: &str, to: &str) -> Stopped {
    let source = skeleton(stage)?;
    let link = stage.path("source/.git").join(name);
    if link.is_dir() {
        fs::remove_dir_all(&link)?;
    }
    symlink(stage.path("outside/.git").join(to), link)?;
    stage.refuses(&source).await
}

async fn waits(stage: &Stage, name: &str) -> Stopped {
    let source = skeleton(stage)?;
    let path = stage.path("source/.git").join(name);
    if path.exists() {
        fs::remove_file(&path)?;
    }
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .map_err(std::io::Error::from)?;
    stage.refuses(&source).await
}

fn commit(stage: &Stage) -> anyhow::Result<()> {
    stage.git("repository", &["add", "."])?;
    stage.git("repository", &["commit", "--quiet", "-m", "two"]).map(drop)
}

async fn runs(stage: &Stage) -> Stopped {
    let run = format!("touch '{}'; cat", stage.path("ran").display());
    stage.put("repository/.gitattributes", "*.md filter=x diff=x merge=x\n")?;
    commit(stage)?;
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
        stage.git("repository", &["config", name, &run])?;
    }
    stage.git("repository", &["config", "core.worktree", "/"])?;
    let secret = stage.path("outside/secret.md");
    stage.git("repository", &["config", "include.path", &secret.to_string_lossy()])?;
    for hook in ["post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"] {
        let hook = format!("repository/.git/hooks/{hook}");
        let path = stage.put(&hook, format!("#!/bin/sh\n{run}\n"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let verdict = stage.takes(&stage.path("repository"), &["guest"]).await?;
    match stage.path("ran").exists() {
        false => Ok(verdict),
        true => Err(crate::Escape::new("something of the repository was run")),
    }
}

/// 24 names for one tree in each of four trees: 331,776 files of one object.
async fn trees(stage: &Stage) -> Stopped {
    let empty = stage.put("repository/empty", "")?;
    let blob = stage.git("repository", &["hash-object", "-w", &empty.to_string_lossy()])?;
    let mut below = ("100644 blob", blob);
    for _ in 0..4 {
        let lines: String =
            (0..24).map(|n| format!("{} {}\tn{n:02}\n", below.0, below.1)).collect();
        stage.put("repository/lines", lines)?;
        below = ("040000 tree", stage.git_reading("repository", "mktree", "repository/lines")?);
    }
    let id = stage.git("repository", &["commit-tree", "-m", "trees", &below.1])?;
    stage.git("repository", &["update-ref", "HEAD", &id])?;
    stage.refuses(&stage.path("repository")).await
}
