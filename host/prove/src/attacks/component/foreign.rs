//! Attacks by components that were not written for belljar: functions and commands, which the host describes
//! and calls itself.

use belljar_policy::{DenyCode, Meter};
use belljar_sandbox::{CommandForm, OutputPart, ToolErrorKind, Wasm};
use serde_json::{Value, json};

use super::forge;
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::attacks::not_described;
use crate::guests::{self, Guest};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    of_guest!(
        not_described,
        "component-function-of-a-resource",
        "exports only functions that want a resource of its own",
        "what JSON cannot name is not offered (INV-220)",
        "holds a resource, which JSON cannot name",
        FN_RESOURCE
    ),
    of_guest!(
        not_described,
        "component-function-with-an-unfolding-type",
        "exports a function whose type is some hundred bytes and thousands of types when unfolded",
        "types are counted as often as they are used (INV-220)",
        "has over 500 types within each other",
        FN_UNFOLDING
    ),
    of_guest!(
        not_described,
        "component-function-with-cases-without-number",
        "exports a function each of whose values the host has to look for among hundreds of cases",
        "cases are counted as types are (INV-220)",
        "has over 500 types and cases",
        FN_MANY_CASES
    ),
    of_guest!(
        not_described,
        "component-function-with-a-deep-type",
        "exports a function whose parameter nests twenty deep",
        "a bound on the depth (INV-220)",
        "nests deeper than 16 levels",
        FN_DEEP
    ),
    of_guest!(
        not_described,
        "component-functions-without-number",
        "exports more functions than a model can choose among",
        "a bound on the tools of a component (INV-21)",
        "65 tools, and at most 64 are accepted",
        FN_MANY
    ),
    of_guest!(
        not_described,
        "component-contract-to-come",
        "exports the contract in a version that does not exist, to be called as plain functions",
        "names of belljar's own are the contract or nothing (INV-220)",
        "exports belljar:tool/tools@0.9.0",
        FN_CONTRACT_TO_COME
    ),
    of_guest!(
        loop_endlessly,
        "component-function-without-end",
        "exports a function that never returns",
        "fuel, as for every tool (INV-220)",
        "fuel",
        FN_LOOP
    ),
    of_guest!(
        amplify_result,
        "component-function-amplified-result",
        "gives 6 GB of strings that are all the same 64 KiB of its memory",
        "a bound on what one call hands over (INV-220)",
        "the host refused a call",
        FN_LONG_LIST
    ),
    of_guest!(
        expect_trap,
        "component-function-bad-text",
        "gives bytes as a string that are no UTF-8",
        "values are checked where they are lifted; the store is discarded (INV-220)",
        "is not valid UTF-8",
        FN_BAD_TEXT
    ),
    of_guest!(
        expect_trap,
        "component-function-wrong-case",
        "gives a case that its enum does not have",
        "values are checked where they are lifted; the store is discarded (INV-220)",
        "the host refused a call",
        FN_WRONG_CASE
    ),
    of_guest!(
        run_impostor,
        "component-function-like-a-built-in-tool",
        "exports a function that would be called `file_read`",
        "names of built-in tools are taken (INV-21)",
        "the name is taken",
        FN_IMPOSTOR
    ),
    of_guest!(
        count_calls,
        "component-command-that-remembers",
        "counts in its memory how often it was called",
        "each call of a command has a store of its own (INV-221)",
        "1",
        CMD_COUNTER
    ),
    of_guest!(
        loop_endlessly,
        "component-command-without-end",
        "is a command that never ends",
        "fuel, as for every tool (INV-222)",
        "fuel",
        CMD_LOOP
    ),
    of_guest!(
        flood_streams,
        "component-command-floods-its-streams",
        "writes 32 MiB that are six times as much as JSON",
        "streams and the answer are bounded, and what went is counted (INV-222)",
        "stdout_dropped",
        CMD_FLOOD
    ),
    of_guest!(
        forge_exit,
        "component-command-forges-its-end",
        "writes the words of a good end and fails",
        "the host's word stands first, in a part of its own (INV-222)",
        "{\"exit_code\":3}",
        CMD_FORGED
    ),
    of_guest!(
        look_around,
        "component-command-looks-around",
        "looks for variables, and for files above and outside its directory",
        "nothing of the host's comes through; paths are checked on every call (INV-221, INV-6)",
        "0nnn",
        CMD_PEEK
    ),
    of_guest!(
        write_other_name,
        "component-command-writes-through-its-other-name",
        "makes a file below `.`, the workspace's other name for commands",
        "it is the same mount with the same access (INV-221)",
        "n",
        CMD_WRITE
    ),
    of_guest!(
        pass_option,
        "component-command-given-an-option",
        "is called with an option in place of an argument, against the fixed line of its manifest",
        "an argument in a place of its own is no option (INV-223)",
        "would be an option",
        CMD_COUNTER
    ),
    Attack {
        id: "component-module-of-another-host",
        kind: AttackKind::Component,
        tries: "is a core module that imports a function of the host's choosing, to be adapted",
        stopped_by: "a module that is adapted imports preview 1 and nothing else (INV-225)",
        told: "it imports `env`",
        embedded: true,
        run: |arena| Box::pin(adapt_foreign_module(arena)),
    },
];

