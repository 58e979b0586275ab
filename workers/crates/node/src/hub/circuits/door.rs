//! The entrance for sites through a circuit: the hub's port for sites, at its address inside the circuit.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::AbortHandle;

use crate::circuits::Trouble;
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
    ) -> Result<Arc<Self>, Trouble> {
        if let Some(known) = known.filter(|known| known.address == address) {
            return Ok(known);
        }
        let at = SocketAddr::new(address, hub.sites_port());
        if hub.entrance.places.iter().any(|place| covers(place, at)) {
            return Ok(Arc::new(Self { address, accepting: None }));
        }
        let listener = listen(at).map_err(|error| shut(at, &error.to_string()))?;
        accept::prepare(&listener, &hub.start).map_err(|error| shut(at, &error))?;
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

/// True if a listener at `place` is reached at `at`: an unspecified IPv6 address accepts IPv4 as well.
fn covers(place: &SocketAddr, at: SocketAddr) -> bool {
    let anywhere = place.ip().is_unspecified() && (place.is_ipv6() || at.is_ipv4());
    place.port() == at.port() && (anywhere || place.ip() == at.ip())
}

fn shut(at: SocketAddr, error: &str) -> Trouble {
    Trouble {
        step: "listen".to_owned(),
        sentence: format!("the node can't listen for sites at {at}, where the circuit leads: {error}"),
        remedy: format!(
            "free TCP port {} at {}, or have the hub listen on every address",
            at.port(),
            at.ip()
        ),
    }
}

/// Connections of sites that wait to be accepted: more than a circuit has sites.
const BACKLOG: u32 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_listens_everywhere_or_there_needs_no_door() {
        let covered = |place: &str, at: &str| covers(&place.parse().unwrap(), at.parse().unwrap());
        assert!(covered("0.0.0.0:7370", "10.9.0.0:7370"));
        assert!(covered("[::]:7370", "10.9.0.0:7370") && covered("[::]:7370", "[fd00::1]:7370"));
        assert!(covered("10.9.0.0:7370", "10.9.0.0:7370"));
        assert!(!covered("192.0.2.1:7370", "10.9.0.0:7370"));
        assert!(!covered("0.0.0.0:7371", "10.9.0.0:7370"));
        assert!(!covered("0.0.0.0:7370", "[fd00::1]:7370"));
    }
}
