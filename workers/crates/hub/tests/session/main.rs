//! A session with a real site at its other end, in virtual time: its requests to the driver, reports and refusals.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test that fails stops")]
mod world;

use std::collections::BTreeSet;

use downburst_hub::{CredentialAnswer, Report, SessionInput, SessionSettings, Way};
use downburst_model::{Epoch, LegId, Machine as _, Micros, Sequence, WallMicros};
use downburst_session::{
    CircuitFault, CircuitHeard, CircuitProbed, CircuitReport, CircuitState, CredentialOffered,
    CredentialShown, HubInput, PathProbed, ProbeSaid, Proof, RefusalCode, Refused, RelayLegFailed,
    RelayLegOpen, RelayReport, SiteEvent, SiteInput, StreamPath, TunnelFacts,
};
use serde_json::json;
use world::{World, feed, is_plan, join, line, oslo, sentence_of, settings};

const SECOND: Micros = Micros::from_secs(1);

fn token() -> Proof {
    Proof::Token { secret: "t".to_owned(), credential_sha256: "ab".repeat(32) }
}

fn answer(ok: bool) -> CredentialAnswer {
    let site = ok.then(oslo);
    CredentialAnswer { ok, site, sentence: None, ends: Some(WallMicros(9)) }
}

/// The refusal that the site received.
fn refusal(world: &World) -> &Refused {
    let refused = world.seen.iter().find_map(|event| match event {
        SiteEvent::Refused(refused) => Some(refused),
        _ => None,
    });
    refused.unwrap_or_else(|| panic!("not refused: {:?}", world.seen))
}

