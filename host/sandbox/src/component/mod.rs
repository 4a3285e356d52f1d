//! Components: inspected, described, compiled, and loaded for opening stores.

pub(crate) mod adapt;
pub(crate) mod artifact;
pub(crate) mod bindings;
pub(crate) mod cache;
pub(crate) mod command_form;
pub(crate) mod compile;
pub(crate) mod contract;
pub(crate) mod describe;
pub(crate) mod described;
pub(crate) mod engine;
pub(crate) mod functions;
pub(crate) mod in_place;
pub(crate) mod inspect;
pub(crate) mod interfaces;
pub(crate) mod kind;
pub(crate) mod load;
pub(crate) mod throwaway;
pub(crate) mod tool_info;
pub(crate) mod turns;
pub(crate) mod vault;
pub(crate) mod wasm;
