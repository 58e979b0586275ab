use super::*;
use crate::{Forged, KeyTaken, NextKey};

fn next_key(leg_epoch: u64) -> NextKey {
    NextKey { leg: LegId(100), leg_epoch, key: LegKey::new(2, [2; 32]) }
}

fn key_messages(bench: &mut Bench) -> Vec<Message> {
    let messages = bench.messages(0).into_iter();
    messages.filter(|message| matches!(message, Message::LegJoin(_) | Message::NextKey(_))).collect()
}

#[test]
fn the_next_key_goes_to_a_site_that_has_the_leg_and_its_answer_is_told() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.hub.handle(at(0), HubInput::NextKey(next_key(1)));
    assert_eq!(key_messages(&mut bench), [join(100).into(), next_key(1).into()]);
    let taken = KeyTaken { leg: LegId(100), leg_epoch: 1, key_id: 2 };
    bench.say(0, KeyTaken { leg_epoch: 7, ..taken });
    bench.say(0, taken);
    let told: Vec<HubEvent> = std::iter::from_fn(|| bench.hub.poll(at(0)))
        .filter_map(|output| match output {
            HubOutput::Event(event @ HubEvent::KeyTaken(_)) => Some(event),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 1, "another life of the leg is none of ours: {told:?}");
}

#[test]
fn forgeries_that_a_site_of_the_leg_sees_are_told() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.say(0, Forged { leg: LegId(100), leg_epoch: 7 });
    bench.say(0, Forged { leg: LegId(99), leg_epoch: 1 });
    let forged = Forged { leg: LegId(100), leg_epoch: 1 };
    bench.say(0, forged);
    let told: Vec<Forged> = std::iter::from_fn(|| bench.hub.poll(at(0)))
        .filter_map(|output| match output {
            HubOutput::Event(HubEvent::Forged(forged)) => Some(forged),
            _ => None,
        })
        .collect();
    assert_eq!(told, [forged]);
}

#[test]
fn a_site_without_the_leg_hears_of_no_key() {
    let mut bench = Bench::serving(vec![], 10);
    bench.hub.handle(at(0), HubInput::NextKey(next_key(1)));
    bench.hub.handle(at(0), HubInput::JoinLeg(Box::new(join(100))));
    bench.hub.handle(at(0), HubInput::NextKey(next_key(9)));
    assert_eq!(key_messages(&mut bench), [join(100).into()]);
}

#[test]
fn an_offer_that_waits_carries_the_key_that_was_told_meanwhile() {
    let mut offers = crate::hub::offers::Offers::default();
    offers.offer(join(100));
    assert_eq!(offers.next_key(next_key(1)), None);
    assert_eq!(offers.next_key(next_key(1)), None);
    let offered = LegJoin { key: next_key(1).key, key_in_use: Some(join(100).key), ..join(100) };
    assert_eq!(offers.release(&feed(), EPOCH), [offered.into()]);
}
