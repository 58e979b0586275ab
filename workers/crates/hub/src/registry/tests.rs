use downburst_model::{FeedName, Now};
use downburst_vcmtp::Urgency;

use super::testlink::TestLink;
use super::*;
use crate::session::StatusChange;

/// A hub with its sites.
#[derive(Default)]
struct Hub {
    sites: Sites,
    registry: SessionRegistry<TestLink>,
}

impl Hub {
    fn register(
        &mut self,
        site: &SiteName,
        stand_by: bool,
        at: Micros,
    ) -> Result<Registered<TestLink>, Refused> {
        let link = TestLink::new(SessionStatus::new(at));
        let newcomer = Newcomer { credential_sha256: "credential".to_owned(), stand_by, link };
        self.registry.register(site, newcomer, at)
    }

    fn told(&mut self, credentials: serde_json::Value) -> Vec<Notice<TestLink>> {
        let wish = serde_json::json!({"feed": "NGRID", "pattern": ".*", "not_pattern": null});
        let line = serde_json::json!({
            "site": "unl.edu", "active": true, "credentials": credentials, "subscriptions": [wish],
        });
        let sites = Sites::told(vec![serde_json::from_value(line).unwrap()]);
        let notices = self.registry.replaced(&self.sites, &sites);
        self.sites = sites;
        notices
    }

    /// The requests of one second: true asks for another credential, false reports its use.
    fn tend(&self, number: u64) -> Vec<bool> {
        let now = second(number);
        let notices = DueCredential::begin(self.registry.due_credentials(&self.sites, now.wall), now);
        notices.iter().map(|(_, input)| matches!(input, SessionInput::WantCredential)).collect()
    }

    /// The requests of each second of the range.
    fn tended(&self, seconds: std::ops::Range<u64>) -> Vec<(u64, bool)> {
        seconds.flat_map(|number| self.tend(number).into_iter().map(move |asks| (number, asks))).collect()
    }
}

fn site() -> SiteName {
    SiteName::parse("unl.edu").unwrap()
}

fn second(number: u64) -> Now {
    Now { monotonic: Micros::from_secs(number), wall: WallMicros(number as i64 * 1_000_000) }
}

/// The reason of a refusal.
fn refused((_, input): &Notice<TestLink>) -> Option<RefusalCode> {
    match input {
        SessionInput::Refuse(refused) => Some(refused.code),
        _ => None,
    }
}

#[test]
fn a_second_receiver_is_refused_while_the_first_is_heard_and_takes_its_place_when_it_is_not() {
    let mut hub = Hub::default();
    let first = hub.register(&site(), false, Micros::from_secs(10)).unwrap().handle;
    first.with_status(|status| status.heard_at = Micros::from_secs(20));
    let early = hub.register(&site(), false, Micros::from_secs(26)).err().unwrap();
    assert_eq!(early.code, RefusalCode::Busy);
    assert!(early.sentence.contains("another receiver is active as site unl.edu"), "{}", early.sentence);
    assert_eq!(hub.registry.find(&site()).map(|handle| handle.serial), Some(first.serial));

    let Registered { handle: second, displaced } =
        hub.register(&site(), false, Micros::from_secs(27)).unwrap();
    assert!(displaced.is_some_and(|it| it.0.is(&first.link) && refused(&it) == Some(RefusalCode::Busy)));
    assert_eq!(hub.registry.find(&site()).map(|handle| handle.serial), Some(second.serial));
    // `closed` after `connected` would mean that the site has left.
    assert!(!hub.registry.unregister(&site(), first.serial), "the end of the first is not told");
    assert!(hub.registry.take_gone().is_empty());
    assert!(hub.registry.unregister(&site(), second.serial));
    assert_eq!(hub.registry.take_gone(), [site()].into());
    assert!(hub.registry.take_gone().is_empty(), "once");
}

