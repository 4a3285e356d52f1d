//! `tool.toml`.

use crate::show::manifest as shown;

#[test]
fn every_key_is_read() {
    check!("manifest = 1
description = \"Fetches pages\"
mounts = \"read-write\"
hosts = [\"https://*\"]
secrets = [\"brave\"]
config = [\"provider\", \"url\"]
peers = [\"file_read\"]
resume = \"replay\"
[limits]
call_timeout_seconds = 30
", @r#"ToolManifest { description: "Fetches pages", ask: ToolAsk { mounts: Some(ReadWrite), hosts: [HostRule { scheme: Some(Https), pattern: Any, port: Default, text: "https://*" }], secrets: {"brave"}, limits: LimitsRequest { steps: None, timeout_seconds: None, prefill_timeout_seconds: None, tokens: None, fuel_per_call: None, fuel: None, call_timeout_seconds: Some(30), memory_bytes: None, output_bytes: None, output_total_bytes: None, write_bytes: None, read_bytes: None, egress_bytes: None, ingress_bytes: None, connections: None, open_files: None, log_lines: None, stdio_bytes: None, call_depth: None, nested_calls: None }, peers: Only({"file_read"}), keeps_state: false, time_argument: None }, config_keys: ["provider", "url"], resume: Replay, command: None }"#);
}

#[test]
fn an_absent_key_asks_for_nothing() {
    check!("manifest = 1", @r#"ToolManifest { description: "", ask: ToolAsk { mounts: None, hosts: [], secrets: {}, limits: LimitsRequest { steps: None, timeout_seconds: None, prefill_timeout_seconds: None, tokens: None, fuel_per_call: None, fuel: None, call_timeout_seconds: None, memory_bytes: None, output_bytes: None, output_total_bytes: None, write_bytes: None, read_bytes: None, egress_bytes: None, ingress_bytes: None, connections: None, open_files: None, log_lines: None, stdio_bytes: None, call_depth: None, nested_calls: None }, peers: None, keeps_state: false, time_argument: None }, config_keys: [], resume: Never, command: None }"#);
}

#[test]
fn each_mistake_is_named_with_its_line() {
    check!("manifets = 1
mounts = \"all\"
hosts = [\"example.org\"]
secrets = [\"a b\"]
config = \"provider\"
path = \"/etc\"
peers = \"all\"
resume = \"always\"
[limits]
memory = 1
fuel = -1
", @r#"
tool.toml:1: error: `manifest` is missing
  hint: write `manifest = 1`
tool.toml:1:1: error: `manifets` is not a key of a tool manifest
  hint: did you mean `manifest`?
tool.toml:2:10: error: `mounts` is neither `read` nor `read-write`
  hint: write `read` or `read-write`, or remove the line for no files at all
tool.toml:3:10: error: `example.org` is not a host rule: the scheme is missing; write `https://example.org`, `https://*.example.org`, `https://*`, `http://10.0.0.0/8:8080`
tool.toml:4:12: error: `a b` is not a secret name: use a letter, then letters, digits, `_` or `-`, at most 64 in all
tool.toml:5:10: error: `config` is a string, not a list of at most 1000
  hint: write it in brackets: `config = ["..."]`
tool.toml:6:1: error: `path` is not a key of a tool manifest
  hint: the keys are `manifest`, `description`, `mounts`, `hosts`, `secrets`, `config`, `limits`, `peers`, `resume`, `keeps_state`, `time_argument`, `command`
tool.toml:7:9: error: `peers` is a string, not `true` or `false`, or a list of names of tools
tool.toml:8:10: error: `resume` must be `never` or `replay`
tool.toml:10:1: error: `memory` is not a key of `limits`
  hint: did you mean `memory_bytes`?
tool.toml:11:8: error: `fuel` must be a whole number, 0 or more
"#);
    check!("manifest = 2", @"tool.toml:1: error: `manifest` is 2; this belljar reads version 1");
    check!("manifest = 1\nmanifest = 1", @"tool.toml:2:1: error: not valid TOML: duplicate key");
}
