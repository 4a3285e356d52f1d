//! Agents, teams and skills.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| belljar_fuzz_checks::definition(data));
