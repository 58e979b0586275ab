//! A lease in terms of the host and of the session.
use std::net::IpAddr;

use downburst_model::{SiteName, WallMicros};
use downburst_session::{CircuitOffer, CircuitWay, Ticket, inner_address};

use super::lines::{Cap, CircuitDriver, EndLine, LeaseLine, Replication};
use super::tags::{check_tag, check_transits};
use crate::jobs::Failure;

/// A lease whose fields were checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    pub(super) line: LeaseLine,
    /// The hub's end; `None`: the circuit joins two sites.
    pub own: Option<HubEnd>,
    /// The ends at sites, with their addresses; of two sites the nearer one first. Without any, and without the hub's,
    /// both ends are machines of other networks.
    pub others: Vec<(SiteName, EndLine, (IpAddr, u8))>,
}

/// The hub's end of a circuit, as the agent wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct HubEnd {
    line: EndLine,
    /// The hub's address inside the circuit, and the length of its prefix.
    pub address: (IpAddr, u8),
}

/// The hub's own end of a circuit, for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnEnd {
    /// The number of the lease.
    pub lease: u32,
    /// The outgoing interface.
    pub port: String,
    /// The encapsulation on that interface.
    pub way: EndWay,
    /// The hub's address inside the circuit, and the length of its prefix.
    pub address: (IpAddr, u8),
    /// The rate limit; `None`: unlimited.
    pub shape: Option<EndShape>,
}

/// The encapsulation of a circuit on the hub's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndWay {
    /// In a VXLAN tunnel.
    Tunnel {
        /// Its network identifier.
        vni: u32,
        /// The hub's address on the underlay.
        local: IpAddr,
        /// The other ends on the underlay.
        others: Vec<IpAddr>,
        /// A group that the underlay delivers to all of them; without one, this host sends a copy to each.
        group: Option<IpAddr>,
    },
    /// Under a VLAN tag.
    Tag(u16),
    /// The port is the circuit, which another system set up.
    Declared,
}

/// The rate limit of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndShape {
    /// Ethernet-frame bits per second.
    pub rate_bps: u64,
    /// The circuit may also use the port's spare capacity.
    pub soft: bool,
    /// The maximum burst; `None`: the host decides.
    pub burst_bytes: Option<u32>,
    /// The rate of the port, if known.
    pub port_rate_bps: Option<u64>,
}

impl Lease {
    /// Checks a lease.
    ///
    /// # Errors
    ///
    /// It can't be set up as the line describes it.
    pub fn read(line: LeaseLine) -> Result<Self, Failure> {
        let number = line.lease;
        let mut own = None;
        let mut others = Vec::new();
        for end in &line.ends {
            let address = inner_address(&end.address).ok_or_else(|| {
                Failure::bad_request(format!(
                    "lease {number}: {:?} of {} is not an address with a prefix, like 10.9.0.1/31",
                    end.address, end.end
                ))
            })?;
            match &end.site {
                None => own = Some(HubEnd { line: end.clone(), address }),
                Some(site) => others.push((site.clone(), end.clone(), address)),
            }
            check_carried(&line, end)?;
        }
        let passes = own.is_none() && others.is_empty() && !line.transits.is_empty();
        if !passes {
            check_ends(number, own.is_some(), &others)?;
        }
        check_transits(&line)?;
        if !(0.1..=1.0).contains(&line.shaped_share) {
            return Err(Failure::bad_request(format!(
                "lease {number}: a shaped share of {} is not between 0.1 and 1",
                line.shaped_share
            )));
        }
        Ok(Self { line, own, others })
    }

    /// The number of the lease.
    pub fn number(&self) -> u32 {
        self.line.lease
    }

    /// The two sites that it joins without the hub: the nearer one, which watches and measures it, and the other one.
    pub fn pair(&self) -> Option<(&SiteName, &SiteName)> {
        match (&self.own, self.others.as_slice()) {
            (None, [(near, ..), (far, ..)]) => Some((near, far)),
            _ => None,
        }
    }

    /// True if sites of this hub only join hops between machines of other networks.
    pub fn passes(&self) -> bool {
        self.own.is_none() && self.others.is_empty()
    }

    /// The place of the hub's end, for people; without one, the hub.
    pub fn hop(&self, hub: &str) -> String {
        self.own.as_ref().map_or_else(|| hub.to_owned(), |own| format!("{} at {hub}", own.line.end))
    }

