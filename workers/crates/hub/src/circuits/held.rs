//! A circuit of which the hub's end is up, or which joins two sites.
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use downburst_model::{FeedName, LegId, SiteName};
use downburst_session::{CircuitOffer, StreamPath, Ticket};

use super::lease::Lease;
use crate::jobs::Failure;
use crate::plans::LegLine;
use crate::session::Way;

/// A circuit in the hub's hands: its own end, if it has one, and those of sites.
#[derive(Clone, Debug)]
pub struct HeldCircuit {
    /// Its lease.
    pub lease: Lease,
    /// The secret that its probes carry.
    pub secret: Ticket,
    /// Its interface at the hub; empty: it joins two sites.
    pub interface: String,
    /// True if the kernel keeps this hub's end to its rate.
    pub shaped: bool,
}

impl HeldCircuit {
    /// The offer to a site for its end.
    pub fn offer(&self, site: &SiteName) -> Option<CircuitOffer> {
        self.lease.offer(site, self.secret.clone())
    }

    /// True if a site's end is the same as under a former lease, so that the site has nothing to change.
    pub fn keeps(&self, site: &SiteName, former: &Self) -> bool {
        self.offer(site).is_some_and(|offer| former.offer(site) == Some(offer))
    }

    /// The sites of a former lease that have no part in it any more.
    pub fn left_by(&self, former: &Self) -> Vec<SiteName> {
        former.parties().filter(|site| !self.parties().any(|other| other == *site)).cloned().collect()
    }

    /// The sites of its ends, with the addresses of these.
    pub fn sites(&self) -> impl Iterator<Item = (&SiteName, IpAddr)> {
        self.lease.others.iter().map(|(site, _, (address, _))| (site, *address))
    }

    /// The sites that have a part in it: those of its ends, and those between two hops.
    pub fn parties(&self) -> impl Iterator<Item = &SiteName> {
        self.lease.others.iter().map(|(site, ..)| site).chain(self.lease.transits().map(|(site, _)| site))
    }

    /// The place of the hub's end, for people.
    pub fn hop(&self, hub: &str) -> String {
        self.lease.hop(hub)
    }

    /// The place of a site's end, for people.
    pub fn hop_of(&self, site: &SiteName) -> String {
        let ends = self.lease.others.iter().map(|(name, end, _)| (name, end.end.as_str()));
        let end = ends.chain(self.lease.transits()).find(|(name, _)| *name == site).map(|(_, end)| end);
        format!("{} at {site}", end.unwrap_or("its port"))
    }

    /// The path of a site's data connections over it; `port` is the hub's for sites.
    pub fn way(&self, site: &SiteName, port: u16, feeds: BTreeSet<FeedName>) -> Option<Way> {
        let to = SocketAddr::new(self.lease.own.as_ref()?.address.0, port);
        let path = StreamPath { to: to.to_string(), from: self.lease.address_of(site)?.to_string() };
        let paced = self.lease.is_shaped() && !self.shaped;
        Some(Way { path, feeds, paced_bps: paced.then(|| self.lease.paced_bps()) })
    }

    /// Gives a multicast leg the circuit's interface and rate.
    pub fn put(&self, leg: &mut LegLine) {
        leg.interface.clone_from(&self.interface);
        leg.rate_bps = self.lease.rate_inside_bps(leg.rate_bps);
    }
}

/// The refusal of a multicast leg whose circuit does not exist.
pub fn not_up(leg: LegId, lease: u32) -> Failure {
    let sentence =
        format!("leg {} is to leave by circuit {lease}, which is not up; bring it up first", leg.0);
    Failure::new("not-up", sentence)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn oslo() -> SiteName {
        SiteName::parse("oslo").unwrap()
    }

    /// A circuit from the hub's port `h0` to the port `p0` of the site `oslo`.
    pub(crate) fn held(shaped: bool) -> HeldCircuit {
        let line = json!({
            "lease": 17, "driver": "linux", "vni": 700, "cap": "hard", "rate_out_bps": 60_000_000,
            "rate_in_bps": 10_000_000,
            "ends": [
                {"end": "h0", "interface": "eth0", "underlay": "10.77.0.1", "address": "10.9.0.0/31"},
                {"end": "p0", "site": "oslo", "interface": "eth0", "underlay": "10.77.0.2",
                    "address": "10.9.0.1/31"},
            ],
        });
        let lease = Lease::read(serde_json::from_value(line).unwrap()).unwrap();
        HeldCircuit { lease, secret: Ticket([7; 16]), interface: "dbc17".to_owned(), shaped }
    }

    #[test]
    fn ends_are_named_with_their_places() {
        let circuit = held(true);
        assert_eq!(
            (circuit.hop("hub"), circuit.hop_of(&oslo())),
            ("h0 at hub".to_owned(), "p0 at oslo".to_owned())
        );
        assert_eq!(circuit.hop_of(&SiteName::parse("paris").unwrap()), "its port at paris");
        let sites: Vec<_> =
            circuit.sites().map(|(site, address)| (site.clone(), address.to_string())).collect();
        assert_eq!(sites, [(oslo(), "10.9.0.1".to_owned())]);
        assert_eq!(circuit.offer(&oslo()).map(|offer| offer.secret), Some(Ticket([7; 16])));
    }

    /// The circuit with an end at the site `paris` as well.
    fn joined() -> HeldCircuit {
        let circuit = held(true);
        let mut lease = circuit.lease.clone();
        let (_, end, _) = lease.others.first().unwrap().clone();
        lease.others.push((SiteName::parse("paris").unwrap(), end, ("10.9.0.2".parse().unwrap(), 31)));
        HeldCircuit { lease, ..circuit }
    }

    #[test]
    fn an_end_that_joins_or_leaves_leaves_the_others_as_they_are() {
        let (one, two, paris) = (held(true), joined(), SiteName::parse("paris").unwrap());
        assert!(two.keeps(&oslo(), &one) && one.keeps(&oslo(), &two));
        assert!(!two.keeps(&paris, &one) && !one.keeps(&paris, &two));
        assert_eq!((one.left_by(&two), two.left_by(&one)), (vec![paris], vec![]));
        let other = HeldCircuit { secret: Ticket([8; 16]), ..held(true) };
        assert!(!other.keeps(&oslo(), &one));
    }

    #[test]
    fn products_are_paced_where_the_kernel_does_not() {
        let way = |shaped| held(shaped).way(&oslo(), 7_370, BTreeSet::new()).unwrap();
        assert_eq!((way(true).path.to.as_str(), way(true).path.from.as_str()), ("10.9.0.0:7370", "10.9.0.1"));
        assert_eq!(way(true).paced_bps, None);
        assert_eq!(way(false).paced_bps, Some(held(false).lease.paced_bps()));
        assert!(held(true).way(&SiteName::parse("paris").unwrap(), 7_370, BTreeSet::new()).is_none());
    }

    #[test]
    fn a_leg_leaves_by_the_circuit_at_its_rate() {
        let leg =
            json!({"leg": 5, "transport": "multicast", "sites": [], "rate_bps": 90_000_000, "circuit": 17});
        let mut leg: LegLine = serde_json::from_value(leg).unwrap();
        held(true).put(&mut leg);
        assert_eq!((leg.interface.as_str(), leg.rate_bps), ("dbc17", 52_155_737));
        assert!(not_up(LegId(5), 17).error.starts_with("leg 5 is to leave by circuit 17, which is not up"));
    }
}
