//! Accounts of sessions: the positions of their sites, and the legs that bring them their feeds.
use std::collections::BTreeMap;

use downburst_model::{FeedName, LegId, Micros, SiteName, Transport};

use super::lines::{FailedAction, HostReadingLine, LinkedFiles, SessionFeed, SessionTraffic, SiteClockLine};
use super::reports::has_turn;
use crate::feeds::AwaitedHeartbeats;
use crate::registry::{SessionLink, SessionRegistry};
use crate::session::SessionStatus;

/// The leg under which unicast deliveries of a feed are counted; `None` if the feed was removed.
pub type UnicastLegs<'a> = &'a dyn Fn(&FeedName) -> Option<LegId>;

/// The accounts of all sessions whose feeds have begun: every product stored from now on is owed to their sites.
pub fn all_sessions<L: SessionLink>(
    registry: &SessionRegistry<L>,
    unicast_leg: UnicastLegs<'_>,
    now: Micros,
) -> Vec<SessionTraffic> {
    let sessions = registry.all().iter();
    let accounts = sessions.filter_map(|(site, handle)| {
        handle.with_status(|status| status.account.is_open().then(|| account(site, status, unicast_leg, now)))
    });
    accounts.collect()
}

/// The accounts of the sessions that changed since the last report or have an overdue heartbeat, and of those that
/// have their turn.
pub fn session_news<L: SessionLink>(
    registry: &SessionRegistry<L>,
    turn: u64,
    unicast_leg: UnicastLegs<'_>,
    now: Micros,
) -> Vec<SessionTraffic> {
    let mut news = Vec::new();
    for (site, handle) in registry.all() {
        handle.with_status(|status| {
            let is_news = status.account.take_change()
                || status.heartbeats.values().any(AwaitedHeartbeats::is_overdue)
                || has_turn(handle.serial, turn);
            if is_news && status.account.is_open() {
                news.push(account(site, status, unicast_leg, now));
            }
        });
    }
    news
}

/// The number of sites that each leg serves.
pub fn sites_by_leg<L: SessionLink>(
    registry: &SessionRegistry<L>,
    unicast_leg: UnicastLegs<'_>,
) -> BTreeMap<LegId, u64> {
    let mut sites = BTreeMap::new();
    for handle in registry.all().values() {
        handle.with_status(|status| {
            for leg in status.frontiers.keys().filter_map(|feed| leg(feed, status, unicast_leg)) {
                *sites.entry(leg).or_default() += 1;
            }
        });
    }
    sites
}

fn account(
    site: &SiteName,
    status: &SessionStatus,
    unicast_leg: UnicastLegs<'_>,
    now: Micros,
) -> SessionTraffic {
    let stands = status.frontiers.iter().filter_map(|(feed, (settled_to, pending))| {
        let is_joined = status.joined.contains_key(feed);
        Some(SessionFeed {
            feed: feed.clone(),
            settled_to: *settled_to,
            pending: *pending,
            trouble: status.troubles.get(feed).cloned(),
            action_failed: status.failed_actions.get(feed).map(FailedAction::from),
            linked: status.host.linked.get(feed).map(LinkedFiles::from),
            reading: status.host.readings.get(feed).map(HostReadingLine::from),
            late: status.late.get(feed).copied().unwrap_or_default(),
            transport: if is_joined { Transport::Multicast } else { Transport::Unicast },
            leg: leg(feed, status, unicast_leg)?,
            heartbeat_us: status.heartbeats.get(feed).and_then(AwaitedHeartbeats::newest_out),
            heartbeat_waits_us: status.heartbeats.get(feed).and_then(AwaitedHeartbeats::waits_since),
            heartbeat_waited_us: status.heartbeats.get(feed).and_then(|beats| Some(beats.waited(now)?.0)),
        })
    });
    SessionTraffic {
        site: site.clone(),
        clock_offset_us: status.clock.compared.map(|clock| clock.offset_us),
        clock_bound_us: status.clock.compared.map(|clock| clock.bound_us),
        round_trip_us: status.clock.compared.map(|clock| clock.round_trip_us),
        site_clock: status.clock.own.as_ref().map(SiteClockLine::from),
        path: status.path.clone(),
        data_connections: status.streams.open,
        data_connections_planned: status.streams.planned,
        data_connections_reason: status.streams.reason.clone(),
        tcp_profile: status.tcp_profile.clone(),
        transfers: Vec::new(),
        feeds: stands.collect(),
    }
}

