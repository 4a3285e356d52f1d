//! The conformance tools in Rust. `tests/conformance/README.md` says what each has to do.

use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use belljar_guest::http::Request;
use belljar_guest::prelude::*;
use belljar_guest::{Call, Hints, config, peers, secret};
use serde_json::json;

macro_rules! arguments {
    ($($name:ident { $($(#[$attribute:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name { $($(#[$attribute])* $field: $kind),* }
    )*};
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Color {
    Red,
    Green,
    Blue,
}

arguments! {
    Types {
        /// Any text.
        text: String,
        /// A whole number.
        count: i64,
        /// A number.
        ratio: f64,
        /// Yes or no.
        flag: bool,
        /// Some words.
        words: Vec<String>,
        /// One of three.
        color: Color,
        /// May be left out.
        note: Option<String>,
    }
    Nothing {}
    Text { text: String }
    Path { path: String }
    Bytes { bytes: usize }
    Failure { kind: String, message: String }
    Written { path: String, text: String }
    Renamed { source: String, target: String }
    Sent { method: String, url: String, body: Option<String> }
    Key { key: String }
    Name { name: String }
    Logged { level: String, message: String, times: u32 }
    Steps { steps: u64 }
    Printed { out: String, err: String }
    Called { tool: String, arguments: String }
    CalledMany { tools: Vec<String>, arguments: Vec<String> }
}

fn conf_types(args: Types) -> ToolResult {
    let Types { text, count, ratio, flag, words, color, note } = args;
    Output::json(&json!({
        "text": text, "count": count, "ratio": ratio, "flag": flag, "words": words, "color": color, "note": note,
    }))
}

fn conf_echo(args: Text) -> ToolResult {
    Ok(Output::text(args.text))
}

fn conf_error(args: Failure) -> ToolResult {
    Err(match args.kind.as_str() {
        "invalid-arguments" => ToolError::InvalidArguments(args.message),
        "not-found" => ToolError::NotFound(args.message),
        "denied" => ToolError::Denied(args.message),
        "too-large" => ToolError::TooLarge(args.message),
        _ => ToolError::Failed(args.message),
    })
}

fn conf_output(args: Bytes) -> ToolResult {
    Ok(Output::text("x".repeat(args.bytes)))
}

fn conf_parts(_: Nothing) -> ToolResult {
    let bytes = (0..=255).collect();
    let file = Output::attachment("three.bin", "application/octet-stream", bytes);
    Ok(Output::text("one").and(Output::json(&json!({ "two": 2 }))?).and(file))
}

fn conf_read(args: Path) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    Ok(Output::text(fs::read_to_string(&path).at(&args.path)?))
}

fn conf_write(args: Written) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    fs::write(&path, args.text).at(&args.path)?;
    Ok(Output::text("written"))
}

fn conf_append(args: Written) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).at(&args.path)?;
    file.write_all(args.text.as_bytes()).at(&args.path)?;
    Ok(Output::text("appended"))
}

