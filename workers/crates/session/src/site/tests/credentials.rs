//! The change of a credential during a session, from the site's half.
use super::*;
use crate::{CredentialKept, CredentialOffered, CredentialShown, CredentialWanted};

fn offer(bench: &mut Bench) -> Vec<Message> {
    let (offered, shown) =
        (CredentialOffered { sha256: "ab".repeat(32) }, CredentialShown { secret: "fresh".to_owned() });
    bench.site.handle(at(bench.millis), SiteInput::OfferCredential(offered));
    bench.site.handle(at(bench.millis), SiteInput::ShowCredential(shown));
    let said = bench.messages();
    let is_one = |it: &Message| matches!(it, Message::CredentialOffered(_) | Message::CredentialShown(_));
    said.into_iter().filter(is_one).collect()
}

#[test]
fn what_the_hub_wants_and_keeps_is_told_and_what_the_site_answers_is_said() {
    let mut bench = Bench::started();
    bench.say(CredentialWanted { of: "cd".repeat(32) });
    bench.say(CredentialKept { sha256: "ab".repeat(32), ends: None });
    let wanted = |it: &SiteOutput| matches!(it, SiteOutput::Event(SiteEvent::CredentialWanted(_)));
    assert_eq!(bench.count(wanted), 1);
    let kept = |it: &SiteOutput| matches!(it, SiteOutput::Event(SiteEvent::CredentialKept(_)));
    assert_eq!(bench.count(kept), 1);
    assert_eq!(offer(&mut bench).len(), 2);
}

#[test]
fn without_a_connection_nothing_is_said() {
    let mut bench = Bench::started();
    bench.site.handle(at(0), SiteInput::Disconnected);
    assert_eq!(offer(&mut bench), []);
}
