//! Attacks on a tool's output.

use belljar_sandbox::OutputPart;
use serde_json::{Value, json};

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::{self, Guest};
use crate::jar::AttackCall;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "output-flood-on-stdout",
        kind: AttackKind::Output,
        tries: "writes 64 MB to stdout",
        stopped_by: "a bound on what is kept; the rest is counted (INV-17)",
        told: "ok",
        embedded: true,
        run: |arena| Box::pin(stdio_flood(arena, false)),
    },
    Attack {
        id: "output-flood-on-stderr",
        kind: AttackKind::Output,
        tries: "writes 64 MB to stderr",
        stopped_by: "a bound on what is kept; the rest is counted (INV-17)",
        told: "ok",
        embedded: true,
        run: |arena| Box::pin(stdio_flood(arena, true)),
    },
    Attack {
        id: "output-flood-of-log-lines",
        kind: AttackKind::Output,
        tries: "logs 100,000 lines",
        stopped_by: "a bound on the lines of a call; the rest is counted",
        told: "100000",
        embedded: true,
        run: |arena| Box::pin(lines_flood(arena, json!({ "do": "log", "text": "a line {n}" }))),
    },
    Attack {
        id: "output-flood-of-progress",
        kind: AttackKind::Output,
        tries: "reports its progress 100,000 times",
        stopped_by: "a bound on the reports of a call; the rest is counted",
        told: "100000",
        embedded: true,
        run: |arena| {
            let step = json!({ "do": "progress", "done": 1, "total": null, "text": "step {n}" });
            Box::pin(lines_flood(arena, step))
        },
    },
    Attack {
        id: "output-one-long-log-line",
        kind: AttackKind::Output,
        tries: "logs one line of 10 MB",
        stopped_by: "a bound on the bytes of a line",
        told: "ok",
        embedded: true,
        run: |arena| Box::pin(long_line(arena)),
    },
    Attack {
        id: "output-empty-writes",
        kind: AttackKind::Output,
        tries: "writes nothing to stdout a million times, each of which might be queued",
        stopped_by: "standard streams of the host's own, bounded and synchronous",
        told: "1000000",
        embedded: true,
        run: |arena| Box::pin(empty_writes(arena)),
    },
    Attack {
        id: "output-write-past-the-welcome",
        kind: AttackKind::Output,
        tries: "writes 10 MB to stdout at once, without asking how many bytes are welcome",
        stopped_by: "a bound on what is kept, and on the bytes of one host call",
        told: "ok",
        embedded: true,
        run: |arena| Box::pin(at_once(arena)),
    },
    Attack {
        id: "output-endless-zeroes",
        kind: AttackKind::Output,
        tries: "has the host write 16 EiB of zeroes to stdout",
        stopped_by: "more than was offered is a trap",
        told: "the tool crashed",
        embedded: true,
        run: |arena| {
            Box::pin(send_unwelcome_step(
                arena,
                json!({ "do": "zeroes", "held": 0, "len": u64::MAX }),
            ))
        },
    },
    Attack {
        id: "output-answer-of-a-gigabyte",
        kind: AttackKind::Output,
        tries: "claims that its answer is a gigabyte long",
        stopped_by: "lengths are checked against the guest's memory before anything is copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::LONG_ANSWER)),
    },
    Attack {
        id: "output-answer-past-the-limit",
        kind: AttackKind::Output,
        tries: "answers with 3 MB of text",
        stopped_by: "the limit on the output of a call",
        told: "the tool's output is not usable",
        embedded: true,
        run: |arena| {
            let steps = json!([{ "do": "answer-text", "text": "0123456789", "times": 300_000 }]);
            Box::pin(send_unusable_answer(arena, steps, ""))
        },
    },
    Attack {
        id: "output-one-memory-many-times",
        kind: AttackKind::Output,
        tries: "answers with a hundred parts that are all the same 3 MB of its memory",
        stopped_by: "a bound on the bytes that one answer may copy",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::REPEATED_PARTS)),
    },
    Attack {
        id: "output-a-hundred-thousand-parts",
        kind: AttackKind::Output,
        tries: "answers with 100,000 empty parts",
        stopped_by: "a bound on the parts of an answer",
        told: "the tool's output is not usable",
        embedded: true,
        run: |arena| {
            Box::pin(send_unusable_answer(
                arena,
                json!([{ "do": "answer-parts", "parts": 100_000 }]),
                "parts",
            ))
        },
    },
    Attack {
        id: "output-no-utf-8",
        kind: AttackKind::Output,
        tries: "answers with bytes that are no text",
        stopped_by: "text is checked where it is copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::BAD_TEXT)),
    },
    Attack {
        id: "output-unknown-kind-of-part",
        kind: AttackKind::Output,
        tries: "answers with a kind of part that the contract does not have",
        stopped_by: "variants are checked where they are copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(crash_guest(arena, guests::WRONG_VARIANT)),
    },
    Attack {
        id: "output-no-json",
        kind: AttackKind::Output,
        tries: "answers with half an object as JSON",
        stopped_by: "JSON parts are parsed before anybody gets them",
        told: "the tool's output is not usable",
        embedded: true,
        run: |arena| {
            Box::pin(send_unusable_answer(
                arena,
                json!([{ "do": "answer-json", "text": "{\"a\": " }]),
                "EOF",
            ))
        },
    },
    Attack {
        id: "output-deep-json",
        kind: AttackKind::Output,
        tries: "answers with JSON that nests 100,000 deep",
        stopped_by: "a bound on the depth, checked without recursion",
        told: "nests",
        embedded: true,
        run: |arena| {
            Box::pin(send_unusable_answer(
                arena,
                json!([{ "do": "answer-deep", "depth": 100_000 }]),
                "nests",
            ))
        },
    },
    Attack {
        id: "output-attachment-named-like-a-path",
        kind: AttackKind::Output,
        tries: "names its attachment `../../.ssh/authorized_keys`",
        stopped_by: "only the last part of a name is kept",
        told: "authorized_keys",
        embedded: true,
        run: |arena| Box::pin(send_attachment(arena, "../../.ssh/authorized_keys")),
    },
    Attack {
        id: "output-attachment-named-with-escapes",
        kind: AttackKind::Output,
        tries: "names its attachment with terminal escapes, a line break and a bidi override",
        stopped_by: "control characters are taken out of a name",
        told: "txt",
        embedded: true,
        run: |arena| {
            Box::pin(send_attachment(arena, "a\u{1b}[2J\r\nb\u{202e}\0/c\u{1b}]0;x\u{7}.txt"))
        },
    },
    Attack {
        id: "output-attachment-past-the-limit",
        kind: AttackKind::Output,
        tries: "attaches 3 MB",
        stopped_by: "attachments count as output",
        told: "the tool's output is not usable",
        embedded: true,
        run: |arena| {
            let step = json!({
                "do": "answer-attachment", "name": "a", "media": "text/plain", "bytes": 3_000_000,
            });
            Box::pin(send_unusable_answer(arena, json!([step]), ""))
        },
    },
    Attack {
        id: "output-error-of-a-megabyte",
        kind: AttackKind::Output,
        tries: "fails with 3 MB of words",
        stopped_by: "the words of an error are cut",
        told: "failed",
        embedded: true,
        run: |arena| Box::pin(long_error(arena)),
    },
];

