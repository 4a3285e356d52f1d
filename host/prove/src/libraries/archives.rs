//! Attacks by archives that lead out of their directory, hide files, or unpack to enormous sizes.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::attack_row;
use super::stage::{CANARY, LibraryStage};
use super::tarball::{
    DEVICE, FIFO, FILE, GLOBAL_PAX, HARD_LINK, LONG_LINK, LONG_NAME, PAX, SPARSE, SYMBOLIC_LINK,
    agent_member, build_header, build_member, gzip_archive, gzip_part, pax_record,
};
use crate::attack::{Attack, Stopped};

const HEADERS: &str = "a bound on every header about another one (INV-142)";
const BYTES: &str = "a bound on the bytes that come out (INV-142)";
const PATHS: &str = "only regular files at plain paths are read (INV-72)";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-archive-long-name",
        "has a file whose name has 250 MiB, in GNU's form",
        HEADERS,
        "a name of 262144000 bytes",
        false,
        |stage| Box::pin(async move { announce_long_header(stage, LONG_NAME).await }),
    ),
    attack_row(
        "libraries-archive-long-link",
        "has a link whose target has 250 MiB, in GNU's form",
        HEADERS,
        "a name of 262144000 bytes",
        false,
        |stage| Box::pin(async move { announce_long_header(stage, LONG_LINK).await }),
    ),
    attack_row(
        "libraries-archive-pax",
        "has an extended header of 250 MiB",
        HEADERS,
        "an extended header of 262144000 bytes",
        false,
        |stage| Box::pin(async move { announce_long_header(stage, PAX).await }),
    ),
    attack_row(
        "libraries-archive-global-pax",
        "has an extended header of 250 MiB for all files",
        HEADERS,
        "an extended header of 262144000 bytes",
        false,
        |stage| Box::pin(async move { announce_long_header(stage, GLOBAL_PAX).await }),
    ),
    attack_row(
        "libraries-archive-headers-without-end",
        "has thousands of long names for one file",
        HEADERS,
        "too many headers about one file",
        false,
        |stage| {
            Box::pin(async move {
                let name = build_member(b"x", LONG_NAME, b"agents/guest.md\0");
                expect_refused(stage, &gzip_archive(&[name.repeat(5_000), honest_member()])?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-bomb",
        "unpacks to 320 MiB of zeros",
        BYTES,
        "holds more than 268435456 bytes",
        false,
        |stage| {
            Box::pin(async move {
                const PART: usize = 16 << 20;
                let zeros = gzip_part(&vec![0; PART])?;
                let head = build_header(b"zeros.bin", FILE, 20 * PART as u64, "");
                let bomb =
                    [gzip_part(&[honest_member(), head].concat())?, zeros.repeat(20)].concat();
                expect_refused(stage, &bomb).await
            })
        },
    ),
    attack_row(
        "libraries-archive-many-entries",
        "has 150,000 empty files",
        "a bound on what is looked at (INV-142)",
        "more than 100000 files",
        false,
        |stage| {
            Box::pin(async move {
                let thousand = gzip_part(&build_header(b"f.bin", FILE, 0, "").repeat(1_000))?;
                expect_refused(stage, &thousand.repeat(150)).await
            })
        },
    ),
    attack_row(
        "libraries-archive-empty-parts",
        "has its content behind 20,000 compressed parts of nothing",
        BYTES,
        "installed 1 agent",
        false,
        |stage| {
            Box::pin(async move {
                let nothing = gzip_part(b"")?.repeat(20_000);
                expect_taken(stage, &[nothing, gzip_archive(&[honest_member()])?].concat()).await
            })
        },
    ),
    attack_row(
        "libraries-archive-huge-size",
        "has a file whose size is as large as a number can be",
        BYTES,
        "cannot be read",
        false,
        |stage| {
            Box::pin(async move {
                let huge = build_header(b"huge.md", FILE, u64::MAX, "");
                expect_refused(stage, &gzip_archive(&[honest_member(), huge])?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-cut-off",
        "ends within a file",
        "a damaged archive is refused whole (INV-142)",
        "cannot be read",
        false,
        |stage| {
            Box::pin(async move {
                let all = gzip_archive(&[honest_member(), honest_member()])?;
                expect_refused(stage, all.get(..all.len() / 2).unwrap_or_default()).await
            })
        },
    ),
    attack_row(
        "libraries-archive-trailing-garbage",
        "has bytes behind a header that belong to none",
        "a damaged archive is refused whole (INV-142)",
        "cannot be read",
        false,
        |stage| {
            Box::pin(async move {
                expect_refused(stage, &gzip_archive(&[honest_member(), vec![b'x'; 512]])?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-sparse",
        "has a sparse file, whose holes take no room",
        HEADERS,
        "it holds a sparse file",
        false,
        |stage| {
            Box::pin(async move {
                expect_refused(
                    stage,
                    &gzip_archive(&[honest_member(), build_header(b"s.md", SPARSE, 0, "")])?,
                )
                .await
            })
        },
    ),
    attack_row(
        "libraries-archive-pax-size",
        "has a size in its extended header behind which an agent hides from other programs",
        "an extended header counts, as for other programs (INV-143)",
        "installed 1 agent",
        false,
        |stage| {
            Box::pin(async move {
                let hidden = agent_member("agents/stowaway.md", "stowaway", CANARY);
                let about = build_member(b"p", PAX, &pax_record("size", &hidden.len().to_string()));
                let cover = build_header(b"cover.bin", FILE, 0, "");
                expect_taken(stage, &gzip_archive(&[honest_member(), about, cover, hidden])?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-behind-the-end",
        "has an agent behind its end, where other programs do not look",
        "an archive ends at its first empty block (INV-143)",
        "installed 1 agent",
        false,
        |stage| {
            Box::pin(async move {
                let hidden = agent_member("agents/stowaway.md", "stowaway", CANARY);
                let archive = [honest_member(), vec![0; 1024], hidden].concat();
                expect_taken(stage, &gzip_part(&archive)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-leads-out",
        "has paths that lead out, from the root and by `..`",
        PATHS,
        "its path leads out of the archive",
        false,
        |stage| {
            Box::pin(async move {
                let paths = ["/tmp/stolen.md", "../stolen.md", "agents/../../../agents/stolen.md"];
                let mut members: Vec<_> =
                    paths.iter().map(|path| agent_member(path, "stolen", CANARY)).collect();
                members.push(build_member(b"p", PAX, &pax_record("path", "../../stolen.md")));
                members.push(agent_member("agents/x.md", "stolen", CANARY));
                members.push(honest_member());
                expect_taken(stage, &gzip_archive(&members)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-links",
        "has links of both kinds to files outside",
        PATHS,
        "it is a link",
        false,
        |stage| {
            Box::pin(async move {
                let outside = stage.path("outside/secret.md");
                let link = |path: &str, kind| {
                    build_header(path.as_bytes(), kind, 0, &outside.to_string_lossy())
                };
                let members = [
                    link("agents/a.md", SYMBOLIC_LINK),
                    link("agents/b.md", HARD_LINK),
                    honest_member(),
                ];
                expect_taken(stage, &gzip_archive(&members)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-devices",
        "has devices and FIFOs that are called like agents",
        PATHS,
        "it is no regular file",
        false,
        |stage| {
            Box::pin(async move {
                let node = |path: &[u8], kind| build_header(path, kind, 0, "");
                let members =
                    [node(b"agents/a.md", DEVICE), node(b"agents/b.md", FIFO), honest_member()];
                expect_taken(stage, &gzip_archive(&members)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-hidden-name",
        "has an agent whose name is turned round on a screen",
        "a path is used as it is shown (INV-143)",
        "characters that no screen shows",
        false,
        |stage| {
            Box::pin(async move {
                let members = [
                    agent_member("agents/a\u{202e}dm.md", "stolen", CANARY),
                    agent_member("agents/b\u{200b}.md", "stolen2", CANARY),
                    agent_member("agents/c\u{9b}2J.md", "stolen3", CANARY),
                    honest_member(),
                ];
                expect_taken(stage, &gzip_archive(&members)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-other-letters",
        "has an agent whose name is no text",
        "a path is used as it is shown (INV-143)",
        "its name is not UTF-8",
        false,
        |stage| {
            Box::pin(async move {
                let text = super::stage::agent_file("stolen", CANARY);
                let named = build_member(b"agents/a\xff.md", FILE, text.as_bytes());
                expect_taken(stage, &gzip_archive(&[named, honest_member()])?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-same-path",
        "has one path three times, twice in other letters",
        "each path is taken once (INV-143)",
        "another file has this path too",
        false,
        |stage| {
            Box::pin(async move {
                let again = |path| agent_member(path, "stolen", CANARY);
                let members = [
                    honest_member(),
                    again("agents/guest.md"),
                    again("Agents/GUEST.md"),
                    again("./agents/Guest.md"),
                ];
                expect_taken(stage, &gzip_archive(&members)?).await
            })
        },
    ),
    attack_row(
        "libraries-archive-fifo",
        "is a FIFO that is called like an archive",
        "regular files alone, opened without waiting (INV-141)",
        "it is no directory, git repository or",
        false,
        |stage| {
            Box::pin(async move {
                let path = stage.path("pack.tar.gz");
                mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                    .map_err(std::io::Error::from)?;
                stage.expect_refused(&path).await
            })
        },
    ),
];

/// An archive member with an honest agent, the only file that may be installed from these archives.
fn honest_member() -> Vec<u8> {
    agent_member("agents/guest.md", "guest", "Read.")
}

/// Makes 3 attacks, for example `libraries-archive-many-entries`: the attacker has 150,000 empty files.
async fn expect_refused(stage: &LibraryStage, archive: &[u8]) -> Stopped {
    stage.expect_refused(&stage.write_file("pack.tar.gz", archive)?).await
}

/// Makes 3 attacks, for example `libraries-archive-pax-size`: the attacker has a size in its extended header
/// behind which an agent hides from other programs.
async fn expect_taken(stage: &LibraryStage, archive: &[u8]) -> Stopped {
    stage.expect_installed(&stage.write_file("pack.tar.gz", archive)?, &["guest"]).await
}

/// Attack by a header that announces 250 MiB of data about the next member, and sends them.
async fn announce_long_header(stage: &LibraryStage, kind: u8) -> Stopped {
    const PART: usize = 10 << 20;
    let head = gzip_part(&build_header(b"@", kind, 25 * PART as u64, ""))?;
    let filled = gzip_part(&vec![b'a'; PART])?;
    expect_refused(stage, &[head, filled.repeat(25), gzip_archive(&[honest_member()])?].concat())
        .await
}