    /// The name of the hub's port.
    pub(super) fn own_port(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.line.end.as_str())
    }

    /// True if its time is over.
    pub fn is_over(&self, now: WallMicros) -> bool {
        self.line.until_us.is_some_and(|until| until <= now)
    }

    /// The hub's end, if it has one. If it replicates frames for each end, its rate is multiplied accordingly.
    pub fn own_end(&self) -> Option<OwnEnd> {
        let HubEnd { line: own, address } = self.own.as_ref()?;
        let copies =
            if self.line.replication == Some(Replication::Underlay) { 1 } else { self.others.len() as u64 };
        let ends = || self.others.iter().filter_map(|(_, end, _)| end.underlay).collect();
        let others = own.via.map_or_else(ends, |via| vec![via]);
        Some(OwnEnd {
            lease: self.line.lease,
            port: own.interface.clone(),
            way: match (self.line.driver, self.line.vni_at(own), own.underlay, own.vlan) {
                (CircuitDriver::Declared, ..) => EndWay::Declared,
                (_, Some(vni), Some(local), _) => EndWay::Tunnel { vni, local, others, group: self.group() },
                (_, _, _, tag) => EndWay::Tag(tag.unwrap_or_default()),
            },
            address: *address,
            shape: self.is_shaped().then(|| EndShape {
                rate_bps: self.of_class(self.line.rate_out_bps).saturating_mul(copies),
                soft: self.line.cap == Cap::Soft,
                burst_bytes: self.line.burst_bytes,
                port_rate_bps: own.port_rate_bps,
            }),
        })
    }

    /// The offer to a site for its end.
    pub fn offer(&self, site: &SiteName, secret: Ticket) -> Option<CircuitOffer> {
        let Some((_, end, _)) = self.others.iter().find(|(name, ..)| name == site) else {
            return self.transit_offer(site);
        };
        let others =
            end.via.or_else(|| self.opposite(site)).map(|address| address.to_string()).into_iter().collect();
        let watches = self.pair().is_some_and(|(near, _)| near == site);
        let rate_bps = if watches { self.line.rate_out_bps } else { self.line.rate_in_bps };
        Some(CircuitOffer {
            lease: self.line.lease,
            port: end.interface.clone(),
            way: match (self.line.driver, self.line.vni_at(end), end.underlay, end.vlan) {
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
            rate_bps: if self.is_shaped() { self.of_class(rate_bps) } else { 0 },
            soft: self.line.cap == Cap::Soft,
            burst_bytes: self.line.burst_bytes,
            port_rate_bps: end.port_rate_bps,
            secret,
            peer_address: self.peer_of(site)?.to_string(),
            until: self.line.until_us,
            watches: watches.then_some(true),
            transit: None,
        })
    }

    /// The underlay address of the end opposite to a site's. The ends of a multipoint circuit reach the hub alone, so
    /// that an end that joins or leaves changes none of the others.
    fn opposite(&self, site: &SiteName) -> Option<IpAddr> {
        match &self.own {
            Some(own) => own.line.underlay,
            None => self.others.iter().find(|(name, ..)| name != site).and_then(|(_, end, _)| end.underlay),
        }
    }

    /// The address of the end opposite to a site's: the hub's, or that of the other site.
    fn peer_of(&self, site: &SiteName) -> Option<IpAddr> {
        let own = self.own.as_ref().map(|own| own.address.0);
        own.or_else(|| self.others.iter().find(|(name, ..)| name != site).map(|(.., (address, _))| *address))
    }

    /// The address of a site's end inside the circuit.
    pub fn address_of(&self, site: &SiteName) -> Option<IpAddr> {
        self.others.iter().find(|(name, ..)| name == site).map(|(_, _, (address, _))| *address)
    }

    /// The other end, if there is only one: all traffic of the hub's end goes to it.
    pub fn only_site(&self) -> Option<SiteName> {
        match self.others.as_slice() {
            [(site, ..)] => Some(site.clone()),
            _ => None,
        }
    }

    /// The size of a probe packet on the port.
    pub fn probe_frame_bytes(&self) -> u32 {
        let first = self.own.as_ref().map(|own| &own.line);
        let first = first.or_else(|| self.others.first().map(|(_, end, _)| end));
        let (vni, underlay) = first.map_or((None, None), |end| (self.line.vni_at(end), end.underlay));
        let around = match (self.line.driver, vni, underlay) {
            (CircuitDriver::Linux, Some(_), Some(IpAddr::V4(_))) => VXLAN_BYTES,
            (CircuitDriver::Linux, Some(_), Some(IpAddr::V6(_))) => VXLAN6_BYTES,
            (CircuitDriver::Linux, ..) => TAG_BYTES,
            (CircuitDriver::Declared, ..) => 0,
        };
        PROBE_FRAME_BYTES + around
    }

    /// The part of its shaped outgoing rate, or of the measured rate if that is less, for frames inside it:
    /// the tunnel's own headers come on top.
    pub fn rate_inside_bps(&self, measured_bps: u64) -> u64 {
        let shaped = self.shaped(self.line.rate_out_bps);
        let carried = if measured_bps == 0 { shaped } else { shaped.min(measured_bps) };
        carried.saturating_mul(PROBE_FRAME_BYTES.into()) / u64::from(self.probe_frame_bytes())
    }

    /// The rate of TCP payload that its shaped outgoing rate allows, without the headers of full frames.
    pub fn paced_bps(&self) -> u64 {
        self.rate_inside_bps(0).saturating_mul(FULL_PAYLOAD_BYTES) / FULL_FRAME_BYTES
    }

    fn group(&self) -> Option<IpAddr> {
        self.line.group.filter(|_| self.line.replication == Some(Replication::Underlay))
    }

    /// A declared circuit with a soft cap is limited by its provider.
    pub fn is_shaped(&self) -> bool {
        self.line.driver == CircuitDriver::Linux || self.line.cap == Cap::Hard
    }

    /// The rate of an end's class: the networks behind a soft cap drop nothing, so all of its rate is guaranteed.
    pub(super) fn of_class(&self, rate_bps: u64) -> u64 {
        if self.line.cap == Cap::Soft { rate_bps } else { self.shaped(rate_bps) }
    }

    fn shaped(&self, rate_bps: u64) -> u64 {
        (rate_bps as f64 * self.line.shaped_share) as u64
    }
}

