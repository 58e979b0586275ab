//! The entrance for sites through a circuit: the hub's port for sites, at its address inside the circuit.
use std::net::SocketAddr;

/// True if one of the hub's own listeners is reached at `at`: an unspecified IPv6 address accepts IPv4 as well.
pub fn is_covered(listeners: &[SocketAddr], at: SocketAddr) -> bool {
    listeners.iter().any(|place| covers(place, at))
}

fn covers(place: &SocketAddr, at: SocketAddr) -> bool {
    let anywhere = place.ip().is_unspecified() && (place.is_ipv6() || at.is_ipv4());
    place.port() == at.port() && (anywhere || place.ip() == at.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_listens_everywhere_or_there_needs_no_door() {
        let covered = |place: &str, at: &str| is_covered(&[place.parse().unwrap()], at.parse().unwrap());
        assert!(covered("0.0.0.0:7370", "10.9.0.0:7370"));
        assert!(covered("[::]:7370", "10.9.0.0:7370") && covered("[::]:7370", "[fd00::1]:7370"));
        assert!(covered("10.9.0.0:7370", "10.9.0.0:7370"));
        assert!(!covered("192.0.2.1:7370", "10.9.0.0:7370"));
        assert!(!covered("0.0.0.0:7371", "10.9.0.0:7370"));
        assert!(!covered("0.0.0.0:7370", "[fd00::1]:7370"));
        assert!(!is_covered(&[], "10.9.0.0:7370".parse().unwrap()));
    }
}
