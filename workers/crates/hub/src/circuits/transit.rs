//! Sites between two hops of a circuit whose tags differ: each joins a tunnel or tag to another one.
use downburst_model::SiteName;
use downburst_session::{CircuitOffer, CircuitTransit, CircuitWay, Ticket, TransitSide};

use super::lease::Lease;
use super::lines::{Cap, HopLine, TransitLine};

impl Lease {
    /// The sites between two hops, each with its port.
    pub(super) fn transits(&self) -> impl Iterator<Item = (&SiteName, &str)> {
        self.line.transits.iter().map(|transit| (&transit.site, transit.end.as_str()))
    }

    /// The offer to a site between two hops. It needs no address, and no secret of probes.
    pub(super) fn transit_offer(&self, site: &SiteName) -> Option<CircuitOffer> {
        let line = self.line.transits.iter().find(|transit| transit.site == *site)?;
        let side = |hop, rate_bps| TransitSide { way: way(line, hop), rate_bps: self.of_class(rate_bps) };
        let transit = CircuitTransit {
            near: side(&line.near, self.line.rate_in_bps),
            far: side(&line.far, self.line.rate_out_bps),
        };
        Some(CircuitOffer {
            lease: self.line.lease,
            port: line.interface.clone(),
            way: CircuitWay::Declared,
            address: String::new(),
            rate_bps: 0,
            soft: self.line.cap == Cap::Soft,
            burst_bytes: self.line.burst_bytes,
            port_rate_bps: line.port_rate_bps,
            secret: Ticket([0; 16]),
            peer_address: String::new(),
            until: self.line.until_us,
            watches: None,
            transit: Some(Box::new(transit)),
        })
    }
}

