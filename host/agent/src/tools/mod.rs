//! A tool call, from the model's request to its result.

pub(crate) mod alias;
pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod builtin;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod dispatch;
pub(crate) mod execute;
pub(crate) mod executor;
pub(crate) mod hooks;
pub(crate) mod in_use;
pub(crate) mod nested;
pub(crate) mod remote;
pub(crate) mod requests;
pub(crate) mod result;
pub(crate) mod served;
