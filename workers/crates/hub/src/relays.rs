//! Relays of the hub: their reports, with the sites that come by their tunnels.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use downburst_model::{LegId, Micros, SiteName};
use downburst_session::{RelayReport, RelayedLeg, Segment, TunnelFacts};
use serde::Serialize;

use crate::text::shown;

/// The reports of one relay during a session.
#[derive(Debug, Default)]
pub(crate) struct RelayReports {
    /// The sites of the tunnels in the last report, by the tunnel's address towards the hub: at its end a tunnel's
    /// connection is gone.
    sites: BTreeMap<String, SiteName>,
    /// The moment until which the reports so far would last, at one a second.
    taken_to: Micros,
    /// The relay's address, from which its tunnels come, too.
    host: Option<IpAddr>,
    /// The first false claim, until it is reported; `Some(None)` after that.
    false_claim: Option<Option<SocketAddr>>,
}

impl RelayReports {
    /// Those of a session from this address.
    pub(crate) fn of(host: IpAddr) -> Self {
        Self { host: Some(host.to_canonical()), ..Self::default() }
    }

    /// The line about a report, with the sites that `site_at` finds by the peer's address of their connections; `None`
    /// if the relay reports too often. A tunnel that claims the connection of another host has no site.
    pub(crate) fn take(
        &mut self,
        now: Micros,
        relay: &SiteName,
        report: RelayReport,
        site_at: impl Fn(SocketAddr) -> Option<SiteName>,
    ) -> Option<RelayLine> {
        if self.taken_to > now.plus(AHEAD) {
            return None;
        }
        self.taken_to = self.taken_to.max(now).plus(INTERVAL);
        let before = std::mem::take(&mut self.sites);
        let RelayReport { tunnels, legs, refused } = report;
        let mut lines = Vec::with_capacity(tunnels.len());
        for facts in tunnels {
            let found = self.found(&facts.hub_side, &site_at);
            let site = found.or_else(|| before.get(&facts.hub_side).cloned());
            if let Some(site) = &site {
                self.sites.insert(facts.hub_side.clone(), site.clone());
            }
            lines.push(TunnelLine::of(site, facts));
        }
        let legs = legs.into_iter().map(RelayedLegLine::from).collect();
        Some(RelayLine { relay: relay.clone(), refused, tunnels: lines, legs })
    }

    /// The first claim to the connection of another host, once: a sentence for the operator.
    pub(crate) fn false_claim(&mut self, relay: &SiteName) -> Option<String> {
        let peer = self.false_claim.as_mut()?.take()?;
        Some(format!(
            "relay {relay} claims the connection from {peer}, which does not come from its host; the claim is \
             ignored: let the relay reach the hub from one address, or revoke its credential"
        ))
    }

    /// The site of a connection that comes from the relay's own host.
    fn found(
        &mut self,
        hub_side: &str,
        site_at: impl Fn(SocketAddr) -> Option<SiteName>,
    ) -> Option<SiteName> {
        let peer: SocketAddr = hub_side.parse().ok()?;
        let site = site_at(peer)?;
        if self.host == Some(peer.ip().to_canonical()) {
            return Some(site);
        }
        self.false_claim.get_or_insert(Some(peer));
        None
    }
}

/// The report of a relay, for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayLine {
    /// The relay's name as a site.
    pub relay: SiteName,
    /// Refused requests for tunnels since its start.
    pub refused: u64,
    /// Its tunnels; one that ended is reported once more.
    pub tunnels: Vec<TunnelLine>,
    /// The legs that it sends into its local network.
    pub legs: Vec<RelayedLegLine>,
}

/// One tunnel of a relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TunnelLine {
    /// The site that comes by it, if it has a connection here.
    pub site: Option<SiteName>,
    /// The address of the site as the relay sees it.
    pub site_side: String,
    /// The relay's own address towards the hub.
    pub hub_side: String,
    /// The requested target.
    pub target: String,
    /// Its age.
    pub seconds: u64,
    /// Bytes to the site.
    pub bytes_from_hub: u64,
    /// Bytes to the hub.
    pub bytes_from_site: u64,
    /// The present rate to the site.
    pub rate_from_hub_bps: u64,
    /// The segment to the site.
    pub near: SegmentLine,
    /// The segment to the hub.
    pub onward: SegmentLine,
    /// True if it has ended.
    pub ended: bool,
}

/// The kernel's figures of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentLine {
    /// The least round trip.
    pub round_trip_us: Option<u64>,
    /// Segments sent again, per million.
    pub loss_ppm: Option<u64>,
    /// The name of the congestion control.
    pub congestion: String,
    /// The rate at which the other end acknowledges.
    pub rate_bps: u64,
}

/// A leg that a relay sends into its local network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayedLegLine {
    /// The leg.
    pub leg: LegId,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams dropped.
    pub dropped: u64,
}

