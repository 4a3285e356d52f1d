//! Links in the place of what belljar writes: each command refuses, leaves what they lead to alone, and
//! does its work once the link is gone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::kit::World;

/// A command, and the link that it would write through.
struct Row {
    args: &'static [&'static str],
    /// The link: below the home with `~/`, else below the workspace.
    link: &'static str,
    /// Files of the place that the link leads to; the place is moved to where the link was, once that is gone.
    holds: &'static [(&'static str, &'static str)],
    /// Whether the link leads to a file that is not there.
    dangles: bool,
    /// The exit code once the link is gone.
    then: i32,
}

const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/probe.wasm");

const DRAFT: &str = "---\nname: late\ndescription: d\n---\nBe brief.\n";

const THEIRS: &str = "---\nname: theirs\ndescription: d\ntools: Read\n---\nBe brief.\n";

const SAYS: &str = "transcript: 1\nagents:\n  - agent: scout\n    turns: [{say: Nothing.}]\n";

const ROW: Row = Row { args: &[], link: "", holds: &[], dangles: false, then: 0 };

const ROWS: &[Row] = &[
    Row {
        args: &["grant", "scout", "--host", "https://a.test", "--yes"],
        link: "~/belljar.toml",
        dangles: true,
        ..ROW
    },
    Row {
        args: &["drafts", "promote", "agents/late"],
        link: "~/drafts",
        holds: &[("agents/late.md", DRAFT)],
        ..ROW
    },
    Row { args: &["tools", "add", "WASM", "--yes"], link: "~/tools", ..ROW },
    Row { args: &["tools", "add", "WASM", "--yes"], link: "~/tools/probe", ..ROW },
    Row {
        args: &["tools", "remove", "probe", "--yes"],
        link: "~/tools/probe",
        holds: &[("tool.wasm", "x"), ("tool.toml", "manifest = 1\ndescription = \"d\"\n")],
        ..ROW
    },
    Row { args: &["agents", "add", "LIBRARY", "--yes"], link: "~/libraries", ..ROW },
    Row { args: &["mcp", "review", "far"], link: "~/mcp", then: 1, ..ROW },
    Row { args: &["mcp", "login", "far"], link: "~/mcp/tokens", then: 1, ..ROW },
    Row {
        args: &["mcp", "logout", "far"],
        link: "~/mcp/tokens",
        holds: &[("far.json", "{}")],
        ..ROW
    },
    Row {
        args: &["run", "--agent", "scout", "--transcript", "SCRIPT", "Look."],
        link: "~/sessions/store",
        ..ROW
    },
    Row {
        args: &["run", "--agent", "scout", "--transcript", "SCRIPT", "Look."],
        link: "~/sessions/files",
        ..ROW
    },
    Row {
        args: &["sessions", "rm", "--all", "--yes"],
        link: "~/sessions/store/belljar.overlays",
        holds: &[("local/20261128T000000000Z-0000000000000/0/held", "1 1")],
        ..ROW
    },
    Row { args: &["tenants", "add", "red"], link: "~/sessions/tenants", ..ROW },
    Row {
        args: &["keys", "create", "--tenant", "local", "--scope", "admin", "--name", "k"],
        link: "~/sessions/store",
        ..ROW
    },
    Row { args: &["tools", "new", "word_count", "--dir", "way/word_count"], link: "way", ..ROW },
    Row { args: &["backup", "way/all.tar.gz"], link: "way", ..ROW },
    Row {
        args: &["agents", "check", "--fix", "way/theirs.md"],
        link: "way",
        holds: &[("theirs.md", THEIRS)],
        ..ROW
    },
    Row {
        args: &["agents", "check", "--fix", "--in-place", "theirs.md"],
        link: "theirs.md",
        holds: &[("", THEIRS)],
        ..ROW
    },
    Row { args: &["man", "way/pages"], link: "way", ..ROW },
    Row { args: &["init", "--workspace", "."], link: ".belljar", ..ROW },
    Row {
        args: &["mcp", "config", "claude-code", "--write"],
        link: ".mcp.json",
        dangles: true,
        ..ROW
    },
];