#[test]
fn the_first_that_ends_leaves_its_place_at_once() {
    let mut hub = Hub::default();
    let first = hub.register(&site(), false, Micros::from_secs(1)).unwrap().handle;
    assert!(hub.registry.unregister(&site(), first.serial));
    let second = hub.register(&site(), false, Micros::from_secs(1)).unwrap();
    assert!(second.displaced.is_none());
    assert_ne!(second.handle.serial, first.serial, "no number is used again");
}

#[test]
fn a_session_that_stands_by_gives_way_however_well_it_is() {
    let mut hub = Hub::default();
    let first = hub.register(&site(), true, Micros::from_secs(1)).unwrap();
    let second = hub.register(&site(), false, Micros::from_secs(1)).unwrap();
    let displaced = second.displaced.unwrap();
    assert!(displaced.0.is(&first.handle.link) && refused(&displaced) == Some(RefusalCode::Busy));
    assert!(
        hub.register(&site(), true, Micros::from_secs(2)).is_err(),
        "one that serves does not give way to it"
    );
}

#[test]
fn sessions_are_found_by_site_and_by_number() {
    let mut hub = Hub::default();
    let other = SiteName::parse("oslo").unwrap();
    let first = hub.register(&site(), false, Micros(0)).unwrap().handle.serial;
    let second = hub.register(&other, false, Micros(0)).unwrap().handle;
    assert!(hub.registry.with_serial(second.serial).is_some_and(|it| it.link.is(&second.link)));
    assert!(hub.registry.with_serial(first + second.serial).is_none());
    assert_eq!(hub.registry.all().keys().cloned().collect::<Vec<_>>(), [other, site()]);
}

#[test]
fn a_change_is_told_once_and_a_look_is_not() {
    let mut hub = Hub::default();
    let handle = hub.register(&site(), false, Micros::from_secs(1)).unwrap().handle;
    let changed = || handle.with_status(|status| status.account.take_change());
    assert!(!changed(), "its feeds have not begun");
    handle.with_status(|status| status.apply(StatusChange::Began));
    assert!(changed(), "a session that begins is news");
    handle.with_status(|status| status.heard_at = Micros::from_secs(2));
    assert!(!changed());
    handle.with_status(|status| status.apply(StatusChange::Streams(1)));
    assert!(changed() && !changed());
}

#[test]
fn every_session_learns_once_that_an_hour_begins() {
    let mut hub = Hub::default();
    hub.register(&site(), false, Micros(0)).unwrap();
    let hour = |hours: i64| WallMicros(hours * 3_600_000_000 + 5);
    let mut turned = |at| hub.registry.turn_hour(at).len();
    assert_eq!([turned(hour(7)), turned(hour(7)), turned(hour(8)), turned(hour(8))], [1, 0, 1, 0]);
}

#[test]
fn the_connections_that_paid_off_are_remembered_for_the_next_session() {
    let mut registry = SessionRegistry::<TestLink>::default();
    assert_eq!(registry.learnt(&site()), 0);
    registry.learn(&site(), 3);
    assert_eq!(registry.learnt(&site()), 3);
    registry.learn(&site(), 0);
    assert_eq!((registry.learnt(&site()), registry.learnt.len()), (0, 0));
}

#[test]
fn a_site_is_asked_for_another_credential_when_it_is_due_and_again_after_a_minute() {
    let mut hub = Hub::default();
    hub.register(&site(), false, Micros::from_secs(1)).unwrap();
    hub.told(
        serde_json::json!([{"sha256": "credential", "expires_us": 900_000_000, "renew_us": 100_000_000}]),
    );
    assert_eq!(hub.tended(90..100), []);
    assert_eq!(hub.tended(100..162), [(100, true), (160, true)]);
}

