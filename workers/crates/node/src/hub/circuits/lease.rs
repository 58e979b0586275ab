//! A lease in terms of the host and of the session.
use std::net::IpAddr;

use downburst_host::{Burst, Half, Owner, Shape, Way};
use downburst_model::SiteName;
use downburst_session::{CircuitOffer, CircuitWay, Ticket};

use crate::circuits::{PROBE_FRAME_BYTES, parsed};
use crate::lines::{Cap, CircuitDriver, EndLine, Failure, LeaseLine, Replication};

/// A lease whose fields were checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lease {
    pub(super) line: LeaseLine,
    /// The hub's end, and its address inside the circuit.
    pub(super) own: EndLine,
    pub(super) address: (IpAddr, u8),
    /// The other ends, with their addresses.
    pub(super) others: Vec<(SiteName, EndLine, (IpAddr, u8))>,
}

impl Lease {
    pub(super) fn read(line: LeaseLine) -> Result<Self, Failure> {
        let bad = |sentence: String| Failure::new("bad-request", sentence);
        let number = line.lease;
        let mut own = None;
        let mut others = Vec::new();
        for end in &line.ends {
            let address = parsed(&end.address).ok_or_else(|| {
                bad(format!(
                    "lease {number}: {:?} of {} is not an address with a prefix, like 10.9.0.1/31",
                    end.address, end.end
                ))
            })?;
            match &end.site {
                None => own = Some((end.clone(), address)),
                Some(site) => others.push((site.clone(), end.clone(), address)),
            }
            let carried =
                line.driver == CircuitDriver::Declared || end.vlan.is_some() || end.underlay.is_some();
            if !carried
                || (line.vni.is_some() && line.driver == CircuitDriver::Linux && end.underlay.is_none())
            {
                return Err(bad(format!(
                    "lease {number}: the end {} has neither a tunnel's address nor a tag",
                    end.end
                )));
            }
        }
        let (own, address) = own.ok_or_else(|| bad(format!("lease {number} has no end at this hub")))?;
        if others.is_empty() {
            return Err(bad(format!("lease {number} has one end only")));
        }
        if !(0.1..=1.0).contains(&line.shaped_share) {
            return Err(bad(format!(
                "lease {number}: a shaped share of {} is not between 0.1 and 1",
                line.shaped_share
            )));
        }
        Ok(Self { line, own, address, others })
    }

    /// The hub's half. If it replicates frames for each end, its rate is multiplied accordingly.
    pub(super) fn half(&self, owner: Owner) -> Half {
        let copies =
            if self.line.replication == Some(Replication::Underlay) { 1 } else { self.others.len() as u64 };
        let others = self.others.iter().filter_map(|(_, end, _)| end.underlay).collect();
        Half {
            owner,
            lease: self.line.lease,
            port: self.own.interface.clone(),
            way: match (self.line.driver, self.line.vni, self.own.underlay, self.own.vlan) {
                (CircuitDriver::Declared, ..) => Way::Declared,
                (_, Some(vni), Some(local), _) => Way::Tunnel { vni, local, others, group: self.group() },
                (_, _, _, tag) => Way::Tag(tag.unwrap_or_default()),
            },
            address: self.address,
            shape: self.is_shaped().then(|| Shape {
                rate_bps: self.shaped(self.line.rate_out_bps).saturating_mul(copies),
                soft: self.line.cap == Cap::Soft,
                burst: self.line.burst_bytes.map_or(Burst::Auto, Burst::Bytes),
                port_rate_bps: self.own.port_rate_bps,
            }),
        }
    }

    /// The offer to a site for its end.
    pub(super) fn offer(&self, site: &SiteName, secret: Ticket) -> Option<CircuitOffer> {
        let (_, end, _) = self.others.iter().find(|(name, ..)| name == site)?;
        let far = self.others.iter().filter(|(name, ..)| name != site).filter_map(|(_, end, _)| end.underlay);
        let others = self.own.underlay.into_iter().chain(far).map(|address| address.to_string()).collect();
        Some(CircuitOffer {
            lease: self.line.lease,
            port: end.interface.clone(),
            way: match (self.line.driver, self.line.vni, end.underlay, end.vlan) {
                (CircuitDriver::Declared, ..) => CircuitWay::Declared,
                (_, Some(vni), Some(local), _) => CircuitWay::Tunnel {
                    vni,
                    local: local.to_string(),
                    others,
                    group: self.group().map(|group| group.to_string()),
                },
                (_, _, _, tag) => CircuitWay::Tag(tag.unwrap_or_default()),
            },
            address: end.address.clone(),
            rate_bps: if self.is_shaped() { self.shaped(self.line.rate_in_bps) } else { 0 },
            soft: self.line.cap == Cap::Soft,
            burst_bytes: self.line.burst_bytes,
            port_rate_bps: end.port_rate_bps,
            secret,
            hub_address: self.address.0.to_string(),
            until: self.line.until_us,
        })
    }

    /// The address of a site's end inside the circuit.
    pub(super) fn address_of(&self, site: &SiteName) -> Option<IpAddr> {
        self.others.iter().find(|(name, ..)| name == site).map(|(_, _, (address, _))| *address)
    }

    /// The other end, if there is only one: all traffic of the circuit goes to it.
    pub(super) fn only_site(&self) -> Option<SiteName> {
        match self.others.as_slice() {
            [(site, ..)] => Some(site.clone()),
            _ => None,
        }
    }