/// Makes 2 attacks, for example `output-flood-on-stdout`: the attacker writes 64 MB to stdout.
async fn stdio_flood(arena: &Arena, stderr: bool) -> Stopped {
    const KEPT: u64 = 10_000;
    const BYTES: u64 = 64_000_000;
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_limits(|limits| limits.stdio_bytes = KEPT)
        .open()
        .await?;
    let steps = json!([{ "do": "stdio", "bytes": BYTES, "stderr": stderr }]);
    let call = jar.try_steps(steps).await;
    let receipt = &call.result.receipt;
    let kept = receipt.stdout.len() + receipt.stderr.len();
    let counted = kept as u64 + receipt.stdio_dropped >= BYTES;
    call.stopped_if(kept as u64 <= KEPT && counted, "stdio to be cut and counted")
}

/// Makes 2 attacks, for example `output-flood-of-log-lines`: the attacker logs 100,000 lines.
async fn lines_flood(arena: &Arena, step: Value) -> Stopped {
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_limits(|limits| limits.log_lines = 50)
        .open()
        .await?;
    let call = jar.try_steps(json!([{ "do": "repeat", "times": 100_000, "step": step }])).await;
    let receipt = &call.result.receipt;
    let bounded = receipt.logs.len() <= 50 && receipt.logs_dropped >= 99_900;
    call.stopped_if(bounded, "lines to be cut and counted")
}