#[test]
fn a_site_that_is_known_gets_its_products_and_its_receipts_count() {
    let mut world = World::connected(3, 0);
    world.publish();
    world.run_for(SECOND);
    assert_eq!(world.stored, [1, 2, 3, 4]);
    let receipts = world.receipts();
    assert_eq!(receipts.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(receipts.values().all(|first_byte| *first_byte), "their first bytes left a moment ago");
    assert!(matches!(
        world.reports.iter().find(|it| !matches!(it, Report::Status(_))),
        Some(Report::Settled(..))
    ));
    assert!(world.reports.iter().any(|report| matches!(report, Report::Connected)));
    assert!(world.has_asked("Arrived"));
    assert_eq!(world.session.site(), Some(&oslo()));
    assert_eq!(world.session.software(), Some("test"));
    let settled: Vec<_> = world.session.settled().map(|(_, epoch, it)| (epoch, it.last())).collect();
    assert_eq!(settled, [(Epoch(7), Some(4))]);
}

#[test]
fn accounts_show_a_site_only_when_products_are_owed_to_it() {
    let mut world = World { waits_for_feeds: true, ..World::new(settings(), 3, 3) };
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    let is_shown = |world: &World| world.changes().contains(&"Began".to_owned());
    assert!(world.session.site().is_some() && !is_shown(&world));
    world.publish();
    assert!(!is_shown(&world));
    world.tell(SessionInput::Watched(vec![world.standing()]));
    assert!(is_shown(&world));
    world.publish();
    world.run_for(SECOND);
    assert_eq!(world.stored.last(), Some(&5));
}

#[test]
fn a_site_that_stands_by_is_put_nowhere() {
    let mut world = World::new(settings(), 3, 0);
    world.site.handle(world.clocks(), SiteInput::StandBy(true));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(SECOND);
    assert!(world.session.stands_by() && world.asked.contains(&"register, stands by: true".to_owned()));
    assert!(!world.has_asked("Arrived") && world.stored.is_empty());
    assert_eq!(world.session.settled().count(), 0, "it takes its feeds from another hub");
}

#[test]
fn a_token_is_traded_for_a_credential_if_the_agent_agrees() {
    let mut world = World::new(settings(), 1, 0);
    world.answer = Some(answer(true));
    world.greet(token());
    world.run_for(SECOND);
    assert_eq!(world.stored, [1]);
    for (answer, code, sentence) in [
        (
            Some(answer(false)),
            RefusalCode::Token,
            "the token is not valid; ask the hub's operator for a new one",
        ),
        (None, RefusalCode::Unavailable, "the hub could not check the token; try again in a moment"),
    ] {
        let mut world = World::new(settings(), 1, 0);
        world.answer = answer;
        world.greet(token());
        assert_eq!(*refusal(&world), Refused { code, sentence: sentence.to_owned() });
        assert_eq!(world.session.reason(), Some(sentence));
        assert!(world.closed && world.session.site().is_none());
    }
}

#[test]
fn a_credential_without_a_digest_never_reaches_the_agent() {
    let mut world = World::new(settings(), 1, 0);
    world.greet(Proof::Token { secret: "t".to_owned(), credential_sha256: "short".to_owned() });
    assert_eq!(refusal(&world).code, RefusalCode::Protocol);
    assert!(world.asked.is_empty(), "{:?}", world.asked);
}

#[test]
fn a_site_of_one_node_is_sent_to_the_hubs_own() {
    let settings = SessionSettings { sender: Some("sender-2:388".to_owned()), ..settings() };
    let mut world = World::new(settings.clone(), 1, 0);
    world.site =
        downburst_session::SiteSession::new("hub".to_owned(), downburst_session::SiteState::default())
            .from_one_node(true);
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    assert!(refusal(&world).sentence.contains("the address of the hub's own node"));
    let mut world = World::new(settings, 3, 0);
    world.facts.line = Some(line(json!({
        "nodes": [{"address": "sender-2:388", "feeds": ["CONDUIT"]}], "nodes_version": 4,
    })));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(SECOND);
    assert_eq!(world.stored, [1, 2, 3], "its feed is assigned to this sender");
}

#[test]
fn a_refused_credential_ends_the_session_with_its_reason() {
    let mut world = World::new(settings(), 1, 0);
    let sentence = "the credential has ended".to_owned();
    world.refuses = Some(Refused { code: RefusalCode::Credential, sentence: sentence.clone() });
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    assert_eq!(refusal(&world).sentence, sentence);
    assert!(world.closed && !world.reports.iter().any(|report| matches!(report, Report::Connected)));
}

#[test]
fn a_log_that_can_not_be_read_is_tried_each_second_and_told_each_minute() {
    let mut world = World::connected(2, 2);
    world.bad_reads = vec![Some("the disk is ill".to_owned()); 125];
    world.publish();
    world.run_for(Micros::from_secs(124));
    assert_eq!(world.faults(), ["the disk is ill"; 3], "the first, the 61st and the 121st");
    assert!(world.stored.is_empty());
    world.run_for(Micros::from_secs(2));
    assert_eq!(world.stored, [3]);
    let asked: Vec<Micros> = world.reads.iter().map(|(at, _)| *at).collect();
    assert!(asked.windows(2).skip(1).all(|pair| pair[1].since(pair[0]) >= SECOND), "{asked:?}");
}

#[test]
fn a_closed_feed_is_no_news_and_no_empty_log() {
    let mut world = World::connected(2, 2);
    world.bad_reads = vec![None; 3];
    world.publish();
    world.run_for(Micros::from_secs(5));
    assert!(world.faults().is_empty());
    assert_eq!(world.stored, [3]);
}

#[test]
fn what_a_log_has_forgotten_is_told_and_counted() {
    let mut world = World::new(settings(), 100, 10);
    world.forgotten = Some((Sequence(1), Sequence(90)));
    world.log.retain(|entry| entry.info.key.sequence > Sequence(90));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(SECOND);
    assert_eq!(world.stored, (91..=100).collect::<Vec<_>>());
    let [fault] = world.faults()[..] else { panic!("{:?}", world.faults()) };
    assert!(
        fault.starts_with("site oslo lacks 80 numbers of feed CONDUIT, between 11 and 90, whose products"),
        "{fault}"
    );
    world.publish();
    world.run_for(SECOND);
    assert_eq!(world.faults().len(), 1, "once");
}

#[test]
fn a_site_that_has_everything_is_not_told_to_lack_what_is_forgotten() {
    let mut world = World::new(settings(), 100, 95);
    world.forgotten = Some((Sequence(1), Sequence(90)));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(SECOND);
    assert!(world.faults().is_empty());
    assert_eq!(world.stored, [96, 97, 98, 99, 100]);
}

#[test]
fn a_number_above_all_that_the_log_gave_ends_the_session() {
    let mut world = World::connected(2, 2);
    world.facts.highest = 3;
    world.publish();
    world.facts.highest = 2;
    world.run_for(SECOND);
    let violation =
        world.reports.iter().find(|report| matches!(report, Report::Violation { ends: true, .. }));
    let sentence = violation.map(sentence_of).unwrap_or_default();
    assert!(sentence.contains("of feed CONDUIT, but the log gave none above 2"), "{:?}", world.reports);
    assert!(world.closed && world.session.reason().unwrap().starts_with("the site broke the protocol: "));
}

#[test]
fn claims_of_a_restored_log_are_believed_or_end_the_session() {
    let mut world = World::connected(2, 2);
    world.tell(SessionInput::Believed(Ok([(feed(), Sequence(4))].into())));
    world.facts.highest = 3;
    world.publish();
    world.facts.highest = 2;
    world.run_for(SECOND);
    assert!(!world.closed, "its hello said so");
    world.tell(SessionInput::Believed(Err("it has a billion numbers too many".to_owned())));
    assert!(world.closed);
}

#[test]
fn receipts_without_a_place_in_the_history_are_told_once_a_minute() {
    let mut world = World::connected(1, 1);
    let told = |world: &World| {
        world.reports.iter().filter(|it| matches!(it, Report::Violation { ends: false, .. })).count()
    };
    world.tell(SessionInput::PassedOver(0));
    assert_eq!(told(&world), 0);
    for _ in 0..3 {
        world.tell(SessionInput::PassedOver(7));
        world.run_for(Micros::from_secs(10));
    }
    assert_eq!(told(&world), 1);
    world.run_for(Micros::from_secs(31));
    world.tell(SessionInput::PassedOver(7));
    assert_eq!(told(&world), 2);
}

#[test]
fn a_lost_leg_is_offered_again_after_a_while() {
    let mut world = World::connected(1, 1);
    world.tell(SessionInput::JoinLeg(Box::new(join(5))));
    let at = world.now;
    let (now, leg) = (world.clocks(), LegId(5));
    world.site.handle(now, SiteInput::JoinFailed { leg, reason: "no such group".to_owned() });
    world.run();
    let legs: Vec<_> = world.reports.iter().filter(|it| matches!(it, Report::Leg(_))).collect();
    let [Report::Leg(left)] = legs[..] else { panic!("{legs:?}") };
    assert_eq!((left.leg, left.state, left.after), (leg, "never-heard", None));
    assert_eq!(left.reason.as_deref(), Some("no such group"));
    world.run_for(Micros::from_millis(14_900));
    assert!(!world.has_asked("Place"));
    world.run_for(SECOND);
    assert!(world.has_asked("Place") && world.now.since(at) < Micros::from_secs(17));
}

#[test]
fn a_site_that_was_taken_off_a_leg_rests_and_its_flood_is_looked_after() {
    let mut world = World::connected(1, 1);
    world.tell(SessionInput::JoinLeg(Box::new(join(5))));
    world.facts.too_slow.insert(LegId(5));
    let (now, leg) = (world.clocks(), LegId(5));
    world.site.handle(now, SiteInput::JoinFailed { leg, reason: "told to".to_owned() });
    world.run_for(Micros::from_secs(2));
    assert!(
        !world.reports.iter().any(|it| matches!(it, Report::Leg(_))),
        "the hub told of it when it decided"
    );
    let looks = world.asked.iter().filter(|asked| *asked == "LookAtFlood").count();
    assert!((4..=6).contains(&looks), "until a second went by without loss: {:?}", world.asked);
    assert!(world.has_asked("TryAgainEachSecond(true)") && world.has_asked("MeasureAnew"));
    assert_eq!(
        world.asked.iter().rfind(|it| it.starts_with("TryAgain")).unwrap(),
        "TryAgainEachSecond(false)"
    );
    world.run_for(Micros::from_secs(290));
    assert!(!world.has_asked("Place"));
    world.run_for(Micros::from_secs(10));
    assert!(world.has_asked("Place"));
}

#[test]
fn a_repair_channel_is_offered_where_datagrams_are_heard() {
    let channel = |port| downburst_vcmtp::RepairChannel { port, ..channel() };
    for (came_to, offered) in [(Some(world::PORT), Some(world::PORT)), (Some(9), None), (None, None)] {
        let mut world = World::new(settings(), 1, 1);
        let now = world.clocks();
        world.session = downburst_hub::Session::new(now, settings().into(), came_to);
        world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
        let mut join = join(5);
        join.channel = Some(channel(1));
        world.tell(SessionInput::JoinLeg(Box::new(join)));
        assert_eq!(world.joined.last().unwrap().channel.as_ref().map(|it| it.port), offered);
    }
}

fn channel() -> downburst_vcmtp::RepairChannel {
    downburst_vcmtp::RepairChannel {
        id: 1,
        port: 0,
        secret: [1; 32],
        cipher: downburst_vcmtp::Cipher::Aes256Gcm,
    }
}

#[test]
fn another_credential_is_offered_kept_and_shown() {
    let mut world = World::connected(1, 1);
    world.answer = Some(answer(true));
    let offer = |world: &mut World| {
        let now = world.clocks();
        world.site.handle(now, SiteInput::OfferCredential(CredentialOffered { sha256: "cd".repeat(32) }));
        world.run();
    };
    offer(&mut world);
    assert!(!world.has_asked("offer"), "nobody asked it to");
    world.tell(SessionInput::WantCredential);
    let wanted = world.seen.iter().find_map(|event| match event {
        SiteEvent::CredentialWanted(wanted) => Some(wanted.of.as_str()),
        _ => None,
    });
    assert_eq!(wanted, Some("first"));
    offer(&mut world);
    assert!(
        world
            .seen
            .iter()
            .any(|event| matches!(event, SiteEvent::CredentialKept(kept) if kept.ends.is_some()))
    );
    let now = world.clocks();
    world.site.handle(now, SiteInput::ShowCredential(CredentialShown { secret: "next".to_owned() }));
    world.run();
    assert!(world.has_asked("take next") && world.has_asked("tell of next"));
    world.tell(SessionInput::WantCredential);
    offer(&mut world);
    assert!(world.has_asked("not kept: None"), "the agent did not answer: the site goes on as it is");
}

#[test]
fn a_site_hears_the_relays_of_its_line_and_every_change() {
    let mut world = World::new(settings(), 1, 0);
    let told = |world: &World| -> Vec<Vec<String>> {
        let ways = world.seen.iter().filter_map(|event| match event {
            SiteEvent::Ways(chains) => Some(chains.clone()),
            _ => None,
        });
        ways.collect()
    };
    world.facts.line = Some(line(json!({"via": ["relay:1"]})));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(SECOND);
    assert_eq!(told(&world), [["relay:1"]]);
    world.tell(SessionInput::Ways);
    world.facts.line = Some(line(json!({})));
    world.tell(SessionInput::Ways);
    assert_eq!(told(&world), [vec!["relay:1".to_owned()], vec![]], "the same set is told once");
}

#[test]
fn the_report_of_a_relay_has_the_sites_of_its_tunnels() {
    let mut world = World::new(settings(), 1, 1);
    world.facts.line = Some(line(json!({"subscriptions": []})));
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    let line = reported(&mut world).unwrap();
    assert_eq!(line.tunnels.first().unwrap().site, Some(oslo()));
}

#[test]
fn the_report_of_a_site_that_takes_products_is_ignored() {
    assert_eq!(reported(&mut World::connected(1, 1)), None);
}

/// The line about a report of one tunnel.
fn reported(world: &mut World) -> Option<downburst_hub::RelayLine> {
    let tunnel = TunnelFacts { hub_side: "10.0.0.9:4000".to_owned(), ..TunnelFacts::default() };
    let report = RelayReport { tunnels: vec![tunnel], ..RelayReport::default() };
    let now = world.clocks();
    world.site.handle(now, SiteInput::RelayReport(report));
    world.run();
    world.reports.iter().find_map(|report| match report {
        Report::Relay(line) => Some(line.clone()),
        _ => None,
    })
}

#[test]
fn late_products_go_as_fast_as_the_hub_allows() {
    let mut world = World::connected(40, 0);
    world.run_for(SECOND);
    let late = |world: &World| -> u64 {
        let sent = world.reports.iter().map(|it| if let Report::LateSent(bytes) = it { *bytes } else { 0 });
        sent.sum()
    };
    assert!(late(&world) >= 40 * 20_000, "all of them were stored before it came");
    let mut world = World::new(settings(), 40, 0);
    world.facts.late_bps = Some(160_000);
    world.greet(Proof::Credential { site: oslo(), secret: "s".to_owned() });
    world.run_for(Micros::from_secs(10));
    assert!((200_000..400_000).contains(&late(&world)), "{}", late(&world));
    world.facts.late_bps = None;
    world.run_for(SECOND);
    assert_eq!(world.stored.len(), 40);
}

#[test]
fn feeds_that_ride_a_circuit_get_a_connection_of_their_own() {
    let mut world = World::connected(1, 1);
    let path = StreamPath { to: "10.1.0.1:388".to_owned(), from: "10.1.0.2".to_owned() };
    let way = Way { path: path.clone(), feeds: BTreeSet::from([feed()]), paced_bps: Some(8_000_000) };
    world.facts.ways = vec![way];
    world.tell(SessionInput::LookAtPath);
    let rides = |world: &World, wanted: bool| {
        let is = |report: &&Report| matches!(report, Report::Ride { begins, .. } if *begins == wanted);
        world.reports.iter().filter(is).count()
    };
    assert_eq!((rides(&world, true), rides(&world, false)), (1, 0));
    assert!(world.has_asked("DrawTicket") && world.has_asked("Pace(StreamPath"));
    world.tell(SessionInput::LookAtPath);
    assert_eq!(rides(&world, true), 1, "nothing changed");
    world.facts.ways = vec![];
    world.tell(SessionInput::LookAtPath);
    assert_eq!(rides(&world, false), 1);
}

#[test]
fn data_connections_follow_the_operators_number() {
    let mut world = World::connected(1, 1);
    assert_eq!(world.reports.iter().filter(|it| is_plan(it)).count(), 1);
    assert_eq!(world.session.learnt(), Some(0));
    world.tell(SessionInput::PinStreams(Some(3)));
    assert!(world.changes().last().unwrap().starts_with("Planned(3,"), "{:?}", world.changes());
    assert_eq!(world.asked.iter().filter(|asked| asked.starts_with("DrawTicket")).count(), 3);
    assert!(world.asked.iter().filter(|asked| *asked == "MeasurePath").count() == 1);
    world.run_for(Micros::from_secs(11));
    assert!(
        world.asked.iter().filter(|asked| *asked == "MeasurePath").count() >= 2,
        "each five seconds, if awake"
    );
}

#[test]
fn resends_are_found_again_and_an_ill_disk_is_told_each_minute() {
    let mut world = World::connected(3, 3);
    let wanted = downburst_model::IdFilter { pattern: ".*".to_owned(), not_pattern: None };
    world.resends = vec![downburst_session::ResendOrder {
        resend: 9,
        feed: feed(),
        epoch: world::EPOCH,
        after: Sequence(0),
        to: Sequence(3),
        lane: downburst_model::Lane::Resend,
        wanted,
        had: vec![],
        within: None,
        left: None,
    }];
    world.bad_reads = vec![Some("the disk is ill".to_owned()); 13];
    world.tell(SessionInput::Resends);
    world.run_for(Micros::from_secs(64));
    assert_eq!(world.faults().len(), 2, "the first and the 13th");
    assert!(world.session.resends_left().contains_key(&9));
    world.run_for(Micros::from_secs(6));
    assert_eq!(world.stored, [1, 2, 3]);
    assert!(world.reports.iter().any(|it| matches!(it, Report::Resent(end) if end.resend == 9)));
}

#[test]
fn subscriptions_that_end_are_watched_no_more() {
    let mut world = World::connected(1, 1);
    assert_eq!(world.session.subscribed().len(), 1);
    world.facts.line = Some(line(json!({"subscriptions": []})));
    world.tell(SessionInput::Subscriptions);
    assert!(world.session.subscribed().is_empty());
    world.publish();
    world.run_for(SECOND);
    assert!(world.stored.is_empty());
}

#[test]
fn many_wake_ups_are_one_look() {
    let mut world = World::connected(1, 1);
    for _ in 0..100 {
        world.publish();
    }
    assert!(world.session.looks_later(), "the rest waits for the next millisecond");
    world.run_for(SECOND);
    assert_eq!(world.stored.len(), 100);
    assert!(!world.session.looks_later());
}

#[test]
fn what_the_site_says_of_a_circuit_is_shown_to_people() {
    let mut world = World::connected(1, 1);
    let fault =
        CircuitFault { step: "link\u{7}".to_owned(), sentence: "s".to_owned(), remedy: "r".to_owned() };
    let now = world.clocks();
    let probed = Box::new(CircuitProbed { lease: 3, run: 5, reach: None, rate: None });
    for report in [
        CircuitReport::State(CircuitState { lease: 3, fault: Some(fault.clone()) }),
        CircuitReport::Heard(CircuitHeard { lease: 3, fault: Some(fault) }),
        CircuitReport::Probed(probed),
    ] {
        world.site.handle(now, SiteInput::Circuit(report));
    }
    let refused = PathProbed { run: 4, said: ProbeSaid::Refused("no".to_owned()) };
    world.site.handle(now, SiteInput::PathProbed(Box::new(refused)));
    world.run();
    assert!(world.asked.iter().any(|asked| asked.starts_with("PathProbed") && asked.contains("run: 4")));
    let said: Vec<&String> = world.asked.iter().filter(|asked| asked.starts_with("Circuit")).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|it| it.contains("lease: 3") && !it.contains('\u{7}')), "{said:?}");
}

