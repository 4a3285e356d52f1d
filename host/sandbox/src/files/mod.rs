//! `wasi:filesystem`, checked on every call.