#[test]
fn a_session_goes_on_with_the_credential_that_took_the_place_of_its_own() {
    let mut hub = Hub::default();
    let serial = hub.register(&site(), false, Micros::from_secs(1)).unwrap().handle.serial;
    let (old, new) = (
        serde_json::json!({"sha256": "credential", "expires_us": 500_000_000}),
        serde_json::json!({"sha256": "next", "expires_us": 900_000_000, "replaces": "credential"}),
    );
    let take = |hub: &mut Hub, serial: u64| {
        let Hub { sites, registry, .. } = hub;
        registry.take_credential(sites, (&site(), serial), "next", WallMicros(0))
    };
    hub.told(serde_json::json!([old]));
    assert_eq!(take(&mut hub, serial), None, "nobody knows it");
    hub.told(serde_json::json!([old, new]));
    assert_eq!(take(&mut hub, serial + 1), None);
    assert_eq!(take(&mut hub, serial).as_deref(), Some("credential"));
    assert_eq!(take(&mut hub, serial), None, "once");
    assert_eq!(hub.tended(0..62), [(0, false), (60, false)], "until the agent lets it end");
    hub.told(serde_json::json!([new]));
    assert_eq!(hub.tended(200..300), []);
    let expired = hub.registry.expired(&hub.sites, WallMicros(600_000_000));
    assert!(expired.is_empty(), "the former one's end is nothing to it");
    let notices = hub.told(serde_json::json!([]));
    assert_eq!(notices.iter().map(refused).collect::<Vec<_>>(), [Some(RefusalCode::Credential)]);
}

#[test]
fn a_session_ends_with_its_credential() {
    let mut hub = Hub::default();
    hub.register(&site(), false, Micros(0)).unwrap();
    let notices = hub.told(serde_json::json!([{"sha256": "credential", "expires_us": 500}]));
    assert!(!notices.is_empty() && notices.iter().all(|notice| refused(notice).is_none()));
    let expired =
        |at| hub.registry.expired(&hub.sites, WallMicros(at)).iter().map(refused).collect::<Vec<_>>();
    assert_eq!((expired(499), expired(500)), (vec![], vec![Some(RefusalCode::Expired)]));
}

#[test]
fn the_holder_of_a_replaced_credential_alone_is_barred_soon_and_of_a_revoked_one_immediately() {
    let mut hub = Hub::default();
    let feed = FeedName::parse("NGRID").unwrap();
    let barred = |hub: &Hub, at: i64| {
        ["credential", "next"].map(|sha256| hub.sites.barred(&site(), sha256, &feed, WallMicros(at)))
    };
    let new = serde_json::json!({"sha256": "next", "expires_us": 900, "replaces": "credential"});
    hub.told(serde_json::json!([{"sha256": "credential", "expires_us": 500}, new]));
    assert_eq!(barred(&hub, 0), [None, None]);
    hub.told(serde_json::json!([new]));
    assert_eq!(barred(&hub, 0), [Some(Urgency::Soon), None]);
    assert_eq!(barred(&hub, 900), [Some(Urgency::AtOnce); 2]);
    hub.told(serde_json::json!([]));
    assert_eq!(barred(&hub, 0), [Some(Urgency::AtOnce); 2]);
}

#[test]
fn sites_that_were_enrolled_together_are_asked_one_after_the_other() {
    let mut hub = Hub::default();
    let mut lines = Vec::new();
    for number in 0..10 {
        let name = SiteName::parse(&format!("site{number}")).unwrap();
        hub.register(&name, false, Micros::from_secs(1)).unwrap();
        let credential = serde_json::json!({"sha256": "credential", "expires_us": null, "renew_us": 0});
        let line = serde_json::json!({"site": name, "active": true, "credentials": [credential], "subscriptions": []});
        lines.push(serde_json::from_value(line).unwrap());
    }
    hub.sites = Sites::told(lines);
    let asked: Vec<usize> =
        (0..4).map(|number| hub.tend(number).iter().filter(|asks| **asks).count()).collect();
    assert_eq!(asked, [4, 4, 2, 0]);
}
