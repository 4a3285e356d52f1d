//! The audit log of an operator who does each thing once.
#![cfg(target_os = "linux")]

use serde_json::Value;

use crate::kit::World;
use crate::kit::server::{Server, key};

const SCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: tidy
    turns:
      - calls:
          - {name: file_write, arguments: {path: /workspace/new.md, content: "new\n"}}
          - {name: file_read, arguments: {path: /elsewhere/a.txt}}
      - say: tidied
"#;

const TIDY: &str =
    "---\nname: tidy\ndescription: Tidies.\ntools: [file_read, file_write]\n---\nYou tidy.\n";

/// A tool that may be added.
const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/probe.wasm");

/// The rows of a tenant, the oldest first, without the ids that differ from run to run.
fn rows(server: &Server, key: &str) -> String {
    let (status, log) = server.get("/v1/audit?limit=200", Some(key));
    assert_eq!(status, 200, "{log}");
    let log: Value = serde_json::from_str(&log).unwrap();
    let rows = log["entries"].as_array().unwrap().iter().rev();
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        format!("{} {} {} {}\n", text("actor"), text("action"), text("object"), row["detail"])
    };
    rows.map(row).collect()
}

/// Of commands; those of callers of a server are held by `golden_lines_of_the_gate_are_as_reviewed`. A new
/// action is added by `INSTA_UPDATE=always cargo test golden`, once it is done here.
#[test]
fn golden_audit_rows_of_commands_are_as_reviewed() {
    let world = World::new();
    world.home_file("agents/tidy.md", TIDY);
    world.home_file("script.yaml", SCRIPT);
    world.home_file("belljar.toml", "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n");
    let done = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        world.run(&words).exits(0)
    };
    done(&format!("tools add {PROBE} --yes"));
    done("tools remove probe --yes");
    done("tenants add blue");
    done("tenants disable blue");
    done("tenants disable blue --enable");
    done("grant tidy --tool web_fetch --yes");
    done("revoke tidy --tool web_fetch --yes");
    for decide in ["apply --yes", "undo", "discard --yes"] {
        if decide != "undo" {
            done("run --agent tidy go");
        }
        done(decide);
    }
    done("sessions rm latest --yes");
    done("sessions rm --all --yes");
    let last = key(&world, "local", "admin");
    done(&format!("keys revoke {}", &last[3..19]));
    done("keys open-to-this-machine --yes");
    let blue = key(&world, "blue", "admin");
    let own = key(&world, "local", "admin");
    let server = Server::start(&world, &[]);
    let text = format!("# local\n{}\n# blue\n{}", rows(&server, &own), rows(&server, &blue));
    let ids = vec![
        (r"\d{8}T\d{9}Z-[0-9a-f]{13}", "[id]"),
        (r"\b[0-9a-f]{16}\b", "[key]"),
        (r"sha256:[0-9a-f]{64}", "[digest]"),
    ];
    belljar_kit::insta::with_settings!({ filters => ids }, {
        belljar_kit::golden!("audit", text);
    });
}
