//! The parts of `belljar-sandbox` that read a component without running it, compiled from the
//! same files. The crate as a whole would bring the engine into the fuzzer: minutes of building,
//! a tenth of the speed, and no more of our own code under test.

#![allow(dead_code, unreachable_pub, reason = "the sandbox uses more of these files")]

#[path = "../../../../host/sandbox/src/component/described.rs"]
pub(crate) mod described;
#[path = "../../../../host/sandbox/src/error.rs"]
pub(crate) mod error;
#[path = "../../../../host/sandbox/src/component/inspect.rs"]
pub(crate) mod inspect;
#[path = "../../../../host/sandbox/src/component/interfaces.rs"]
pub(crate) mod interfaces;
#[path = "../../../../host/sandbox/src/json.rs"]
pub(crate) mod json;
#[path = "../../../../host/sandbox/src/component/kind.rs"]
pub(crate) mod kind;
#[path = "../../../../host/sandbox/src/component/tool_info.rs"]
pub(crate) mod tool_info;
