//! The change of a credential during a session, from the hub's half.
use super::*;
use crate::{CredentialKept, CredentialOffered, CredentialShown, CredentialWanted};

fn serving() -> Bench {
    let mut bench = Bench::new();
    bench.say(0, hello(vec![]));
    let site = SiteName::parse("oslo").unwrap();
    bench.hub.handle(at(0), HubInput::WantCredential(wanted()));
    bench.hub.handle(at(0), HubInput::Admit { site, subscriptions: vec![] });
    bench.messages(0);
    bench
}

fn wanted() -> CredentialWanted {
    CredentialWanted { of: "cd".repeat(32) }
}

fn kept() -> CredentialKept {
    CredentialKept { sha256: "ab".repeat(32), ends: Some(WallMicros(9)) }
}

#[test]
fn the_words_of_a_change_go_through() {
    let mut bench = serving();
    bench.hub.handle(at(0), HubInput::WantCredential(wanted()));
    assert_eq!(bench.messages(0), [wanted().into()]);
    let offered = CredentialOffered { sha256: kept().sha256 };
    bench.say(0, offered.clone());
    bench.hub.handle(at(0), HubInput::KeepCredential(kept()));
    assert_eq!(bench.messages(0), [kept().into()]);
    let shown = CredentialShown { secret: "secret".to_owned() };
    bench.say(0, shown.clone());
    bench.messages(0);
    let events = bench.others.iter().filter_map(|output| match output {
        HubOutput::Event(HubEvent::CredentialOffered(offered)) => Some((Some(offered.clone()), None)),
        HubOutput::Event(HubEvent::CredentialShown(shown)) => Some((None, Some(shown.clone()))),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), [(Some(offered), None), (None, Some(shown.clone()))]);
    assert!(!format!("{shown:?}").contains("\"secret\""), "a secret is printed nowhere");
}
