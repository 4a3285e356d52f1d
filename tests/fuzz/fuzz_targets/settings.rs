//! `belljar.toml` at home and in a workspace, and tool manifests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| belljar_fuzz_checks::settings(data));
