//! Sockets of the guest's own.

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{
    ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Network,
};
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp_create_socket::create_udp_socket;

use crate::Said;
use crate::held::{self, Held};

/// One step.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Keeps a handle to the network.
    Network {},
    /// Opens a TCP socket and connects to loopback.
    TcpConnect { port: u16 },
    /// Opens a TCP socket and listens.
    TcpListen { port: u16 },
    /// Opens a UDP socket and binds it.
    Udp { port: u16 },
    /// Asks for a name's addresses.
    Resolve { name: String },
}

impl Step {
    pub(crate) fn run(self) -> Said {
        let network = instance_network();
        match self {
            Self::Network {} => Ok(json!({ "held": held::keep(Held::Network(network)) })),
            Self::TcpConnect { port } => connect(&network, port).map_err(word),
            Self::TcpListen { port } => listen(&network, port).map_err(word),
            Self::Udp { port } => {
                let socket = create_udp_socket(IpAddressFamily::Ipv4).map_err(word)?;
                socket.start_bind(&network, loopback(port)).map_err(word)?;
                socket.finish_bind().map_err(word)?;
                Ok(Value::Null)
            }
            Self::Resolve { name } => {
                let addresses = resolve_addresses(&network, &name).map_err(word)?;
                addresses.subscribe().block();
                let first = addresses.resolve_next_address().map_err(word)?;
                Ok(json!(format!("{first:?}")))
            }
        }
    }
}

fn connect(network: &Network, port: u16) -> Result<Value, ErrorCode> {
    let socket = create_tcp_socket(IpAddressFamily::Ipv4)?;
    socket.start_connect(network, loopback(port))?;
    socket.subscribe().block();
    socket.finish_connect()?;
    Ok(Value::Null)
}

fn listen(network: &Network, port: u16) -> Result<Value, ErrorCode> {
    let socket = create_tcp_socket(IpAddressFamily::Ipv4)?;
    socket.start_bind(network, loopback(port))?;
    socket.finish_bind()?;
    socket.start_listen()?;
    socket.finish_listen()?;
    Ok(Value::Null)
}

fn loopback(port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (127, 0, 0, 1) })
}

fn word(error: ErrorCode) -> String {
    error.name().to_owned()
}