/// Attack `output-one-long-log-line`: the attacker logs one line of 10 MB.
async fn long_line(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    let call = jar.try_steps(json!([{ "do": "log", "bytes": 10_000_000 }])).await;
    let longest = call.result.receipt.logs.iter().map(|line| line.message.len()).max();
    call.stopped_if(longest.is_some_and(|bytes| bytes < 100_000), "a line that is cut")
}

/// Attack `output-empty-writes`: the attacker writes nothing to stdout a million times, each of which might
/// be queued.
async fn empty_writes(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    let steps = json!([
        { "do": "hold-stdout" },
        { "do": "empty-writes", "held": 0, "times": 1_000_000 },
    ]);
    jar.try_steps(steps).await.check_completed()
}

/// Attack `output-write-past-the-welcome`: the attacker writes 10 MB to stdout at once, without asking how
/// many bytes are welcome.
async fn at_once(arena: &Arena) -> Stopped {
    const KEPT: usize = 10_000;
    let builder =
        arena.jar_builder(&[guests::PROBE]).with_limits(|limits| limits.stdio_bytes = KEPT as u64);
    let steps = json!([
        { "do": "hold-stdout" },
        { "do": "write-at-once", "held": 0, "len": 10_000_000 },
    ]);
    let call = builder.open().await?.try_steps(steps).await;
    let receipt = &call.result.receipt;
    let cut = receipt.stdout.len() <= KEPT && receipt.stdio_dropped >= 9_000_000;
    call.stopped_if(cut, "stdout to be cut and counted")
}

async fn send_unwelcome_step(arena: &Arena, step: Value) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    jar.try_steps(json!([{ "do": "hold-stdout" }, step])).await.check_trapped("")
}

/// Makes 4 attacks, for example `output-answer-of-a-gigabyte`: the attacker claims that its answer is a
/// gigabyte long.
async fn crash_guest(arena: &Arena, guest: Guest) -> Stopped {
    let jar = arena.jar_builder(&[guest]).open().await?;
    jar.call_guest(guest).await.check_trapped("")
}

/// Makes 2 attacks, for example `output-answer-past-the-limit`: the attacker answers with 3 MB of text.
async fn send_unusable_answer(arena: &Arena, steps: Value, why: &str) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    jar.try_steps(steps).await.check_bad_output(why)
}

/// Makes 2 attacks, for example `output-attachment-named-like-a-path`: the attacker names its attachment
/// `../../.ssh/authorized_keys`.
async fn send_attachment(arena: &Arena, name: &str) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    let step =
        json!({ "do": "answer-attachment", "name": name, "media": "text/plain", "bytes": 3 });
    let call = jar.try_steps(json!([step])).await;
    let Some(kept) = name_of(&call) else { return call.check_completed() };
    let bad = |c: char| c.is_control() || matches!(c, '/' | '\\' | '\u{202a}'..='\u{202e}');
    if kept.is_empty() || kept.starts_with('.') || kept.contains(bad) {
        return Err(Escape::new(format!("the name that is kept is {kept:?}")));
    }
    Ok(Verdict::with_words(kept))
}

/// The name of the attachment, if the output is exactly one attachment.
fn name_of(call: &AttackCall) -> Option<String> {
    match call.result.outcome.as_ref().ok()?.parts.as_slice() {
        [OutputPart::Attachment { name, .. }] => Some(name.clone()),
        _ => None,
    }
}

/// Attack `output-error-of-a-megabyte`: the attacker fails with 3 MB of words.
async fn long_error(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).open().await?;
    let text = "x".repeat(3_000_000);
    let step = json!({ "do": "answer-error", "kind": "failed", "text": text });
    let call = jar.try_steps(json!([step])).await;
    call.stopped_if(call.result.outcome.is_err() && call.told.len() < 100_000, "a short error")
}
