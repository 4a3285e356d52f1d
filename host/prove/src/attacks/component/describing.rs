//! Attacks by components whose description is false.

use std::collections::BTreeSet;

use belljar_policy::DenyCode;
use belljar_sandbox::{CallError, Wasm};

use super::forge;
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::attacks::not_described;
use crate::guests;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    of_guest!(
        not_described,
        "component-hidden-text-in-its-description",
        "turns its description around with a bidi override",
        "what a person would not see is refused (INV-21, INV-15)",
        "holds the hidden character U+202E",
        HIDDEN_TEXT
    ),
    of_guest!(
        not_described,
        "component-name-like-a-path",
        "is named `../../file_read`",
        "names are small letters, digits and `_` (INV-21)",
        "is not a tool name",
        NAME_LIKE_A_PATH
    ),
    of_guest!(
        not_described,
        "component-schema-of-no-object",
        "describes its arguments as a text",
        "schemas are checked (INV-21)",
        "its schema is not of an object",
        SCHEMA_OF_NO_OBJECT
    ),
    of_guest!(
        not_described,
        "component-deep-schema",
        "describes its arguments with 30,000 brackets within each other",
        "a bound on the depth, checked without recursion (INV-21)",
        "its schema is not JSON: it nests",
        DEEP_SCHEMA
    ),
    of_guest!(
        not_described,
        "component-long-description",
        "describes itself in 100,000 bytes, which every request would repeat",
        "a bound on the bytes of a description (INV-21)",
        "and at most 16384 are accepted",
        LONG_DESCRIPTION
    ),
    of_guest!(
        not_described,
        "component-many-tools",
        "offers a thousand tools",
        "a bound on the tools of a component (INV-21)",
        "1000 tools, and at most 64 are accepted",
        MANY_TOOLS
    ),
    of_guest!(
        not_described,
        "component-one-name-twice",
        "offers two tools of one name",
        "names are compared (INV-21)",
        "two tools are named `one_name_twice`",
        ONE_NAME_TWICE
    ),
    Attack {
        id: "component-pattern-in-its-schema",
        kind: AttackKind::Component,
        tries: "describes an argument with a pattern that takes terabytes to compile",
        stopped_by: "schemas are data: the host compiles no pattern of theirs (INV-21)",
        told: "harmless",
        embedded: true,
        run: |arena| Box::pin(describe_costly_pattern(arena)),
    },
    Attack {
        id: "component-false-hint",
        kind: AttackKind::Component,
        tries: "says that it only reads, and then writes",
        stopped_by: "hints give no right: the mount is read-only (INV-6)",
        told: "refused",
        embedded: true,
        run: |arena| Box::pin(false_hint(arena)),
    },
    Attack {
        id: "component-changes-its-description",
        kind: AttackKind::Component,
        tries: "answers `describe` with another name each time",
        stopped_by: "the first answer is kept by digest, and names no other tool (INV-21, INV-1)",
        told: "tool not allowed",
        embedded: true,
        run: |arena| Box::pin(change_name(arena)),
    },
];

/// Attack `component-pattern-in-its-schema`: the attacker describes an argument with a pattern that takes
/// terabytes to compile.
async fn describe_costly_pattern(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::PATTERN_IN_SCHEMA]).open().await?;
    let arguments = serde_json::json!({ "a": "a".repeat(100_000) });
    jar.call_tool(guests::PATTERN_IN_SCHEMA.name, arguments).await.check_completed()
}

/// Attack `component-false-hint`: the attacker says that it only reads, and then writes.
async fn false_hint(arena: &Arena) -> Stopped {
    let guest = guests::FALSE_HINT;
    let described =
        arena.sandbox().describe_tools(&arena.guest_wasm(guest)).await.map_err(anyhow::Error::from);
    if !described?.iter().all(|tool| tool.hints.read_only) {
        return Err(Escape::new("the guest does not even lie"));
    }
    let jar = arena.jar_builder(&[guest]).open().await?;
    jar.call_guest(guest).await.check_denied(DenyCode::ReadOnly)
}

/// Returns whether the guest [`guests::CHANGING`] states different names to new sandboxes. It chooses among
/// 26 letters, so 20 equal ones in a row do not occur by chance.
async fn is_changing(arena: &Arena) -> Result<bool, Escape> {
    let mut first = None;
    for _ in 0..20 {
        let own = arena.own_sandbox(None, arena.compiler()).map_err(anyhow::Error::from)?;
        let tools = own.describe_tools(&arena.guest_wasm(guests::CHANGING)).await;
        let tools = tools.map_err(anyhow::Error::from)?;
        let name = tools.first().map(|tool| tool.name.to_string());
        if *first.get_or_insert_with(|| name.clone()) != name {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Attack `component-changes-its-description`: the attacker answers `describe` with another name each time.
async fn change_name(arena: &Arena) -> Stopped {
    let guest = guests::CHANGING;
    if !is_changing(arena).await? {
        return Err(Escape::new("it says the same each time that it is asked anew"));
    }
    let (mut names, fresh) = (BTreeSet::new(), arena.path("home").join("cache"));
    for _ in 0..10 {
        let own = arena.own_sandbox(Some(fresh.clone()), arena.compiler());
        let own = own.map_err(anyhow::Error::from)?;
        for _ in 0..10 {
            let tools =
                own.describe_tools(&arena.guest_wasm(guest)).await.map_err(anyhow::Error::from)?;
            names.extend(tools.iter().map(|tool| tool.name.to_string()));
        }
    }
    if names.len() != 1 {
        return Err(Escape::new(format!("it is known under several names: {names:?}")));
    }
    let salt = forge::build_section(forge::CUSTOM, b"\x01x");
    let other = Wasm::new(forge::append_sections(&guest.unpack_bytes(), &[salt]));
    let jar = arena.jar_of(vec![other]).open().await?;
    let known: Vec<String> =
        jar.rights().offered_tools().map(|(name, _)| name.to_string()).collect();
    for letter in 'a'..='z' {
        let name = format!("changin{letter}");
        let result = jar.call_raw(&name, "{}").await;
        match (&result.outcome, known.contains(&name)) {
            (Ok(_), true) | (Err(CallError::Refused(DenyCode::ToolNotAllowed)), false) => {}
            (outcome, _) => return Err(Escape::new(format!("`{name}` gave {outcome:?}"))),
        }
    }
    Ok(Verdict::with_words(DenyCode::ToolNotAllowed.as_str()))
}