#[test]
fn what_a_relay_says_of_a_leg_is_passed_on_in_words_for_people() {
    let mut world = World::connected(1, 1);
    let (leg, now) = (LegId(3), world.clocks());
    let open = RelayLegOpen { leg, source: "10.0.0.9".to_owned(), mtu_bytes: Some(1_400) };
    world.site.handle(now, SiteInput::RelayLegOpen(open));
    world.site.handle(now, SiteInput::RelayLegFailed(RelayLegFailed { leg, sentence: "no\u{7}".to_owned() }));
    world.run();
    let said = |word| world.asked.iter().find(|asked| asked.starts_with(word)).unwrap();
    assert!(said("RelayLegOpen").contains("10.0.0.9"));
    assert!(said("RelayLegFailed").contains("no") && !said("RelayLegFailed").contains('\u{7}'));
}

#[test]
fn a_hub_that_stops_tells_the_site_and_closes() {
    let mut world = World::connected(1, 1);
    let refused = Refused { code: RefusalCode::Unavailable, sentence: "the hub stops".to_owned() };
    world.tell(SessionInput::Refuse(refused));
    assert!(world.closed);
    assert_eq!(refusal(&world).sentence, "the hub stops");
    world.session.ends("something else");
    assert_eq!(world.session.reason(), Some("the hub stops"), "the first reason counts");
}

#[test]
fn a_silent_site_is_dead() {
    let mut world = World::connected(1, 1);
    world.site =
        downburst_session::SiteSession::new("other".to_owned(), downburst_session::SiteState::default());
    world.run_for(Micros::from_secs(12));
    assert_eq!(world.session.reason(), Some("the site sent nothing in time"));
    assert!(world.closed);
}

#[test]
fn a_leg_that_is_left_to_goes_by_the_protocol_alone() {
    let mut world = World::connected(1, 1);
    world.tell(SessionInput::JoinLeg(Box::new(join(5))));
    world.tell(SessionInput::Pass(HubInput::LeaveLeg(LegId(5))));
    world.run_for(SECOND);
    assert!(world.joined.len() == 1 && world.left == [LegId(5)]);
}