/// All files below a directory, and what they say.
fn picture(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(picture(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn world() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    world.home_file("agents/scout.md", "---\nname: scout\ndescription: d\n---\nLook.\n");
    world.home_file("belljar.toml", "[mcp.far]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    let library = world.other("lib/theirs.md", THEIRS.as_bytes());
    world.other("tool/tool.toml", b"manifest = 1\ndescription = \"A probe.\"\n");
    let wasm = world.other("tool/probe.wasm", &fs::read(PROBE).unwrap());
    world.other("outside/kept.txt", b"kept");
    (world, wasm, library.parent().unwrap().to_path_buf())
}

/// INV-487.
#[test]
fn no_command_writes_through_a_link_that_it_did_not_make() {
    for row in ROWS {
        let (world, wasm, library) = world();
        let script = world.other("script.yaml", SAYS.as_bytes());
        let shown = format!("{:?} with `{}`", row.args, row.link);
        let link = match row.link.strip_prefix("~/") {
            Some(below) => world.home().join(below),
            None => world.workspace().join(row.link),
        };
        let outside = world.home().parent().unwrap().join("outside");
        for (below, text) in row.holds {
            let path = if below.is_empty() {
                outside.join("held")
            } else {
                outside.join("held").join(below)
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let target = match (row.holds.is_empty(), row.dangles) {
            (false, _) => outside.join("held"),
            (true, true) => outside.join("new"),
            (true, false) => outside.clone(),
        };
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let before = link.is_file().then(|| fs::read(&link).unwrap());
        if before.is_some() {
            fs::remove_file(&link).unwrap();
        }
        symlink(&target, &link).unwrap();
        let args: Vec<&str> = row
            .args
            .iter()
            .map(|arg| match *arg {
                "WASM" => wasm.to_str().unwrap(),
                "LIBRARY" => library.to_str().unwrap(),
                "SCRIPT" => script.to_str().unwrap(),
                arg => arg,
            })
            .collect();
        let was = picture(&outside);
        let done = world.run(&args);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_ne!(done.code, 0, "{shown}: {said}");
        assert!(said.contains("is a link") || said.contains("No such file"), "{shown}: {said}");
        assert!(!said.contains("panicked"), "{shown}: {said}");
        assert_eq!(picture(&outside), was, "{shown}: {said}");
        assert!(link.is_symlink(), "{shown}: it is still there");

        // The neighbour: the same command where no link is.
        fs::remove_file(&link).unwrap();
        if let Some(before) = before {
            fs::write(&link, before).unwrap();
        }
        if !row.holds.is_empty() {
            fs::rename(&target, &link).unwrap();
        } else if row.link == "way" {
            fs::create_dir(&link).unwrap();
        }
        let done = world.run(&args);
        assert_eq!(done.code, row.then, "{shown}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn what_a_person_keeps_elsewhere_by_hand_is_written_where_it_lies() {
    let (world, ..) = world();
    let dots = world.home().parent().unwrap().join("dots");
    fs::create_dir(&dots).unwrap();
    for name in ["agents", "belljar.toml"] {
        fs::rename(world.home().join(name), dots.join(name)).unwrap();
        symlink(dots.join(name), world.home().join(name)).unwrap();
    }
    world.run(&["grant", "scout", "--host", "https://a.test", "--yes"]).exits(0);
    assert!(fs::read_to_string(dots.join("belljar.toml")).unwrap().contains("https://a.test"));
    world.run(&["revoke", "scout", "--host", "https://a.test", "--yes"]).exits(0);
    assert!(!fs::read_to_string(dots.join("belljar.toml")).unwrap().contains("https://a.test"));
    world.home_file("drafts/agents/late.md", DRAFT);
    world.run(&["drafts", "promote", "agents/late"]).exits(0);
    assert_eq!(fs::read_to_string(dots.join("agents/late.md")).unwrap(), DRAFT);
    world.run(&["init", "--no-model"]).exits(0).says("kept ");
    assert!(
        world.home().join("belljar.toml").is_symlink()
            && dots.join("agents/general-purpose.md").is_file()
    );
}

/// INV-487: a tenant's folder is made by belljar, and by hand is what is in it.
#[test]
fn a_tenants_home_to_which_a_link_leads_is_not_written() {
    let (world, ..) = world();
    world.run(&["tenants", "add", "red"]).exits(0);
    world.run(&["tenants", "add", "blue"]).exits(0);
    let grant = |tenant: &str| {
        world.run(&[
            "grant",
            "general-purpose",
            "--tenant",
            tenant,
            "--host",
            "https://a.test",
            "--yes",
        ])
    };
    let tenants = world.home().join("sessions/tenants");
    let beyond = world.home().with_file_name("beyond");
    fs::create_dir(&beyond).unwrap();
    let homes: Vec<PathBuf> =
        fs::read_dir(&tenants).unwrap().map(|it| it.unwrap().path()).collect();
    // The folder of one tenant leads elsewhere, and the home of the other.
    fs::rename(&homes[0], beyond.join("folder")).unwrap();
    symlink(beyond.join("folder"), &homes[0]).unwrap();
    fs::rename(homes[1].join("home"), beyond.join("home")).unwrap();
    symlink(beyond.join("home"), homes[1].join("home")).unwrap();
    let was = picture(&beyond);
    for tenant in ["red", "blue"] {
        let done = grant(tenant);
        assert_ne!(done.code, 0, "{tenant}: {}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains("is a link"), "{tenant}: {}", done.stderr);
    }
    assert_eq!(picture(&beyond), was);
    for (at, from) in [(homes[0].clone(), "folder"), (homes[1].join("home"), "home")] {
        fs::remove_file(&at).unwrap();
        fs::rename(beyond.join(from), at).unwrap();
    }
    grant("red").exits(0);
    grant("blue").exits(0);
}

/// A backup goes into no home in which something lies, a link included.
#[test]
fn a_restore_puts_nothing_where_a_link_leads() {
    let (world, ..) = world();
    let file = world.home().with_file_name("all.tar.gz");
    world.run(&["backup", file.to_str().unwrap()]).exits(0);
    let (home, outside) = (world.home(), world.home().with_file_name("beyond"));
    fs::rename(&home, home.with_file_name("old")).unwrap();
    fs::create_dir(&home).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, home.join("agents")).unwrap();
    let done = world.run(&["restore", file.to_str().unwrap()]);
    assert_ne!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(home.join("agents")).unwrap();
    world.run(&["restore", file.to_str().unwrap()]).exits(0);
    assert!(home.join("belljar.toml").is_file());
}
