//! Hostile calls by the ten thousand in one process, beside a neighbour that goes on reading.

use std::time::Duration;

use belljar_prove::{GROWTH_BOUND, Suite, SuiteOptions};
use belljar_sandbox::Compiler;

use crate::measure::millis;
use crate::report::Row;

/// Makes so many hostile calls, eight jars at a time.
pub(crate) async fn row(calls: u64) -> anyhow::Result<Row> {
    let options = SuiteOptions { compiler: Compiler::InProcess, cache_dir: None, probe: None };
    let suite = Suite::new(options)?;
    suite.prepare().await?;
    let soak = suite.run_soak(calls).await?;
    if let Some(escape) = soak.escapes.first() {
        anyhow::bail!("a hostile call got through: {escape}");
    }
    let (answers, _, worst) = soak.neighbour;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let measure = format!("{} hostile calls in one process", soak.calls);
    let figure = format!(
        "{:.0} s; {} faults of the host; {:.1} MiB grown",
        soak.seconds,
        soak.host_faults,
        mib(soak.memory_growth_bytes)
    );
    Ok(Row::new(measure, figure)
        .against(&format!("its neighbour, {answers} answers, slowest"), {
            millis(Duration::from_micros(worst))
        })
        .verdict(
            format!("{:.1} of {:.0} MiB", mib(soak.memory_growth_bytes), mib(GROWTH_BOUND)),
            "0 escapes, 0 faults, growth within the bound",
        ))
}