fn conf_list(args: Path) -> ToolResult {
    let path = WorkspacePath::parse(&args.path)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).at(&args.path)? {
        names.push(entry.at(&args.path)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Output::json(&names)
}

fn conf_mkdir(args: Path) -> ToolResult {
    fs::create_dir(WorkspacePath::parse(&args.path)?).at(&args.path)?;
    Ok(Output::text("made"))
}

fn conf_rename(args: Renamed) -> ToolResult {
    let target = WorkspacePath::parse(&args.target)?;
    fs::rename(WorkspacePath::parse(&args.source)?, target).at(&args.source)?;
    Ok(Output::text("renamed"))
}

fn conf_remove(args: Path) -> ToolResult {
    fs::remove_file(WorkspacePath::parse(&args.path)?).at(&args.path)?;
    Ok(Output::text("removed"))
}

fn conf_http(args: Sent) -> ToolResult {
    let request = Request::new(args.method, args.url);
    let request = match args.body {
        Some(body) => request.body(body),
        None => request,
    };
    let answer = request.send()?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Output::json(&json!({ "status": answer.status, "body": body }))
}

fn conf_config(args: Key) -> ToolResult {
    Output::json(&json!({ "value": config::get(&args.key)? }))
}

fn conf_secret(args: Name) -> ToolResult {
    Output::json(&json!({ "exists": secret::exists(&args.name)? }))
}

fn conf_log(args: Logged) -> ToolResult {
    for _ in 0..args.times {
        match args.level.as_str() {
            "trace" => log::trace(&args.message),
            "debug" => log::debug(&args.message),
            "info" => log::info(&args.message),
            "warn" => log::warn(&args.message),
            _ => log::error(&args.message),
        }
    }
    Ok(Output::text("logged"))
}

fn conf_progress(args: Steps) -> ToolResult {
    for step in 1..=args.steps {
        progress::report(step, Some(args.steps), &format!("step {step}"));
    }
    Ok(Output::text("reported"))
}

fn conf_clock(_: Nothing) -> ToolResult {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let begun = Instant::now();
    let elapsed = begun.elapsed().as_nanos() as u64;
    Output::json(&json!({ "wall_ms": wall.as_millis() as u64, "elapsed_ns": elapsed }))
}

fn conf_random(args: Bytes) -> ToolResult {
    let bytes = wasip2::random::random::get_random_bytes(args.bytes as u64);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Output::json(&json!({ "hex": hex }))
}

fn conf_environment(_: Nothing) -> ToolResult {
    Output::json(&json!({ "variables": std::env::vars_os().count() }))
}

fn conf_print(args: Printed) -> ToolResult {
    println!("{}", args.out);
    eprintln!("{}", args.err);
    Ok(Output::text("printed"))
}

fn conf_count(_: Nothing) -> ToolResult {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    Output::json(&json!({ "count": CALLS.fetch_add(1, Ordering::Relaxed) + 1 }))
}

fn conf_trap(_: Nothing) -> ToolResult {
    panic!("as it was asked to")
}

fn conf_loop(_: Nothing) -> ToolResult {
    loop {
        std::hint::black_box(());
    }
}

fn conf_memory(_: Nothing) -> ToolResult {
    let mut taken = Vec::new();
    loop {
        taken.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

fn conf_peers(_: Nothing) -> ToolResult {
    let mut listed = Vec::new();
    for peer in peers::list() {
        let schema: serde_json::Value = serde_json::from_str(&peer.input_schema)
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        listed.push(json!({
            "name": peer.name, "description": peer.description, "schema": schema,
            "read_only": peer.hints.contains(Hints::READ_ONLY),
        }));
    }
    Output::json(&listed)
}

fn conf_call(args: Called) -> ToolResult {
    peers::call_text(&Call { tool: args.tool, arguments: args.arguments })
}

fn conf_call_many(args: CalledMany) -> ToolResult {
    let pairs = args.tools.into_iter().zip(args.arguments);
    let calls: Vec<Call> = pairs.map(|(tool, arguments)| Call { tool, arguments }).collect();
    let results = peers::call_many(&calls);
    let listed = results.iter().map(|result| match result {
        Ok(output) => json!({ "ok": output.text_parts() }),
        Err(error) => json!({ "error": kind(error) }),
    });
    Output::json(&listed.collect::<Vec<_>>())
}

fn kind(error: &ToolError) -> &'static str {
    match error {
        ToolError::InvalidArguments(_) => "invalid-arguments",
        ToolError::NotFound(_) => "not-found",
        ToolError::Denied(_) => "denied",
        ToolError::TooLarge(_) => "too-large",
        ToolError::Failed(_) => "failed",
    }
}

belljar_guest::tools! {
    conf_types(Types): "Answers its arguments, as JSON.", hints: read_only | idempotent;
    conf_echo(Text): "Answers the text.", hints: read_only | idempotent;
    conf_error(Failure): "Fails with an error of this kind.", hints: read_only;
    conf_output(Bytes): "Answers so many times `x`.", hints: read_only;
    conf_parts(Nothing): "Answers a text, JSON and a file.", hints: read_only;
    conf_read(Path): "Answers the content of a file.", hints: read_only;
    conf_write(Written): "Writes a file.";
    conf_append(Written): "Writes at the end of a file.";
    conf_list(Path): "Answers the names in a directory, sorted.", hints: read_only;
    conf_mkdir(Path): "Makes a directory.";
    conf_rename(Renamed): "Renames a file.";
    conf_remove(Path): "Removes a file.";
    conf_http(Sent): "Sends a request and answers its status and body.", hints: open_world;
    conf_config(Key): "Answers a setting.", hints: read_only;
    conf_secret(Name): "Answers whether a secret exists.", hints: read_only;
    conf_log(Logged): "Logs a message.", hints: read_only;
    conf_progress(Steps): "Reports progress.", hints: read_only;
    conf_clock(Nothing): "Answers the time, and how long a moment takes.", hints: read_only;
    conf_random(Bytes): "Answers random bytes.", hints: read_only;
    conf_environment(Nothing): "Answers how many environment variables there are.", hints: read_only;
    conf_print(Printed): "Writes to the standard streams.", hints: read_only;
    conf_count(Nothing): "Answers how often it was called in this store.", hints: read_only;
    conf_trap(Nothing): "Ends the instance.", hints: read_only;
    conf_loop(Nothing): "Never ends.", hints: read_only;
    conf_memory(Nothing): "Takes memory until there is none.", hints: read_only;
    conf_peers(Nothing): "Answers the other tools that can be called.", hints: read_only;
    conf_call(Called): "Calls another tool and answers what it answers.";
    conf_call_many(CalledMany): "Calls other tools at once.";
}
