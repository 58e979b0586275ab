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
}
