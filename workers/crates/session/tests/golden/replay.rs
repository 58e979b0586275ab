//! One side of a recorded conversation against today's machine.

use crate::file::{Conversation, Said, What};
use crate::peers::{HubPeer, SitePeer};

/// Today's hub answers the recorded site byte for byte.
pub fn hub(conversation: &Conversation, name: &str) {
    let mut hub = HubPeer::default();
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for event in &conversation.events {
        while let Some(due) = hub.deadline_us().filter(|due| *due < event.at_us) {
            said.extend(hub.frames(due));
        }
        match &event.what {
            What::Connect(_) => hub.accept(event.at_us),
            What::Disconnect => hub.hang_up(),
            What::Hub(act) => hub.act(event.at_us, act),
            What::StreamBreaks(stream) => hub.stream_breaks(event.at_us, *stream),
            what => {
                what.of_site().iter().for_each(|said| hub.hear(event.at_us, said));
                expected.extend(what.of_hub());
            }
        }
        said.extend(hub.frames(event.at_us));
    }
    assert_eq!(hub.complaints, Vec::<String>::new(), "{name}: the hub does not understand the site");
    assert_same(&said, &expected, name, "hub");
}

/// Today's site, with the conversation's version, sends the same frames as the recorded one, and has the same
/// outcome.
pub fn site(conversation: &Conversation, name: &str) {
    let mut site = SitePeer::new(conversation);
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for event in &conversation.events {
        while let Some(due) = site.deadline_us().filter(|due| *due < event.at_us) {
            said.extend(site.frames(due));
        }
        match &event.what {
            What::Connect(show) => site.connect(event.at_us, show),
            What::Disconnect => site.hang_up(event.at_us),
            What::Datagram { leg, bytes } => site.datagram(event.at_us, *leg, &bytes.0),
            What::StreamStands(stream) => site.stream_stands(event.at_us, *stream),
            What::StreamBreaks(stream) => site.stream_breaks(event.at_us, *stream),
            what => {
                what.of_hub().iter().for_each(|said| site.hear(event.at_us, said));
                expected.extend(what.of_site());
            }
        }
        said.extend(site.frames(event.at_us));
    }
    assert_eq!(site.complaints, Vec::<String>::new(), "{name}: the site does not understand the hub");
    assert_same(&said, &expected, name, "site");
    assert_eq!(site.outcome(), conversation.outcome, "{name}: the site ends elsewhere");
}

fn assert_same(said: &[Said], expected: &[Said], name: &str, who: &str) {
    for (index, (said, expected)) in said.iter().zip(expected).enumerate() {
        assert!(
            said == expected,
            "{name}: frame {index} of the {who} is\n  {}\nand was\n  {}",
            text(said),
            text(expected)
        );
    }
    assert_eq!(said.len(), expected.len(), "{name}: so many frames says the {who}");
}

fn text((stream, bytes): &Said) -> String {
    format!("on stream {stream}: {}", String::from(bytes.clone()))
}