fn way(line: &TransitLine, hop: &HopLine) -> CircuitWay {
    match (hop.vni, line.underlay, hop.via) {
        (Some(vni), Some(local), Some(via)) => {
            CircuitWay::Tunnel { vni, local: local.to_string(), others: vec![via.to_string()], group: None }
        }
        _ => CircuitWay::Tag(hop.vlan.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use serde_json::{Value, json};

    use super::super::{CircuitEnds, CircuitWord, EndWord, HeldCircuit, LeaseLine, attempt_result};
    use super::*;

    fn line(change: impl FnOnce(&mut Value)) -> LeaseLine {
        let mut line = json!({
            "lease": 17, "driver": "linux", "cap": "hard", "rate_out_bps": 60_000_000, "rate_in_bps": 10_000_000,
            "ends": [
                {"end": "h0", "interface": "eth0", "underlay": "10.77.0.1", "address": "10.9.0.0/31", "vni": 3021,
                    "via": "10.77.0.3"},
                {"end": "p0", "site": "oslo", "interface": "eth0", "underlay": "10.77.0.2",
                    "address": "10.9.0.1/31", "vni": 3123, "via": "10.77.0.3"},
            ],
            "transits": [
                {"end": "t0", "site": "mid", "interface": "eth1", "underlay": "10.77.0.3",
                    "near": {"vni": 3021, "via": "10.77.0.1"}, "far": {"vni": 3123, "via": "10.77.0.2"}},
            ],
        });
        change(&mut line);
        serde_json::from_value(line).unwrap()
    }

    fn offer(lease: &Lease, site: &str) -> CircuitOffer {
        lease.offer(&SiteName::parse(site).unwrap(), Ticket([1; 16])).unwrap()
    }

    fn tunnel(vni: u32, local: &str, other: &str) -> CircuitWay {
        CircuitWay::Tunnel { vni, local: local.to_owned(), others: vec![other.to_owned()], group: None }
    }

    #[test]
    fn a_site_between_two_hops_joins_their_tunnels() {
        let lease = Lease::read(line(|_| {})).unwrap();
        let joined = offer(&lease, "mid");
        let transit = joined.transit.unwrap();
        assert_eq!((joined.port.as_str(), joined.way), ("eth1", CircuitWay::Declared));
        assert_eq!(transit.near.way, tunnel(3021, "10.77.0.3", "10.77.0.1"));
        assert_eq!(transit.far.way, tunnel(3123, "10.77.0.3", "10.77.0.2"));
        assert_eq!((transit.near.rate_bps, transit.far.rate_bps), (9_000_000, 54_000_000));
        assert_eq!(offer(&lease, "oslo").way, tunnel(3123, "10.77.0.2", "10.77.0.3"));
        let own = lease.own_end().unwrap().way;
        let to_mid: Vec<IpAddr> = vec!["10.77.0.3".parse().unwrap()];
        assert!(matches!(own, super::super::EndWay::Tunnel { vni: 3021, others, .. } if others == to_mid));
    }

    #[test]
    fn it_has_a_part_in_the_circuit_and_no_end() {
        let [mid, oslo] = ["mid", "oslo"].map(|name| SiteName::parse(name).unwrap());
        let lease = Lease::read(line(|_| {})).unwrap();
        let held = HeldCircuit { lease, secret: Ticket([7; 16]), interface: "db17".to_owned(), shaped: true };
        assert_eq!(held.parties().collect::<Vec<_>>(), [&oslo, &mid]);
        assert_eq!(held.sites().map(|(site, _)| site).collect::<Vec<_>>(), [&oslo]);
        assert_eq!(held.hop_of(&mid), "t0 at mid");
        let mut reports = CircuitEnds::default();
        held.parties().for_each(|site| reports.offered(site));
        reports.said(&oslo, Ok(()));
        let words = |reports: &CircuitEnds| {
            let attempt = attempt_result(&held, reports);
            (attempt.state, attempt.ends.last().map(|end| (end.site.clone(), end.state)))
        };
        assert_eq!(words(&reports), (CircuitWord::Partial, Some((Some(mid.clone()), EndWord::Away))));
        reports.said(&mid, Ok(()));
        assert_eq!(words(&reports), (CircuitWord::Up, Some((Some(mid), EndWord::Up))));
    }

    #[test]
    fn sites_may_join_hops_between_machines_of_other_networks() {
        let passage = |transits: Value| {
            Lease::read(line(|line| {
                line["ends"] = json!([]);
                line["transits"] = transits;
            }))
        };
        let lease = passage(line_of_transits()).unwrap();
        assert!(lease.passes() && lease.pair().is_none() && lease.own_end().is_none());
        assert_eq!(lease.hop("hub"), "hub");
        assert!(offer(&lease, "mid").transit.is_some());
        let mid = SiteName::parse("mid").unwrap();
        let held = HeldCircuit { lease, secret: Ticket([7; 16]), interface: String::new(), shaped: false };
        assert_eq!(held.parties().collect::<Vec<_>>(), [&mid]);
        let mut reports = CircuitEnds::default();
        reports.offered(&mid);
        reports.said(&mid, Ok(()));
        let attempt = attempt_result(&held, &reports);
        assert_eq!((attempt.state, attempt.ends.len()), (CircuitWord::Up, 1));
        let nothing = passage(json!([])).unwrap_err().error;
        assert_eq!(nothing, "lease 17 has one end only");
    }

    fn line_of_transits() -> Value {
        json!([{"end": "t0", "site": "mid", "interface": "eth1", "underlay": "10.77.0.3",
            "near": {"vni": 3021, "via": "192.0.2.1"}, "far": {"vni": 3123, "via": "192.0.2.2"}}])
    }

    #[test]
    fn hops_that_can_not_be_joined_are_refused() {
        let refused = |change: fn(&mut Value)| Lease::read(line(change)).unwrap_err().error;
        let same = refused(|line| line["transits"][0]["far"]["vni"] = json!(3021));
        assert_eq!(same, "lease 17: both hops at mid have one tag, so there is nothing to join");
        let end = refused(|line| line["transits"][0]["site"] = json!("oslo"));
        assert!(end.contains("passes a site once"), "{end}");
        let high = refused(|line| line["transits"][0]["near"] = json!({"vlan": 4095}));
        assert!(high.contains("a hop at mid has the VLAN 4095"), "{high}");
        let nowhere = refused(|line| line["transits"][0]["near"]["via"] = Value::Null);
        assert!(nowhere.contains("neither a tunnel's address nor a tag"), "{nowhere}");
    }
}
