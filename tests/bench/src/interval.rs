//! The cost of yields, for the choice of the interval between two of them: a tight loop in bare
//! wasmtime, with more and fewer.

use std::time::{Duration, Instant};

use wasmtime::{Config, Engine, Instance, Module, Store};

use crate::measure::{median, micros};
use crate::report::Row;

/// Does nothing, without end.
const SPIN: &str = r#"(module (func (export "spin") (loop $again (br $again))))"#;

/// Fuel of one run of the loop.
const FUEL: u64 = 1_000_000_000;

/// Fuel between two yields: those that were considered.
const INTERVALS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

pub(crate) async fn rows(times: usize) -> wasmtime::Result<Vec<Row>> {
    let mut config = Config::new();
    config.consume_fuel(true);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, wat::parse_str(SPIN)?)?;
    let floor = spin(&engine, &module, None, times).await?;
    let mut rows = Vec::new();
    for interval in INTERVALS {
        let took = spin(&engine, &module, Some(interval), times).await?;
        let slice = took.mul_f64(interval as f64 / FUEL as f64);
        let cost = (took.as_secs_f64() / floor.as_secs_f64() - 1.0) * 100.0;
        rows.push(
            Row::new(format!("a loop that yields every {interval} fuel"), micros(took))
                .against("without yields", micros(floor))
                .verdict(
                    format!("{cost:+.1} %, a turn takes {}", micros(slice)),
                    "belljar: 100000",
                ),
        );
    }
    Ok(rows)
}

async fn spin(
    engine: &Engine,
    module: &Module,
    interval: Option<u64>,
    times: usize,
) -> wasmtime::Result<Duration> {
    let mut samples = Vec::with_capacity(times);
    for _ in 0..times {
        let mut store = Store::new(engine, ());
        store.set_fuel(FUEL)?;
        store.fuel_async_yield_interval(interval)?;
        let instance = Instance::new_async(&mut store, module, &[]).await?;
        let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
        let started = Instant::now();
        // It ends with its fuel.
        let _ = spin.call_async(&mut store, ()).await;
        samples.push(started.elapsed());
    }
    Ok(median(samples))
}
