//! Faults of the hub's end of a circuit, for operators.
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};

use downburst_model::Micros;
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

/// An end does not answer; `silent_for`: since its last packet, if there was one.
pub(super) fn silent(interface: &str, silent_for: Option<Micros>) -> CircuitFault {
    let since = silent_for.map_or_else(String::new, |it| format!(" for {:.1} s", it.0 as f64 / 1e6));
    CircuitFault {
        step: "route".to_owned(),
        sentence: format!("nothing came back through {interface}{since}"),
        remedy: "check that the ports of both ends are up and that the network between them carries UDP port 4789; \
            until then feeds take the routed path"
            .to_owned(),
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
    fn a_silence_has_a_length_once_something_was_heard() {
        assert_eq!(silent("dbc17", None).sentence, "nothing came back through dbc17");
        assert_eq!(
            silent("dbc17", Some(Micros(1_260_000))).sentence,
            "nothing came back through dbc17 for 1.3 s"
        );
    }
}
