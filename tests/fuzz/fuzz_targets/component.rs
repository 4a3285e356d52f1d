//! Component inspection, and the check of what `describe` says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| belljar_fuzz_checks::component(data));
