//! Faults of the hub's end of a circuit, for operators.
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use downburst_model::SiteName;
use downburst_session::CircuitFault;

/// The node can't listen for sites at the hub's address inside the circuit.
pub fn no_listener(at: SocketAddr, error: &dyn Display) -> CircuitFault {
    CircuitFault {
        step: "listen".to_owned(),
        sentence: format!("the node can't listen for sites at {at}, where the circuit leads: {error}"),
        remedy: format!(
            "free TCP port {} at {}, or have the hub listen on every address",
            at.port(),
            at.ip()
        ),
    }
}

/// The node can't listen for probes at the hub's address inside the circuit.
pub fn no_endpoint(address: IpAddr, interface: &str, error: &dyn Display) -> CircuitFault {
    CircuitFault {
        step: "address".to_owned(),
        sentence: format!("the node can't listen for probes at {address}: {error}"),
        remedy: format!("free UDP port 7372 at {address} on {interface}"),
    }
}

/// The host gives no bits for the circuit's secret.
pub fn no_random_bits(error: &dyn Display) -> CircuitFault {
    CircuitFault {
        step: "kernel".to_owned(),
        sentence: format!("the host gives no random bits: {error}"),
        remedy: "check the host's /dev/urandom".to_owned(),
    }
}

/// A site at an end of a circuit has no session.
pub(super) fn not_connected(site: &SiteName) -> CircuitFault {
    CircuitFault {
        step: "site".to_owned(),
        sentence: format!("{site} is not connected"),
        remedy: "start its receiver or relay, or find out why it can't reach the hub".to_owned(),
    }
}

/// A site that has come back has not reported on its end of a circuit, or of the other end.
pub(super) fn not_reported(site: &SiteName) -> CircuitFault {
    CircuitFault {
        step: "site".to_owned(),
        sentence: format!("{site} does not say that the other end of the circuit answers"),
        remedy: "look into the log of its node, and bring it to the release of the hub's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_step_the_place_and_the_remedy() {
        let shut = no_listener("10.9.0.0:7370".parse().unwrap(), &"in use");
        assert_eq!((shut.step.as_str(), shut.sentence.ends_with("leads: in use")), ("listen", true));
        assert!(shut.remedy.starts_with("free TCP port 7370 at 10.9.0.0, or"));
        let deaf = no_endpoint("10.9.0.0".parse().unwrap(), "eth0", &"in use");
        assert_eq!(
            (deaf.step.as_str(), deaf.remedy.as_str()),
            ("address", "free UDP port 7372 at 10.9.0.0 on eth0")
        );
        assert_eq!(no_random_bits(&"no").sentence, "the host gives no random bits: no");
    }

    #[test]
    fn faults_of_two_sites_name_the_site() {
        let site = SiteName::parse("east").unwrap();
        assert_eq!(not_connected(&site).sentence, "east is not connected");
        assert!(not_reported(&site).sentence.starts_with("east does not say"));
    }
}