impl TunnelLine {
    fn of(site: Option<SiteName>, facts: TunnelFacts) -> Self {
        Self {
            site,
            site_side: shown(&facts.site_side),
            hub_side: shown(&facts.hub_side),
            target: shown(&facts.target),
            seconds: facts.seconds,
            bytes_from_hub: facts.bytes_from_hub,
            bytes_from_site: facts.bytes_from_site,
            rate_from_hub_bps: facts.rate_from_hub_bps,
            near: facts.near.into(),
            onward: facts.onward.into(),
            ended: facts.ended,
        }
    }
}

impl From<Segment> for SegmentLine {
    fn from(segment: Segment) -> Self {
        let Segment { round_trip_us, loss_ppm, congestion, rate_bps } = segment;
        Self { round_trip_us, loss_ppm, congestion: shown(&congestion), rate_bps }
    }
}

impl From<RelayedLeg> for RelayedLegLine {
    fn from(leg: RelayedLeg) -> Self {
        let RelayedLeg { leg, datagrams, bytes, dropped } = leg;
        Self { leg, datagrams, bytes, dropped }
    }
}

/// A relay reports every 10 s and when tunnels end, at most once a second. A slow path may bring some together.
const INTERVAL: Micros = Micros::from_secs(1);
const AHEAD: Micros = Micros::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn relay() -> RelayReports {
        RelayReports::of("10.0.0.9".parse().unwrap())
    }

    fn report(tunnels: &[(&str, bool)]) -> RelayReport {
        let tunnel = |(hub_side, ended): &(&str, bool)| TunnelFacts {
            hub_side: (*hub_side).to_owned(),
            target: "hub\u{7}:1".to_owned(),
            ended: *ended,
            ..TunnelFacts::default()
        };
        RelayReport { tunnels: tunnels.iter().map(tunnel).collect(), legs: Vec::new(), refused: 4 }
    }

    fn take(reports: &mut RelayReports, seconds: u64, report: RelayReport, known: bool) -> Option<RelayLine> {
        let oslo: SocketAddr = "10.0.0.9:4000".parse().unwrap();
        let site_at = |peer| (known && peer == oslo).then(|| name("oslo"));
        reports.take(Micros::from_secs(seconds), &name("campus"), report, site_at)
    }

    fn sites(line: &RelayLine) -> Vec<Option<&str>> {
        line.tunnels.iter().map(|tunnel| tunnel.site.as_ref().map(SiteName::as_str)).collect()
    }

    #[test]
    fn a_tunnel_has_the_site_of_its_connection_also_once_that_is_gone() {
        let mut reports = relay();
        let both = [("10.0.0.9:4000", false), ("10.0.0.9:4001", false), ("no address", false)];
        let line = take(&mut reports, 1, report(&both), true).unwrap();
        assert_eq!(sites(&line), [Some("oslo"), None, None]);
        assert_eq!((line.relay, line.refused, line.tunnels[0].target.as_str()), (name("campus"), 4, "hub:1"));
        let line = take(&mut reports, 11, report(&[("10.0.0.9:4000", true)]), false).unwrap();
        assert_eq!(sites(&line), [Some("oslo")]);
        take(&mut reports, 21, report(&[]), false).unwrap();
        let line = take(&mut reports, 31, report(&[("10.0.0.9:4000", false)]), false).unwrap();
        assert_eq!(sites(&line), [None], "another tunnel may have the port by now");
    }

    #[test]
    fn a_claim_to_a_connection_of_another_host_is_ignored() {
        let any = |_: SocketAddr| Some(name("oslo"));
        for (host, expected) in
            [("10.0.0.7", None), ("10.0.0.9", Some("oslo")), ("::ffff:10.0.0.9", Some("oslo"))]
        {
            let mut reports = RelayReports::of(host.parse().unwrap());
            let claims = report(&[("10.0.0.9:4000", false), ("10.0.0.9:4001", false)]);
            let line = reports.take(Micros::from_secs(1), &name("campus"), claims, any).unwrap();
            assert_eq!(sites(&line), [expected; 2], "{host}");
            assert_eq!(reports.false_claim(&name("campus")).is_some(), expected.is_none(), "{host}");
            assert_eq!(reports.false_claim(&name("campus")), None, "told once");
        }
    }

    #[test]
    fn a_relay_that_reports_without_end_is_heard_once_a_second() {
        let mut reports = relay();
        let heard = (0..1_000).filter(|_| take(&mut reports, 100, report(&[]), true).is_some()).count();
        assert!((10..=12).contains(&heard), "{heard}");
        let later = (101..161).filter(|at| take(&mut reports, *at, report(&[]), true).is_some()).count();
        assert_eq!(later, 60);
    }
}
