//! `belljar:tool/peers`, with which a guest calls other tools. The jar's owner makes the calls, through
//! [`PeerPort`](crate::PeerPort); their bounds, fuel and clock are managed here.

use belljar_policy::{DenyCode, Meter};
use belljar_received::json::mend_owned;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::component::bindings::belljar::tool::{log, progress};
use crate::component::bindings::exports::belljar::tool::tools as wit;
use crate::component::contract::{VERSIONS, WITH_PEERS};
use crate::jar::output::{OutputPart, ToolErrorKind, ToolOutput};
use crate::jar::peers::{NestedScope, PeerCall, PeerError, PeerReach, PeerResult, PeerTool};
use crate::jar::state::Guest;
use crate::receipt::Denial;

/// The most calls of one `call-many`: as many as a model makes in one step.
const MAX_AT_ONCE: usize = 64;

/// A guest keeps one part in 16 of its fuel when it makes nested calls, so that it can report their results.
const RESERVE: u64 = 16;

const PEERS: &str = "belljar:tool/peers";

type Told = Result<wit::Output, wit::ToolError>;

/// Links the contract's own interfaces: `log` and `progress` in every version, `types` and `peers` in the
/// one that has them.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    for version in VERSIONS {
        let mut instance = linker.instance(&format!("belljar:tool/log@{version}"))?;
        instance.func_wrap("log", |mut cx: StoreContextMut<'_, Guest>, (level, message)| {
            log::Host::log(&mut cx.data_mut(), level, message)
        })?;
        let mut instance = linker.instance(&format!("belljar:tool/progress@{version}"))?;
        instance.func_wrap(
            "report",
            |mut cx: StoreContextMut<'_, Guest>, (done, total, message)| {
                progress::Host::report(&mut cx.data_mut(), done, total, message)
            },
        )?;
    }
    // This interface has types only.
    linker.instance(&format!("belljar:tool/types@{WITH_PEERS}"))?;
    let mut peers = linker.instance(&format!("{PEERS}@{WITH_PEERS}"))?;
    peers.func_wrap("list", |mut cx: StoreContextMut<'_, Guest>, (): ()| {
        Ok((list_peers(&mut cx)?,))
    })?;
    peers.func_wrap_async(
        "call",
        |mut cx: StoreContextMut<'_, Guest>, (call,): (wit::Call,)| {
            Box::new(async move {
                let told = call_peers(&mut cx, vec![call]).await?.pop();
                Ok((
                    told.unwrap_or_else(|| failed_result(ToolErrorKind::Failed, "the host failed")),
                ))
            })
        },
    )?;
    peers.func_wrap_async(
        "call-many",
        |mut cx: StoreContextMut<'_, Guest>, (many,): (Vec<wit::Call>,)| {
            Box::new(async move { Ok((call_peers(&mut cx, many).await?,)) })
        },
    )
}

/// INV-230: links refusals in place of `peers`, for a store without that grant.
pub(crate) fn deny_peers(linker: &mut Linker<Guest>, import: &str) -> wasmtime::Result<()> {
    let mut peers = linker.instance(import)?;
    peers.func_wrap("list", |mut cx: StoreContextMut<'_, Guest>, (): ()| {
        cx.data_mut().record.host_call();
        Ok((Vec::<wit::Definition>::new(),))
    })?;
    peers.func_wrap("call", |mut cx: StoreContextMut<'_, Guest>, (_,): (wit::Call,)| {
        Ok((refuse_peer(&mut cx),))
    })?;
    peers.func_wrap(
        "call-many",
        |mut cx: StoreContextMut<'_, Guest>, (many,): (Vec<wit::Call>,)| {
            Ok((nobody_many(&mut cx, many.len())?,))
        },
    )
}

/// INV-257: returns the list of callable tools, and bills each byte as fuel, because a guest may ask for it
/// again and again.
fn list_peers(cx: &mut StoreContextMut<'_, Guest>) -> wasmtime::Result<Vec<wit::Definition>> {
    let guest = cx.data_mut();
    guest.record.host_call();
    let PeerReach::Open(peers, nest) = &guest.peers else { return Ok(Vec::new()) };
    let all = peers.list_tools().into_iter().filter(|peer| nest.is_shown(&peer.tool));
    let all: Vec<_> = all.map(to_wit_definition).collect();
    let bytes = all.iter().map(|it| it.name.len() + it.description.len() + it.input_schema.len());
    bill_fuel(cx, bytes.sum())?;
    Ok(all)
}

