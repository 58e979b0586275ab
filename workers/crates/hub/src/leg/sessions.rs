//! A leg's view of the hub's sessions.
use std::collections::BTreeMap;

use downburst_model::{LegId, SiteName};

use super::api::LegSession;
use crate::registry::{SessionHandle, SessionLink};

impl LegSession {
    /// The sessions, as the leg sees them.
    pub fn on<L: SessionLink>(
        leg: LegId,
        open: &BTreeMap<SiteName, SessionHandle<L>>,
    ) -> BTreeMap<SiteName, Self> {
        open.iter().map(|(site, handle)| (site.clone(), Self::of(leg, handle))).collect()
    }

    /// Counts the headers of an AMT tunnel to these sites as part of their paths.
    pub fn in_tunnels(
        open: BTreeMap<SiteName, Self>,
        has_tunnel: impl Fn(&SiteName) -> bool,
    ) -> BTreeMap<SiteName, Self> {
        let with = |(site, session): (SiteName, Self)| {
            let path = session.path_mtu_bytes.unwrap_or(ETHERNET_MTU_BYTES).min(ETHERNET_MTU_BYTES);
            let path_mtu_bytes = Some(path.saturating_sub(TUNNEL_BYTES));
            if has_tunnel(&site) { (site, Self { path_mtu_bytes, ..session }) } else { (site, session) }
        };
        open.into_iter().map(with).collect()
    }

    fn of<L: SessionLink>(leg: LegId, handle: &SessionHandle<L>) -> Self {
        let (session, credential) = (handle.serial, handle.credential_sha256.clone());
        handle.with_status(|status| Self {
            session,
            credential,
            offered: status.offered.values().any(|offered| *offered == leg),
            hears: status.hears(leg),
            path_mtu_bytes: status.path.as_ref().and_then(|path| path.path_mtu_bytes),
        })
    }
}

/// The headers before a packet in a tunnel: IPv6, UDP, and AMT's two octets (RFC 7450, section 5.1.6).
const TUNNEL_BYTES: u64 = 40 + 8 + 2;
const ETHERNET_MTU_BYTES: u64 = 1_500;

#[cfg(test)]
mod tests {
    use downburst_model::FeedName;

    use super::*;
    use crate::registry::testlink::TestLink;
    use crate::session::StatusChange;

    #[test]
    fn a_session_takes_part_by_an_offer_and_hears_by_a_join() {
        let (link, feed) = (TestLink::default(), FeedName::parse("NGRID").unwrap());
        let oslo = SiteName::parse("oslo").unwrap();
        let credential_sha256 = "digest".to_owned();
        let handle = SessionHandle { serial: 7, credential_sha256, stand_by: false, link: link.clone() };
        let open = BTreeMap::from([(oslo.clone(), handle)]);
        let seen = |leg| {
            let session = LegSession::on(leg, &open).remove(&oslo).unwrap();
            assert_eq!((session.session, session.credential.as_str()), (7, "digest"));
            (session.offered, session.hears)
        };
        assert_eq!(seen(LegId(5)), (false, false));
        link.with_status(|status| status.offered.insert(feed.clone(), LegId(5)));
        assert_eq!((seen(LegId(5)), seen(LegId(6))), ((true, false), (false, false)));
        link.with_status(|status| status.apply(StatusChange::Joined(feed, LegId(5))));
        assert_eq!((seen(LegId(5)), seen(LegId(6))), ((true, true), (false, false)));
    }

    #[test]
    fn a_tunnels_headers_shorten_the_path_of_its_site() {
        let session = |path_mtu_bytes| LegSession {
            session: 1,
            credential: String::new(),
            offered: true,
            hears: true,
            path_mtu_bytes,
        };
        let site = |name: &str| SiteName::parse(name).unwrap();
        let open = [("a", None), ("b", Some(1_400)), ("c", Some(9_000)), ("d", None)];
        let open = open.map(|(name, mtu_bytes)| (site(name), session(mtu_bytes))).into_iter().collect();
        let seen = LegSession::in_tunnels(open, |name| *name != site("d"));
        let seen: Vec<Option<u64>> = seen.into_values().map(|it| it.path_mtu_bytes).collect();
        assert_eq!(seen, [Some(1_450), Some(1_350), Some(1_450), None]);
    }
}
