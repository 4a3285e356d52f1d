//! The cost of a command in a shell that is open.

use std::time::Instant;

use belljar_kit::{TestHost, stock};
use belljar_policy::Limits;

use crate::measure::{median, micros};
use crate::report::Row;

/// `echo hi` in an open jar, against what the jar's own opening of the shell took.
pub(crate) async fn echo(times: usize) -> anyhow::Result<Row> {
    let host = TestHost::new();
    let mut builder = host.builder([stock("shell")]);
    builder.limits = Limits {
        fuel: u64::MAX,
        output_total_bytes: u64::MAX,
        call_timeout_seconds: 600,
        ..Limits::default()
    };
    let jar = host.build(builder).await;
    let mut calls = Vec::with_capacity(times);
    let begun = Instant::now();
    jar.call("shell", r#"{"command":"true"}"#).await.outcome?;
    let opened = begun.elapsed();
    for _ in 0..times {
        let started = Instant::now();
        let result = jar.call("shell", r#"{"command":"echo hi"}"#).await;
        calls.push(started.elapsed());
        result.outcome?;
    }
    let typical = micros(median(calls));
    Ok(Row::new("`echo hi` in an open shell", typical.clone())
        .against("its first call, which opens it", micros(opened))
        .verdict(typical, "under 3 ms"))
}