/// Checks that a command which never ends is stopped by fuel.
async fn loop_endlessly(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena
        .jar_builder(&[guest])
        .with_limits(|limits| limits.fuel = 1_000_000_000)
        .open()
        .await?;
    jar.call_guest(guest).await.check_exhausted(Meter::Fuel)
}

/// Checks that a call ends in a trap, and that the jar can be called again.
async fn expect_trap(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest, guests::PLAIN]).open().await?;
    jar.call_guest(guest).await.check_trapped("")?;
    let verdict = jar.call_guest(guest).await.check_trapped("");
    jar.call_guest(guests::PLAIN).await.check_completed()?;
    verdict
}

async fn amplify_result(arena: &Arena, guest: Guest) -> Stopped {
    expect_trap(arena, guest).await
}

async fn run_impostor(arena: &Arena, guest: Guest) -> Stopped {
    super::installed::impostor_of(arena, guest, 1).await
}

/// The text that a command has written to stdout.
fn stdout_text(parts: &[OutputPart]) -> Option<&str> {
    match parts {
        [OutputPart::Json(_), OutputPart::Text(text)] => Some(text),
        _ => None,
    }
}

/// Checks that each call of a command runs in a new store: its counter is always 1.
async fn count_calls(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    let mut verdict = Err(Escape::new("it was not called"));
    for _ in 0..3 {
        let call = jar.call_guest(guest).await;
        let alone =
            call.result.outcome.as_ref().is_ok_and(|it| stdout_text(&it.parts) == Some("1"));
        verdict = call.stopped_if(alone, "a store that nothing has run in");
        verdict.clone()?;
    }
    verdict
}

/// Checks that the output of a command is cut at its limit.
async fn flood_streams(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    let limit = jar.rights().limits().output_bytes;
    let call = jar.call_guest(guest).await;
    let output = call.result.outcome.as_ref().map_err(|why| Escape::new(why.to_string()))?;
    let bounded = output.size() <= limit && call.result.receipt.stdio_dropped > 0;
    let told = output.parts.first().map(|part| match part {
        OutputPart::Json(text) => text.chars().filter(|c| !c.is_control()).collect::<String>(),
        OutputPart::Text(_) | OutputPart::Attachment { .. } => String::new(),
    });
    call.stopped_if(bounded, "an answer within its limit")?;
    Ok(Verdict::with_words(told.unwrap_or_default()))
}

/// Checks that the exit code in the output is the real one, whatever the command prints.
async fn forge_exit(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    let call = jar.call_guest(guest).await;
    let output = call.result.outcome.as_ref().map_err(|why| Escape::new(why.to_string()))?;
    match output.parts.first() {
        Some(OutputPart::Json(text)) => {
            let head: Value = serde_json::from_str(text).unwrap_or_default();
            call.stopped_if(head == json!({ "exit_code": 3 }), "the code that it ended with")
        }
        _ => Err(Escape::new("the host's word is not the first")),
    }
}

/// Attack `component-command-looks-around`: the attacker looks for variables, and for files above and outside
/// its directory.
async fn look_around(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    let call = jar.call_guest(guest).await;
    let output = call.result.outcome.as_ref().map_err(|why| Escape::new(why.to_string()))?;
    let said = stdout_text(&output.parts).unwrap_or_default();
    call.stopped_if(said == "0nnn", "nothing that it was not given")
}

/// Attack `component-command-writes-through-its-other-name`: the attacker makes a file below `.`, the
/// workspace's other name for commands.
async fn write_other_name(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    let call = jar.call_guest(guest).await;
    call.check_denied(DenyCode::ReadOnly)?;
    let output = call.result.outcome.as_ref().map_err(|why| Escape::new(why.to_string()))?;
    call.stopped_if(stdout_text(&output.parts) == Some("n"), "no file")
}

/// Checks that an argument cannot become an option of the command.
async fn pass_option(arena: &Arena, guest: Guest) -> Stopped {
    let line = ["-safe".to_owned(), "{statement}".to_owned()];
    let form = CommandForm::default().with_line(&line, None).map_err(Escape::new)?;
    let jar = arena.jar_of(vec![guest.to_wasm().with_form(form)]).open().await?;
    let call = jar.call_tool(guest.name, json!({ "statement": "-unsafe" })).await;
    let verdict = call.tool_error(ToolErrorKind::InvalidArguments)?;
    jar.call_tool(guest.name, json!({ "statement": "select 1" })).await.check_completed()?;
    Ok(verdict)
}

/// Attack `component-module-of-another-host`: the attacker is a core module that imports a function of the
/// host's choosing, to be adapted.
async fn adapt_foreign_module(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    // A core module: (type (func)), (import "env" "exec" (func)), and an export `_start` of that import.
    let types = forge::build_section(1, &[1, 0x60, 0, 0]);
    let imports = forge::build_section(2, b"\x01\x03env\x04exec\0\0");
    let exports = forge::build_section(7, b"\x01\x06_start\0\0");
    let module = [forge::MODULE, &types, &imports, &exports].concat();
    if arena.sandbox().load_component(&Wasm::new(module.clone())).await.is_ok() {
        return Err(Escape::new("a core module was loaded"));
    }
    match arena.sandbox().adapt_module(&module).await {
        Ok(_) => Err(Escape::new("it was adapted")),
        Err(error) => Ok(Verdict::with_words(error.to_string())),
    }
}