    /// The size of a probe packet on the port.
    pub(super) fn probe_frame_bytes(&self) -> u32 {
        let around = match (self.line.driver, self.line.vni, self.own.underlay) {
            (CircuitDriver::Linux, Some(_), Some(IpAddr::V4(_))) => VXLAN_BYTES,
            (CircuitDriver::Linux, Some(_), Some(IpAddr::V6(_))) => VXLAN6_BYTES,
            (CircuitDriver::Linux, ..) => TAG_BYTES,
            (CircuitDriver::Declared, ..) => 0,
        };
        PROBE_FRAME_BYTES + around
    }

    /// The part of its shaped outgoing rate, or of the measured rate if that is less, for frames inside it:
    /// the tunnel's own headers come on top.
    pub(super) fn rate_inside_bps(&self, measured_bps: u64) -> u64 {
        let shaped = self.shaped(self.line.rate_out_bps);
        let carried = if measured_bps == 0 { shaped } else { shaped.min(measured_bps) };
        carried.saturating_mul(PROBE_FRAME_BYTES.into()) / u64::from(self.probe_frame_bytes())
    }

    /// The rate of TCP payload that its shaped outgoing rate allows, without the headers of full frames.
    pub(super) fn paced_bps(&self) -> u64 {
        self.rate_inside_bps(0).saturating_mul(FULL_PAYLOAD_BYTES) / FULL_FRAME_BYTES
    }

    fn group(&self) -> Option<IpAddr> {
        self.line.group.filter(|_| self.line.replication == Some(Replication::Underlay))
    }

    /// A declared circuit with a soft cap is limited by its provider.
    pub(super) fn is_shaped(&self) -> bool {
        self.line.driver == CircuitDriver::Linux || self.line.cap == Cap::Hard
    }

    fn shaped(&self, rate_bps: u64) -> u64 {
        (rate_bps as f64 * self.line.shaped_share) as u64
    }
}

/// A full frame of TCP with timestamps, and its payload.
const FULL_FRAME_BYTES: u64 = 1_514;
const FULL_PAYLOAD_BYTES: u64 = 1_448;

/// Outer Ethernet, IP, UDP and VXLAN headers around a frame.
const VXLAN_BYTES: u32 = 50;
const VXLAN6_BYTES: u32 = 70;
const TAG_BYTES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ends: &str) -> LeaseLine {
        let line = r#"{"lease": 17, "driver": "linux", "shape": "point-to-point", "replication": "head-end",
            "vni": 700, "cap": "hard", "rate_out_bps": 60000000, "rate_in_bps": 10000000, "ends": ENDS}"#;
        serde_json::from_str(&line.replace("ENDS", ends)).unwrap()
    }

    const HUB: &str =
        r#"{"end": "hub-eth0", "interface": "eth0", "underlay": "10.77.0.1", "address": "10.9.0.0/29"}"#;

    fn site(number: u32) -> String {
        format!(
            r#"{{"end": "p{number}", "site": "s{number}", "interface": "eth0",
                "underlay": "10.77.0.{number}", "address": "10.9.0.{number}/29"}}"#
        )
    }

    #[test]
    fn both_ends_are_shaped_to_nine_tenths_of_what_they_send() {
        let lease = Lease::read(line(&format!("[{HUB}, {}]", site(2)))).unwrap();
        assert_eq!(lease.half(Owner::of("hub")).shape.unwrap().rate_bps, 54_000_000);
        let offer = lease.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap();
        assert_eq!((offer.rate_bps, offer.hub_address.as_str()), (9_000_000, "10.9.0.0"));
        assert_eq!(lease.only_site(), SiteName::parse("s2").ok());
        assert_eq!((lease.probe_frame_bytes(), lease.rate_inside_bps(0)), (1_464, 52_155_737));
        assert_eq!(lease.rate_inside_bps(60_000_000), 52_155_737, "never more than is shaped");
        assert_eq!(lease.rate_inside_bps(30_000_000), 28_975_409, "what was measured is less");
    }

    #[test]
    fn copies_for_several_ends_are_several_times_the_rate() {
        let lease = Lease::read(line(&format!("[{HUB}, {}, {}]", site(2), site(3)))).unwrap();
        let half = lease.half(Owner::of("hub"));
        assert_eq!((half.shape.unwrap().rate_bps, lease.only_site()), (108_000_000, None));
        let offer = lease.offer(&SiteName::parse("s3").unwrap(), Ticket([0; 16])).unwrap();
        let CircuitWay::Tunnel { others, .. } = offer.way else { panic!("a tunnel") };
        assert_eq!(others, ["10.77.0.1", "10.77.0.2"]);
    }

    #[test]
    fn what_is_no_lease_is_told_in_a_sentence() {
        let refused = |ends: &str| Lease::read(line(ends)).unwrap_err().error;
        assert_eq!(refused(&format!("[{HUB}]")), "lease 17 has one end only");
        assert_eq!(refused(&format!("[{}]", site(2))), "lease 17 has no end at this hub");
        assert!(refused(&format!("[{HUB}, {}]", site(2).replace("/29", ""))).contains("like 10.9.0.1/31"));
        let nowhere = site(2).replace(r#""underlay": "10.77.0.2", "#, "");
        assert!(refused(&format!("[{HUB}, {nowhere}]")).contains("neither a tunnel's address nor a tag"));
    }
}