/// Makes nested calls: checks their number, stops the clock of the outer call, passes them to the jar's
/// owner, and subtracts their fuel from the outer call's.
async fn call_peers(
    cx: &mut StoreContextMut<'_, Guest>,
    many: Vec<wit::Call>,
) -> wasmtime::Result<Vec<Told>> {
    let guest = cx.data_mut();
    let (peers, nest) = match guest.peers.clone() {
        PeerReach::Nobody => return nobody_many(cx, many.len()),
        PeerReach::TooDeep(most) => {
            let what = format!("calls may not be nested deeper than {most} levels");
            noted_refusals(many.len())
                .for_each(|_| record_refusal(cx, DenyCode::LimitReached, &what));
            return the_same(cx, many.len(), ToolErrorKind::Denied, &what);
        }
        PeerReach::Open(peers, nest) => (peers, nest),
    };
    many.iter().for_each(|_| guest.record.host_call());
    if many.is_empty() {
        return Ok(Vec::new());
    }
    if many.len() > MAX_AT_ONCE {
        let text = format!("{} calls at once, and at most {MAX_AT_ONCE} are made", many.len());
        return the_same(cx, many.len(), ToolErrorKind::TooLarge, &text);
    }
    if let Err(most) = nest.reserve_calls(many.len() as u64) {
        let text = format!("too many calls: at most {most} are made below one call of the model");
        return the_same(cx, many.len(), ToolErrorKind::Failed, &text);
    }
    let standing = guest.standstill.stop_clock();
    let left = cx.get_fuel()?;
    let slice = nest.slice_fuel(left - left / RESERVE);
    let within = NestedScope { nest, slice: slice.clone() };
    let made: Vec<_> = many
        .into_iter()
        .map(|call| PeerCall { tool: call.tool, arguments: mend_owned(call.arguments) })
        .collect();
    let count = made.len();
    let making: BoxFuture<'static, Vec<PeerResult>> = peers.call_tools(made, within);
    let mut told: Vec<Told> = making.map(|all| all.into_iter().map(to_wit_result).collect()).await;
    told.resize_with(count, || failed_result(ToolErrorKind::Failed, "the host failed"));
    drop(standing);
    // INV-231: the fuel of the nested calls counts against this call, and against every call around it.
    let used = slice.spent_amount(Meter::Fuel).min(left);
    cx.set_fuel(left - used)?;
    cx.data_mut().nested_fuel += used;
    Ok(told)
}

/// Refuses a nested call, because there is no grant or no provider, and records that in the receipt.
fn refuse_peer(cx: &mut StoreContextMut<'_, Guest>) -> Told {
    let facts = "this tool was not granted any other tool, or nobody provides them here";
    record_refusal(cx, DenyCode::InterfaceNotGranted, facts);
    failed_result(ToolErrorKind::Denied, &DenyCode::InterfaceNotGranted.to_string())
}

fn nobody_many(cx: &mut StoreContextMut<'_, Guest>, count: usize) -> wasmtime::Result<Vec<Told>> {
    noted_refusals(count).for_each(|_| drop(refuse_peer(cx)));
    the_same(cx, count, ToolErrorKind::Denied, &DenyCode::InterfaceNotGranted.to_string())
}

/// INV-257: how many refusals of one `call-many` are recorded in the log and the receipt, because a guest
/// may ask for hundreds of thousands of calls.
fn noted_refusals(count: usize) -> std::ops::Range<usize> {
    0..count.min(MAX_AT_ONCE)
}

/// INV-257: returns the same error for each of `count` refused calls, and bills each byte as fuel.
fn the_same(
    cx: &mut StoreContextMut<'_, Guest>,
    count: usize,
    kind: ToolErrorKind,
    text: &str,
) -> wasmtime::Result<Vec<Told>> {
    bill_fuel(cx, count.saturating_mul(text.len()))?;
    Ok((0..count).map(|_| failed_result(kind, text)).collect())
}

/// Bills one unit of fuel for each byte. A guest with less fuel than that ends at its next instruction.
fn bill_fuel(cx: &mut StoreContextMut<'_, Guest>, bytes: usize) -> wasmtime::Result<()> {
    let left = cx.get_fuel()?.saturating_sub(bytes as u64);
    cx.set_fuel(left)
}

fn record_refusal(cx: &mut StoreContextMut<'_, Guest>, code: DenyCode, facts: &str) {
    let record = &cx.data_mut().record;
    record.host_call();
    record.add_denial(Denial::new(code, format!("{PEERS}#call"), facts));
}

fn failed_result(kind: ToolErrorKind, text: &str) -> Told {
    to_wit_result(Err(PeerError { kind, message: text.to_owned() }))
}

fn to_wit_result(result: PeerResult) -> Told {
    result.map(to_wit_output).map_err(|PeerError { kind, message }| match kind {
        ToolErrorKind::InvalidArguments => wit::ToolError::InvalidArguments(message),
        ToolErrorKind::NotFound => wit::ToolError::NotFound(message),
        ToolErrorKind::Denied => wit::ToolError::Denied(message),
        ToolErrorKind::TooLarge => wit::ToolError::TooLarge(message),
        ToolErrorKind::Failed => wit::ToolError::Failed(message),
    })
}

fn to_wit_output(output: ToolOutput) -> wit::Output {
    let part = |part| match part {
        OutputPart::Text(text) => wit::Part::Text(text),
        OutputPart::Json(text) => wit::Part::Json(text),
        OutputPart::Attachment { name, media_type, data } => {
            wit::Part::Attachment(wit::Attachment { name, media_type, data: data.to_vec() })
        }
    };
    wit::Output { parts: output.parts.into_iter().map(part).collect() }
}

fn to_wit_definition(peer: PeerTool) -> wit::Definition {
    let PeerTool { name, description, schema, hints, .. } = peer;
    let mut flags = wit::Hints::empty();
    for (given, flag) in [
        (hints.read_only, wit::Hints::READ_ONLY),
        (hints.idempotent, wit::Hints::IDEMPOTENT),
        (hints.open_world, wit::Hints::OPEN_WORLD),
    ] {
        if given {
            flags |= flag;
        }
    }
    wit::Definition { name, description, input_schema: schema, hints: flags }
}
