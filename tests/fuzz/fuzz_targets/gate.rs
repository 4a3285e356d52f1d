//! Host rules, URLs and addresses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| belljar_fuzz_checks::gate(data));