/// The leg that brings a feed to a site; none where the feed was removed.
fn leg(feed: &FeedName, status: &SessionStatus, unicast_leg: UnicastLegs<'_>) -> Option<LegId> {
    status.joined.get(feed).copied().or_else(|| unicast_leg(feed))
}

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, Sequence, WallMicros};
    use downburst_session::{
        ActionFailed, ClockOffset, Frontier, HostReading, LinkedSpace, PriorityStanding, ReceiveBuffer,
    };

    use super::*;
    use crate::registry::Newcomer;
    use crate::registry::testlink::TestLink;
    use crate::session::StatusChange;

    fn feed(name: &str) -> FeedName {
        FeedName::parse(name).unwrap()
    }

    /// A hub with these sites; each receives the feeds A (over unicast) and M (over leg 50).
    fn registry(sites: &[&str]) -> SessionRegistry<TestLink> {
        let mut registry = SessionRegistry::default();
        for name in sites {
            let mut status = SessionStatus::new(Micros(0));
            status.apply(StatusChange::Began);
            status.frontiers.insert(feed("A"), (Sequence(9), 2));
            status.frontiers.insert(feed("M"), (Sequence(5), 0));
            status.apply(StatusChange::Joined(feed("M"), LegId(50)));
            let link = TestLink::new(status);
            let newcomer = Newcomer { credential_sha256: String::new(), stand_by: false, link };
            registry.register(&SiteName::parse(name).unwrap(), newcomer, Micros(0)).unwrap();
        }
        registry
    }

    /// Feed A is open, and counted under leg 1.
    fn unicast(feed: &FeedName) -> Option<LegId> {
        (feed.as_str() == "A").then_some(LegId(1))
    }

    fn news(registry: &SessionRegistry<TestLink>, turn: u64) -> Vec<String> {
        let news = session_news(registry, turn, &unicast, Micros(0));
        news.iter().map(|it| it.site.as_str().to_owned()).collect()
    }

    fn change(registry: &SessionRegistry<TestLink>, site: &str, change: impl FnOnce(&mut SessionStatus)) {
        registry.find(&SiteName::parse(site).unwrap()).unwrap().with_status(change);
    }

    #[test]
    fn an_account_has_each_feed_with_its_leg() {
        let registry = registry(&["oslo"]);
        change(&registry, "oslo", |status| {
            status.apply(StatusChange::Late(feed("M"), 4));
            status.apply(StatusChange::Planned(3, "it helps".to_owned()));
            status.frontiers.insert(feed("removed"), (Sequence(1), 0));
        });
        let [oslo] = &all_sessions(&registry, &unicast, Micros(0))[..] else { panic!("not one") };
        let feeds = oslo.feeds.iter().map(|it| (it.feed.as_str(), it.leg.0, it.transport, it.late));
        let expected = [("A", 1, Transport::Unicast, 0), ("M", 50, Transport::Multicast, 4)];
        assert_eq!(feeds.collect::<Vec<_>>(), expected, "a removed feed has no leg");
        assert_eq!((oslo.feeds[0].settled_to, oslo.feeds[0].pending), (Sequence(9), 2));
        assert_eq!((oslo.data_connections_planned, oslo.data_connections_reason.as_str()), (3, "it helps"));
        assert_eq!((oslo.clock_offset_us, &oslo.path), (None, &None));
    }

    #[test]
    fn an_account_has_clock_troubles_and_heartbeats() {
        let registry = registry(&["oslo"]);
        change(&registry, "oslo", |status| {
            status.clock.compared = Some(ClockOffset { offset_us: -7, bound_us: 3, round_trip_us: 6 });
            status.troubles.insert(feed("A"), "the disk is full".to_owned());
            status.apply(StatusChange::AnswersFor { feeds: [feed("A")].into(), since: WallMicros(0) });
            let beats = status.heartbeats.get_mut(&feed("A")).unwrap();
            beats.put(Epoch(1), Sequence(3), WallMicros(30), Micros(40));
            beats.came_out(Epoch(1), Sequence(3));
            beats.put(Epoch(1), Sequence(8), WallMicros(80), Micros(90));
        });
        let [oslo] = &all_sessions(&registry, &unicast, Micros(100))[..] else { panic!("not one") };
        assert_eq!(
            (oslo.clock_offset_us, oslo.clock_bound_us, oslo.round_trip_us),
            (Some(-7), Some(3), Some(6))
        );
        let standing = &oslo.feeds[0];
        assert_eq!(standing.trouble.as_deref(), Some("the disk is full"));
        assert_eq!(standing.heartbeat_us, Some(WallMicros(30)));
        assert_eq!(standing.heartbeat_waits_us, Some(WallMicros(80)));
        assert_eq!(standing.heartbeat_waited_us, Some(10));
    }

    #[test]
    fn a_failed_action_counts_at_least_once() {
        let registry = registry(&["oslo"]);
        let failed = ActionFailed {
            rule: "rule 1".to_owned(),
            exit: Some(2),
            last_error: "no".to_owned(),
            product: "SDUS".to_owned(),
            sequence: Sequence(8),
            epoch: Some(Epoch(u64::MAX)),
            count: 0,
            others: vec![Sequence(7)],
        };
        change(&registry, "oslo", |status| drop(status.failed_actions.insert(feed("A"), failed)));
        let [oslo] = &all_sessions(&registry, &unicast, Micros(0))[..] else { panic!("not one") };
        let failed = oslo.feeds[0].action_failed.as_ref().unwrap();
        assert_eq!((failed.count, failed.epoch.as_deref()), (1, Some("18446744073709551615")));
    }

    #[test]
    fn an_account_has_the_space_of_linked_files_until_the_site_reports_none() {
        let registry = registry(&["oslo"]);
        let told = |linked: Option<LinkedSpace>| {
            let frontier = Frontier {
                feed: feed("A"),
                epoch: Epoch(1),
                settled_to: Sequence(9),
                pending: 0,
                trouble: None,
                action_failed: None,
                linked,
            };
            change(&registry, "oslo", |status| status.apply(StatusChange::Stands(frontier)));
            let accounts = session_news(&registry, 29, &unicast, Micros(0));
            accounts[0].feeds[0].linked.map(|it| (it.bytes, it.free_bytes))
        };
        assert_eq!(told(Some(LinkedSpace { bytes: 7, free_bytes: 3 })), Some((7, 3)));
        assert_eq!(told(None), None);
    }

    #[test]
    fn an_account_has_the_last_reading_of_a_group_even_after_the_leg() {
        let registry = registry(&["oslo"]);
        let dropped = || {
            let accounts = session_news(&registry, 29, &unicast, Micros(0));
            let reading = accounts[0].feeds[0].reading.clone();
            reading.map(|it| (it.leg.0, it.dropped, it.standing, it.granted_bytes))
        };
        assert_eq!(dropped(), None);
        for (dropped, standing) in [(3, PriorityStanding::RealTime), (9, PriorityStanding::Lost)] {
            let buffer = ReceiveBuffer { granted_bytes: 131_072, ..ReceiveBuffer::default() };
            let reading = HostReading {
                leg: LegId(50),
                dropped,
                buffer,
                priority: Some(20),
                standing,
                demotions: 1,
                line: None,
            };
            change(&registry, "oslo", |status| status.apply(StatusChange::Reads(feed("A"), reading)));
        }
        change(&registry, "oslo", |status| status.apply(StatusChange::Left(feed("A"))));
        assert_eq!(dropped(), Some((50, 9, "lost", 131_072)));
    }

    #[test]
    fn news_are_reported_once_and_every_session_in_its_turn() {
        let registry = registry(&["oslo", "paris"]);
        assert_eq!(news(&registry, 29), ["oslo", "paris"], "both have just begun");
        assert!(news(&registry, 29).is_empty());
        change(&registry, "paris", |status| status.apply(StatusChange::Streams(1)));
        assert_eq!(news(&registry, 29), ["paris"]);
        assert_eq!(
            (news(&registry, 1), news(&registry, 2)),
            (vec!["oslo".to_owned()], vec!["paris".to_owned()])
        );
    }

    #[test]
    fn a_session_has_no_account_before_its_feeds_begin_and_then_a_whole_one() {
        let mut registry = SessionRegistry::default();
        let link = TestLink::new(SessionStatus::new(Micros(0)));
        let newcomer = Newcomer { credential_sha256: String::new(), stand_by: false, link };
        let oslo = SiteName::parse("oslo").unwrap();
        let turn = registry.register(&oslo, newcomer, Micros(0)).unwrap().handle.serial;
        change(&registry, "oslo", |status| status.apply(StatusChange::Streams(1)));
        assert!(all_sessions(&registry, &unicast, Micros(0)).is_empty());
        assert!(news(&registry, turn).is_empty(), "not even in its turn");
        change(&registry, "oslo", |status| status.apply(StatusChange::Began));
        assert_eq!(all_sessions(&registry, &unicast, Micros(0))[0].data_connections, 1);
        assert_eq!([news(&registry, 29), news(&registry, 29)], [vec!["oslo".to_owned()], vec![]]);
    }

    #[test]
    fn an_overdue_heartbeat_is_news_until_it_comes_out() {
        let registry = registry(&["oslo"]);
        let put = |number: u64| {
            change(&registry, "oslo", |status| {
                let beats = status.heartbeats.entry(feed("A")).or_default();
                beats.put(Epoch(1), Sequence(number), WallMicros(1), Micros(1));
            });
        };
        news(&registry, 29);
        put(1);
        assert!(news(&registry, 29).is_empty(), "it is under way");
        put(2);
        assert_eq!([news(&registry, 29), news(&registry, 29)], [["oslo"], ["oslo"]]);
    }

    #[test]
    fn sites_are_counted_by_the_legs_that_serve_them() {
        let registry = registry(&["oslo", "paris"]);
        change(&registry, "paris", |status| status.apply(StatusChange::Left(feed("M"))));
        let sites = sites_by_leg(&registry, &unicast);
        assert_eq!(sites, [(LegId(1), 2), (LegId(50), 1)].into(), "no leg brings M to Paris any more");
    }
}
