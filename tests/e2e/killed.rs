//! Processes that are killed while they write in an overlay or apply one: a few, of what
//! `belljar-bench kill` does hundreds of times. `BELLJAR_KILLS` asks for more.

use std::path::Path;

#[path = "../bench/src/overlay_kills.rs"]
mod overlay_kills;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_runs_and_applies_lose_nothing_and_leave_nothing_half_done() {
    let binary = Path::new(env!("CARGO_BIN_EXE_belljar"));
    let number = std::env::var("BELLJAR_KILLS").ok();
    let number = number.map_or(15, |number| number.parse().unwrap());
    let kills = overlay_kills::run(binary, number, number).await.unwrap();
    eprintln!("{kills:?}");
    assert_eq!((kills.runs, kills.applies), (number, number));
    assert!(kills.lines > 0, "{kills:?}");
}
