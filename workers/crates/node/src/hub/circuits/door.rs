//! The entrance for sites through a circuit: the hub's port for sites, at its address inside the circuit.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use downburst_hub::circuits::{is_covered, no_listener};
use downburst_session::CircuitFault;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::AbortHandle;

use crate::hub::Hub;
use crate::hub::connections::accept;

/// Listens at a hub's address inside a circuit for the circuit's life, unless the hub's own addresses for
/// sites do so.
#[derive(Debug)]
pub(super) struct Door {
    address: IpAddr,
    accepting: Option<AbortHandle>,
}

impl Door {
    /// Opens a door, or keeps the existing one at the same address.
    pub(super) async fn open(
        hub: &Arc<Hub>,
        address: IpAddr,
        known: Option<Arc<Self>>,
    ) -> Result<Arc<Self>, CircuitFault> {
        if let Some(known) = known.filter(|known| known.address == address) {
            return Ok(known);
        }
        let at = SocketAddr::new(address, hub.sites_port());
        if is_covered(&hub.entrance.places, at) {
            return Ok(Arc::new(Self { address, accepting: None }));
        }
        let listener = listen(at).map_err(|error| no_listener(at, &error))?;
        accept::prepare(&listener, &hub.start).map_err(|error| no_listener(at, &error))?;
        let accepting = tokio::spawn(accept::accept(Arc::clone(hub), listener)).abort_handle();
        Ok(Arc::new(Self { address, accepting: Some(accepting) }))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// A recreated circuit may open its door before that of the former one is closed.
fn listen(at: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

/// Connections of sites that wait to be accepted: more than a circuit has sites.
const BACKLOG: u32 = 1_024;
