//! The version of a session, between this release and an invented next one: the first of the site's versions
//! that the hub supports.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]

use downburst_model::{Machine, Micros, Now, SiteName, WallMicros};
use downburst_session::{
    HubEvent, HubInput, HubOutput, HubSession, Proof, RefusalCode, SiteEvent, SiteInput, SiteOutput,
    SiteSession, SiteState, StreamId, VERSION,
};

const NEXT: u16 = VERSION + 1;

/// Runs the greeting until neither side has more to send. Returns the site's events and the version in the
/// hub's welcome.
fn greet(hub: &[u16], site: &[u16]) -> (Vec<SiteEvent>, Option<u8>) {
    let now = Now { monotonic: Micros(0), wall: WallMicros(0) };
    let name = SiteName::parse("oslo").unwrap();
    let mut hub = HubSession::new("hub".to_owned()).speaking(hub);
    let mut site = SiteSession::new("test".to_owned(), SiteState::default()).speaking(site);
    let (mut events, mut version) = (Vec::new(), None);
    hub.handle(now, HubInput::Room { stream: StreamId::FIRST, bytes: 1 << 20 });
    let proof = Proof::Credential { site: name.clone(), secret: "s".to_owned() };
    site.handle(now, SiteInput::Connected(proof));
    for _ in 0..10 {
        while let Some(output) = site.poll(now) {
            match output {
                SiteOutput::Write { stream, bytes } => hub.handle(now, HubInput::Bytes { stream, bytes }),
                SiteOutput::Event(event) => events.push(event),
                _ => {}
            }
        }
        while let Some(output) = hub.poll(now) {
            match output {
                HubOutput::Write { stream, bytes, .. } => {
                    if bytes[0] == WELCOME {
                        version = Some(bytes[VERSION_AT]);
                    }
                    site.handle(now, SiteInput::Bytes { stream, bytes });
                }
                HubOutput::Authenticate(_) => {
                    hub.handle(now, HubInput::Admit { site: name.clone(), subscriptions: vec![] });
                }
                HubOutput::Event(HubEvent::Violation(sentence)) => panic!("{sentence}"),
                _ => {}
            }
        }
    }
    (events, version)
}

#[test]
fn the_first_version_of_the_site_that_the_hub_speaks_is_taken() {
    for (hub, site, taken) in [
        (vec![VERSION], vec![VERSION], VERSION),
        (vec![NEXT, VERSION], vec![VERSION], VERSION),
        (vec![VERSION], vec![NEXT, VERSION], VERSION),
        (vec![NEXT, VERSION], vec![NEXT, VERSION], NEXT),
        (vec![NEXT, VERSION], vec![VERSION, NEXT], VERSION),
    ] {
        let (events, version) = greet(&hub, &site);
        assert!(matches!(events[0], SiteEvent::Welcome { .. }), "{events:?}");
        assert_eq!(version.map(u16::from), Some(taken), "hub {hub:?}, site {site:?}");
    }
}

#[test]
fn a_site_without_a_version_of_the_hub_is_refused_with_the_remedy() {
    let (events, version) = greet(&[VERSION], &[NEXT]);
    assert_eq!(version, None);
    let [SiteEvent::Refused(refused)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(refused.code, RefusalCode::Version);
    assert_eq!(refused.sentence, "this hub speaks version 1 of the session; install a node that does");
}

/// The kind of a welcome.
const WELCOME: u8 = 2;

/// The position of the version in a welcome: behind the frame's header (5 bytes) and the head of its CBOR array.
const VERSION_AT: usize = 6;
