//! Attacks by components with imports and exports that are not in the tools' contract.

use belljar_policy::DenyCode;
use serde_json::json;

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped};
use crate::attacks::not_described;
use crate::guests::{self, Guest};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    of_guest!(
        never_loaded,
        "component-unknown-import",
        "imports a shell of the host",
        "what the host does not know is not linked (INV-25)",
        "imports `evil:host/shell@1.0.0`, which the host does not offer",
        UNKNOWN_IMPORT
    ),
    of_guest!(
        never_loaded,
        "component-unknown-version-of-an-import",
        "imports an interface of the host in a version to come",
        "versions are compared (INV-25)",
        "imports `wasi:cli/exit@0.3.0`, which the host does not offer",
        UNKNOWN_VERSION
    ),
    of_guest!(
        never_loaded,
        "component-unknown-function-of-an-import",
        "imports a function that an interface of the host does not have",
        "only functions that are there are linked (INV-25)",
        "get-host-memory",
        UNKNOWN_FUNCTION
    ),
    of_guest!(
        never_loaded,
        "component-wrong-signature-of-an-import",
        "imports a function of the host with other parameters",
        "types are compared when it is linked (INV-25)",
        "wasi:cli/exit@0.2.0",
        WRONG_IMPORT
    ),
    of_guest!(
        never_loaded,
        "component-wrong-signature-of-an-export",
        "exports the contract's functions with other types",
        "types are compared before the first call (INV-21)",
        "`describe` has another type",
        WRONG_EXPORTS
    ),
    of_guest!(
        never_loaded,
        "component-another-world",
        "exports nothing that can be called",
        "exports are looked at before it is compiled (INV-22)",
        "it exports file, and neither `belljar:tool/tools` nor functions",
        NO_TOOL
    ),
    of_guest!(
        never_loaded,
        "component-empty-interface",
        "exports the contract's interface without the functions",
        "functions are looked for before the first call (INV-21)",
        "has no function `describe`",
        EMPTY_INTERFACE
    ),
    Attack {
        id: "component-interfaces-without-a-grant",
        kind: AttackKind::Component,
        tries: "calls the network, sockets and files of its imports, without any grant",
        stopped_by: "what is not granted is linked as a refusal (INV-25)",
        told: "denied",
        embedded: true,
        run: |arena| Box::pin(call_ungranted_imports(arena)),
    },
];

/// Checks that a guest is neither described nor loaded, so none of its code runs.
async fn never_loaded(arena: &Arena, guest: Guest) -> Stopped {
    let verdict = not_described(arena, guest).await?;
    match arena.sandbox().load_component(&arena.guest_wasm(guest)).await {
        Ok(_) => Err(Escape::new("it was loaded")),
        Err(error) if error.to_string() == verdict.told => Ok(verdict),
        Err(error) => Err(Escape::new(format!("two reasons: `{}` and `{error}`", verdict.told))),
    }
}

/// Attack `component-interfaces-without-a-grant`: the attacker calls the network, sockets and files of its
/// imports, without any grant.
async fn call_ungranted_imports(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::PROBE]).no_mounts().open().await?;
    let at = arena.forbidden_address();
    let request =
        json!({ "method": "GET", "authority": at.to_string(), "scheme": "http", "path": "/" });
    let steps = jar
        .run_steps(json!([
            { "do": "preopens" },
            { "do": "tcp-connect", "port": at.port() },
            { "do": "tcp-listen", "port": 0 },
            { "do": "udp", "port": 0 },
        ]))
        .await?;
    if steps.step_value(0)? != &json!([]) {
        return Err(Escape::new(format!("there are mounts: {:?}", steps.step_value(0)?)));
    }
    let denials = &steps.call.result.receipt.denials;
    if denials.len() < 3 {
        return Err(Escape::new(format!("not every refusal is in the receipt: {denials:?}")));
    }
    // Today a refused call with a resource as its argument ends the whole tool call, so each is made in a
    // separate call.
    let resolve = json!({ "do": "resolve", "name": "localhost" });
    for step in [resolve, json!({ "do": "http", "request": request })] {
        jar.try_steps(json!([step])).await.check_denied(DenyCode::InterfaceNotGranted)?;
    }
    steps.all_refused(1, &["denied"])
}
