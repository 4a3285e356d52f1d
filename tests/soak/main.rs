//! The soak of the server, short: the same that `belljar-bench server-soak` does for longer. A
//! program of its own, so that nothing else runs beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::time::Duration;

#[path = "../bench/src/server_soak.rs"]
mod server_soak;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_misbehave_all_at_once_take_bounded_memory_and_no_answer_from_their_neighbour()
{
    let binary = Path::new(env!("CARGO_BIN_EXE_belljar"));
    let soak = server_soak::run(binary, Duration::from_secs(8)).await.unwrap();
    eprintln!("{soak}");
    soak.check().unwrap();
    assert!(soak.calls > 100 && soak.answers > 10, "{soak}");
}