impl LeaseLine {
    /// The identifier of the tunnel at an end.
    fn vni_at(&self, end: &EndLine) -> Option<u32> {
        end.vni.or(self.vni)
    }
}

/// Checks that the ends are those of one circuit.
fn check_ends(
    number: u32,
    has_own: bool,
    others: &[(SiteName, EndLine, (IpAddr, u8))],
) -> Result<(), Failure> {
    let sentence = match others {
        [] => "has one end only".to_owned(),
        [_, ..] if has_own => return Ok(()),
        [_] => "has no end at this hub".to_owned(),
        [(one, ..), (other, ..)] if one == other => format!("has two ends at {one}"),
        [_, _] => return Ok(()),
        [..] => format!("joins {} sites and has no end at this hub", others.len()),
    };
    Err(Failure::bad_request(format!("lease {number} {sentence}")))
}

/// Checks that frames can leave by an end.
fn check_carried(line: &LeaseLine, end: &EndLine) -> Result<(), Failure> {
    if line.driver == CircuitDriver::Declared {
        return Ok(());
    }
    let told = check_tag(line.vni_at(end), end.vlan, end.underlay.is_some());
    told.map_err(|told| Failure::bad_request(format!("lease {}: the end {} has {told}", line.lease, end.end)))
}

/// The size of a probe packet on an Ethernet, without a tunnel around it: with the headers of a tunnel over IPv6 it
/// still fits an Ethernet.
pub const PROBE_FRAME_BYTES: u32 = 1_414;

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

    const LINE: &str = r#"{"lease": 17, "driver": "linux", "shape": "point-to-point", "replication": "head-end",
        "vni": 700, "cap": "hard", "rate_out_bps": 60000000, "rate_in_bps": 10000000, "ends": ENDS}"#;

    fn line(ends: &str) -> LeaseLine {
        serde_json::from_str(&LINE.replace("ENDS", ends)).unwrap()
    }

    const HUB: &str =
        r#"{"end": "hub-eth0", "interface": "eth0", "underlay": "10.77.0.1", "address": "10.9.0.0/29"}"#;

    fn site(number: u32) -> String {
        format!(
            r#"{{"end": "p{number}", "site": "s{number}", "interface": "eth0",
                "underlay": "10.77.0.{number}", "address": "10.9.0.{number}/29"}}"#
        )
    }

    const FAR_TAG: (&str, &str) =
        ("\"underlay\": \"10.77.0.2\"", "\"vlan\": 11, \"underlay\": \"10.77.0.2\"");

    /// A lease to one site with other text in some places.
    fn lease(changes: &[(&str, &str)]) -> Lease {
        let line = LINE.replace("ENDS", &format!("[{HUB}, {}]", site(2)));
        let line = changes.iter().fold(line, |line, (from, to)| line.replace(from, to));
        Lease::read(serde_json::from_str(&line).unwrap()).unwrap()
    }

    #[test]
    fn both_ends_are_shaped_to_nine_tenths_of_what_they_send() {
        let lease = Lease::read(line(&format!("[{HUB}, {}]", site(2)))).unwrap();
        assert_eq!(lease.own_end().unwrap().shape.unwrap().rate_bps, 54_000_000);
        let offer = lease.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap();
        assert_eq!((offer.rate_bps, offer.peer_address.as_str()), (9_000_000, "10.9.0.0"));
        assert_eq!((offer.watches, lease.pair()), (None, None));
        assert_eq!(lease.only_site(), SiteName::parse("s2").ok());
        assert_eq!((lease.probe_frame_bytes(), lease.rate_inside_bps(0)), (1_464, 52_155_737));
        assert_eq!(lease.rate_inside_bps(60_000_000), 52_155_737, "never more than is shaped");
        assert_eq!(lease.rate_inside_bps(30_000_000), 28_975_409, "what was measured is less");
    }

    #[test]
    fn copies_for_several_ends_are_several_times_the_rate() {
        let lease = Lease::read(line(&format!("[{HUB}, {}, {}]", site(2), site(3)))).unwrap();
        let end = lease.own_end().unwrap();
        assert_eq!((end.shape.unwrap().rate_bps, lease.only_site()), (108_000_000, None));
    }

    #[test]
    fn an_end_that_joins_changes_no_other_one() {
        let lease = |ends: &[u32]| {
            let ends: Vec<String> = ends.iter().map(|number| site(*number)).collect();
            Lease::read(line(&format!("[{HUB}, {}]", ends.join(", ")))).unwrap()
        };
        let (two, three) = (lease(&[2, 3]), lease(&[2, 3, 4]));
        let offer = |lease: &Lease, site| lease.offer(&SiteName::parse(site).unwrap(), Ticket([0; 16]));
        assert_eq!(offer(&two, "s2"), offer(&three, "s2"));
        assert_eq!(offer(&two, "s3"), offer(&three, "s3"));
        let CircuitWay::Tunnel { others, .. } = offer(&three, "s4").unwrap().way else { panic!("a tunnel") };
        assert_eq!(others, ["10.77.0.1"], "the ends at sites reach the hub alone");
        assert!(offer(&two, "s4").is_none());
    }

    #[test]
    fn the_hubs_end_is_a_tunnel_a_tag_or_the_port_itself() {
        let own_end = |changes: &[(&str, &str)]| lease(changes).own_end().unwrap();
        let tunnel = own_end(&[]);
        let (local, far) = ("10.77.0.1".parse().unwrap(), "10.77.0.2".parse().unwrap());
        assert_eq!(tunnel.way, EndWay::Tunnel { vni: 700, local, others: vec![far], group: None });
        assert_eq!((tunnel.address, tunnel.port.as_str()), (("10.9.0.0".parse().unwrap(), 29), "eth0"));
        let tag = lease(&[
            ("\"vni\": 700", "\"vni\": null"),
            ("\"underlay\": \"10.77.0.1\"", "\"vlan\": 9"),
            FAR_TAG,
        ]);
        assert_eq!(tag.own_end().unwrap().way, EndWay::Tag(9));
        let declared = lease(&[("linux", "declared"), ("hard", "soft")]);
        let end = declared.own_end().unwrap();
        assert_eq!((end.way, end.shape), (EndWay::Declared, None));
        assert_eq!(declared.probe_frame_bytes(), PROBE_FRAME_BYTES);
        let rate =
            |line: &Lease| line.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap().rate_bps;
        assert_eq!((rate(&declared), rate(&tag)), (0, 9_000_000));
    }

    #[test]
    fn each_end_has_the_tag_of_its_hop() {
        let hops = lease(&[
            ("\"vni\": 700", "\"vni\": null"),
            ("\"underlay\": \"10.77.0.1\"", "\"vni\": 3021, \"underlay\": \"10.77.0.1\""),
            ("\"underlay\": \"10.77.0.2\"", "\"vni\": 3123, \"underlay\": \"10.77.0.2\""),
        ]);
        let EndWay::Tunnel { vni: near, .. } = hops.own_end().unwrap().way else { panic!("a tunnel") };
        let offer = hops.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap();
        let CircuitWay::Tunnel { vni: far, .. } = offer.way else { panic!("a tunnel") };
        assert_eq!((near, far, hops.probe_frame_bytes()), (3021, 3123, 1_464));
        // A tag of the end alone is a VLAN, whatever the port's address.
        let tags = lease(&[
            ("\"vni\": 700", "\"vni\": null"),
            FAR_TAG,
            ("\"10.77.0.1\"", "\"10.77.0.1\", \"vlan\": 9"),
        ]);
        assert_eq!(tags.own_end().unwrap().way, EndWay::Tag(9));
        let offer = tags.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap();
        assert_eq!((offer.way, tags.probe_frame_bytes()), (CircuitWay::Tag(11), 1_418));
    }

    #[test]
    fn a_soft_cap_guarantees_the_whole_rate() {
        let soft = lease(&[("hard", "soft")]);
        let shape = soft.own_end().unwrap().shape.unwrap();
        let offer = soft.offer(&SiteName::parse("s2").unwrap(), Ticket([0; 16])).unwrap();
        assert_eq!((shape.rate_bps, offer.rate_bps), (60_000_000, 10_000_000));
        assert_eq!(soft.rate_inside_bps(0), 52_155_737, "a leg leaves room for repairs");
    }

    #[test]
    fn two_sites_get_the_ends_of_a_circuit_without_the_hub() {
        let lease = Lease::read(line(&format!("[{}, {}]", site(2), site(3)))).unwrap();
        let [near, far] = ["s2", "s3"].map(|name| SiteName::parse(name).unwrap());
        assert_eq!(
            (lease.pair(), lease.own_end(), lease.hop("hub")),
            (Some((&near, &far)), None, "hub".into())
        );
        let offer = |site| lease.offer(site, Ticket([0; 16])).unwrap();
        assert_eq!((offer(&near).rate_bps, offer(&far).rate_bps), (54_000_000, 9_000_000));
        assert_eq!((offer(&near).watches, offer(&far).watches), (Some(true), None));
        let peers = [&near, &far].map(|site| offer(site).peer_address);
        assert_eq!(peers, ["10.9.0.3", "10.9.0.2"]);
        let CircuitWay::Tunnel { local, others, .. } = offer(&near).way else { panic!("a tunnel") };
        assert_eq!((local.as_str(), others), ("10.77.0.2", vec!["10.77.0.3".to_owned()]));
        assert_eq!((lease.probe_frame_bytes(), lease.only_site()), (1_464, None));
    }

    #[test]
    fn a_lease_without_an_end_of_its_time_lasts() {
        let until = |until| lease(&[("\"cap\"", until)]).is_over(WallMicros(50));
        assert!(!until("\"cap\""));
        assert!(until("\"until_us\": 50, \"cap\"") && !until("\"until_us\": 51, \"cap\""));
    }

    #[test]
    fn what_is_no_lease_is_told_in_a_sentence() {
        let refused = |ends: &str| Lease::read(line(ends)).unwrap_err().error;
        assert_eq!(refused(&format!("[{HUB}]")), "lease 17 has one end only");
        assert_eq!(refused(&format!("[{}]", site(2))), "lease 17 has no end at this hub");
        assert_eq!(refused(&format!("[{0}, {0}]", site(2))), "lease 17 has two ends at s2");
        let three = format!("[{}, {}, {}]", site(2), site(3), site(4));
        assert_eq!(refused(&three), "lease 17 joins 3 sites and has no end at this hub");
        assert!(refused(&format!("[{HUB}, {}]", site(2).replace("/29", ""))).contains("like 10.9.0.1/31"));
        for (bad, told) in
            [("\"vni\": 16777216", "VNI 16777216; they are 1 to 16777215"), ("\"vni\": 0", "VNI 0")]
        {
            let far = site(2).replace(r#""interface""#, &format!(r#"{bad}, "interface""#));
            assert!(refused(&format!("[{HUB}, {far}]")).contains(told), "{bad}");
        }
        let nowhere = site(2).replace(r#""underlay": "10.77.0.2", "#, "");
        assert!(refused(&format!("[{HUB}, {nowhere}]")).contains("neither a tunnel's address nor a tag"));
    }
}
