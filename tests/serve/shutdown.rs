//! Stopping: nothing new is taken, and what is open ends.

use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::kit::World;

#[tokio::test]
async fn a_server_that_stops_closes_idle_connections_and_returns() {
    let world = World::new().await;
    world.call("GET", "/readyz").send().await.is(200);
    let idle = TcpStream::connect(world.address).await.unwrap();
    let mut stream = world.call_as("blue-read-only", "GET", "/v1/sessions").open().await;
    assert_eq!(stream.status, 200);
    assert!(stream.next().await.is_none());
    world.stop.cancel();
    let served = world.served.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it never stopped").unwrap();
    assert!(TcpStream::connect(world.address).await.is_err(), "it still listens");
    drop(idle);
}
