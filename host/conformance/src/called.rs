//! The suite's own tools, which a conformance component can call as other tools of its agent.

use std::collections::BTreeSet;

use belljar_policy::{PeersAsk, ToolName};
use belljar_sandbox::{
    NestedScope, OutputPart, PeerCall, PeerError, PeerPort, PeerResult, PeerTool, ToolErrorKind,
    ToolHints, ToolOutput,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

/// Name, description and schema of the tools that the component's manifest asks for, in the order of `list`.
const TOOLS: &[(&str, &str, &str)] = &[
    (
        "peer_echo",
        "Answers the text ☃.",
        r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#,
    ),
    ("peer_parts", "Answers three parts.", r#"{"type":"object","properties":{}}"#),
    (
        "peer_error",
        "Fails with an error of this kind.",
        r#"{"type":"object","properties":{"kind":{"type":"string"},"message":{"type":"string"}}}"#,
    ),
    (
        "peer_place",
        "Answers its place among the calls made at once.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        "peer_large",
        "Answers so many `x`.",
        r#"{"type":"object","properties":{"bytes":{"type":"integer"}},"required":["bytes"]}"#,
    ),
];

/// The most bytes of the answer of `peer_large`.
const MAX_LARGE: usize = 1 << 20;

/// A tool that the agent has and the manifest does not ask for.
const NOT_ASKED: &str = "peer_hidden";

const KINDS: [ToolErrorKind; 5] = [
    ToolErrorKind::InvalidArguments,
    ToolErrorKind::NotFound,
    ToolErrorKind::Denied,
    ToolErrorKind::TooLarge,
    ToolErrorKind::Failed,
];

/// The suite's own tools, in the role of the agent's other tools.
pub(crate) struct SuitePeers;

impl SuitePeers {
    /// The tools that the manifest asks for.
    pub(crate) fn asked_peers() -> PeersAsk {
        PeersAsk::Only(TOOLS.iter().filter_map(|(name, ..)| ToolName::new(name).ok()).collect())
    }

    /// The tools that the agent has.
    pub(crate) fn granted_tools() -> BTreeSet<ToolName> {
        let names = TOOLS.iter().map(|(name, ..)| *name).chain([NOT_ASKED]);
        names.filter_map(|name| ToolName::new(name).ok()).collect()
    }
}

impl PeerPort for SuitePeers {
    fn list_tools(&self) -> Vec<PeerTool> {
        let hidden = (NOT_ASKED, "Nobody sees this.", "{}");
        let all = TOOLS.iter().chain([&hidden]).filter_map(|(name, description, schema)| {
            Some(PeerTool {
                name: (*name).to_owned(),
                tool: ToolName::new(name).ok()?,
                description: (*description).to_owned(),
                schema: (*schema).to_owned(),
                hints: ToolHints { read_only: *name == "peer_echo", ..ToolHints::default() },
            })
        });
        all.collect()
    }

    fn call_tools(
        &self,
        calls: Vec<PeerCall>,
        within: NestedScope,
    ) -> BoxFuture<'static, Vec<PeerResult>> {
        let count = calls.len();
        let results =
            (1..).zip(calls).map(|(place, call)| answer_call(&call, place, count, &within));
        std::future::ready(results.collect()).boxed()
    }
}

/// Answers a guest's call of a peer tool of the suite: an echo, a long text, the call's place in a batch, an
/// error, or three parts of different kinds.
fn answer_call(call: &PeerCall, place: usize, count: usize, within: &NestedScope) -> PeerResult {
    if !within.may_call(&call.tool) {
        return Err(make_error(
            ToolErrorKind::Denied,
            format!("`{}` is not among them", call.tool),
        ));
    }
    let arguments: Value = serde_json::from_str(&call.arguments)
        .map_err(|_| make_error(ToolErrorKind::InvalidArguments, "no JSON".to_owned()))?;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let parts = match call.tool.as_str() {
        "peer_echo" => match text("text") {
            Some(text) => vec![OutputPart::Text(text)],
            None => {
                let message = "missing field `text`".to_owned();
                return Err(make_error(ToolErrorKind::InvalidArguments, message));
            }
        },
        "peer_large" => {
            let bytes = arguments.get("bytes").and_then(Value::as_u64);
            let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
            vec![OutputPart::Text("x".repeat(bytes.min(MAX_LARGE)))]
        }
        "peer_place" => vec![OutputPart::Text(format!("{place} of {count}"))],
        "peer_error" => {
            let kind = text("kind").unwrap_or_default();
            let kind = KINDS.into_iter().find(|known| known.as_str() == kind);
            let message = text("message").unwrap_or_default();
            return Err(make_error(kind.unwrap_or(ToolErrorKind::Failed), message));
        }
        _ => vec![
            OutputPart::Text("one ☃".to_owned()),
            OutputPart::Json(r#"{"two":2}"#.to_owned()),
            OutputPart::Attachment {
                name: "three.bin".to_owned(),
                media_type: "application/octet-stream".to_owned(),
                data: (0..=255).collect::<Vec<u8>>().into(),
            },
        ],
    };
    Ok(ToolOutput { parts })
}

fn make_error(kind: ToolErrorKind, message: String) -> PeerError {
    PeerError { kind, message }
}
