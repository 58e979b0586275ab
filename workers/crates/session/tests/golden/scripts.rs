//! The scripts of the conversations.

use downburst_session::VERSION;

use crate::file::{Conversation, Hex, HubAct, Offer, Order, Position, Published, Show, Wish};
use crate::peers::BEGIN_US;
use crate::stage::Stage;

/// Every conversation of the newest release, by the name of its file.
pub fn all() -> Vec<(&'static str, Conversation)> {
    vec![
        ("enrol", enrol()),
        ("resume", resume()),
        ("foreign-epoch", foreign_epoch()),
        ("pattern-change", pattern_change()),
        ("lost-and-damaged", lost_and_damaged()),
        ("multicast", multicast()),
        ("silent-leg", silent_leg()),
        ("refused", refused()),
        ("trains", trains()),
        ("data-connections", data_connections()),
        ("resends", resends()),
    ]
}

fn enrol() -> Conversation {
    let mut stage = stage(
        "A site enrols by token, and gets products of every class, an empty one, and one in slices",
        vec![],
    );
    let show = Show::Token { secret: "one-time".to_owned(), credential_sha256: "ab".repeat(32) };
    stage.connect(show);
    stage.hub(admit(vec![
        wish(GRIDS, ".*"),
        Wish { not_pattern: Some("^SX".to_owned()), ..wish(TEXT, "^S") },
    ]));
    stage.hub(open(GRIDS, 71, 40));
    stage.hub(open(TEXT, 72, 0));
    stage.wait(400);
    stage.hub(publish(TEXT, 1, "SAUS70 KWBC", "Observation", 300));
    stage.hub(publish(TEXT, 2, "FXUS61 KOKX not wanted", "Observation", 300));
    stage.hub(publish(TEXT, 3, "SXUS20 KWNB not wanted either", "Observation", 300));
    stage.hub(publish(TEXT, 4, "SEUS75 empty", "Warning", 0));
    stage.hub(publish(GRIDS, 41, "large", "Grid", 150_000));
    stage.hub(publish(GRIDS, 45, "small", "Bulk", 2_000));
    stage.wait(6_000);
    stage.hub(refuse("Unavailable", "this hub is stopping; the node comes back by itself"));
    stage.end()
}

fn resume() -> Conversation {
    let mut stage = stage(
        "A site comes back with holes, and is sent what it lacks beside what is live",
        vec![known(71, &[(0, 10), (12, 12)], 12)],
    );
    stage.hub(open(GRIDS, 71, 8));
    (9..=16).for_each(|sequence| stage.hub(publish(GRIDS, sequence, "late", "Grid", 500)));
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.hub(publish(GRIDS, 17, "live", "Grid", 70_000));
    stage.wait(300);
    stage.disconnect();
    stage.hub(publish(GRIDS, 19, "missed", "Observation", 10));
    stage.wait(1_000);
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.wait(1_000);
    stage.disconnect();
    stage.end()
}

fn foreign_epoch() -> Conversation {
    let mut stage = stage(
        "The hub's log began anew: the site resumes by time, and holds some of what it is sent",
        vec![known(70, &[(0, 900)], 1_200)],
    );
    stage.hold(&["product 2 at 660", "product 3 at 1200"]);
    stage.hub(open(GRIDS, 71, 0));
    for (sequence, second) in [(1, 300), (2, 660), (3, 1_200), (4, 1_500)] {
        let id = format!("product {sequence} at {second}");
        stage.hub(HubAct::Publish(Published {
            stored_us: stored_us(second),
            id,
            ..published(GRIDS, sequence, "", "Grid", 100)
        }));
    }
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.wait(1_000);
    stage.disconnect();
    stage.end()
}

fn pattern_change() -> Conversation {
    let mut stage =
        stage("Subscriptions change while products come: a pattern, a feed more, a feed less", vec![]);
    stage.hub(open(GRIDS, 71, 5));
    stage.hub(open(TEXT, 72, 7));
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, "^A")]));
    stage.hub(publish(GRIDS, 6, "A wanted", "Grid", 100));
    stage.hub(publish(GRIDS, 7, "B not yet", "Grid", 100));
    stage.wait(500);
    stage.hub(HubAct::Subscribe(vec![wish(GRIDS, "^[AB]"), wish(TEXT, ".*")]));
    stage.hub(publish(GRIDS, 8, "B now", "Grid", 100));
    stage.hub(publish(TEXT, 8, "text", "Observation", 100));
    stage.wait(500);
    stage.hub(HubAct::Subscribe(vec![wish(TEXT, ".*")]));
    stage.hub(publish(GRIDS, 9, "B no more", "Grid", 100));
    stage.hub(publish(TEXT, 10, "text", "Observation", 100));
    stage.wait(500);
    stage.disconnect();
    stage.end()
}

fn lost_and_damaged() -> Conversation {
    let mut stage = stage(
        "Products whose bytes are gone expire; one that is damaged once comes again; one damaged three times is \
         rejected",
        vec![known(71, &[(0, 2)], 2)],
    );
    stage.damage(GRIDS, 6, 1);
    stage.damage(GRIDS, 7, 3);
    stage.hub(open(GRIDS, 71, 2));
    (3..=5).for_each(|sequence| stage.hub(publish(GRIDS, sequence, "old", "Grid", 100)));
    stage.hub(HubAct::Evict { feed: GRIDS.to_owned(), to: 4 });
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.hub(publish(GRIDS, 6, "damaged once", "Grid", 100));
    stage.hub(publish(GRIDS, 7, "damaged", "Grid", 100));
    stage.wait(13_000);
    stage.disconnect();
    stage.end()
}

fn multicast() -> Conversation {
    let mut stage = stage("A multicast leg is joined, loses packets, repairs them, and is left", vec![]);
    stage.hub(open(GRIDS, 71, 3));
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, "^A")]));
    stage.wait(200);
    stage.leg(offer(GRIDS, 71), 3, &[4]);
    stage.wait(600);
    stage.hub(publish(GRIDS, 4, "A by multicast, with a hole", "Grid", 3_000));
    stage.hub(publish(GRIDS, 5, "B passed over", "Grid", 50));
    stage.hub(publish(GRIDS, 9, "A small", "Warning", 50));
    stage.wait(1_500);
    stage.hub(HubAct::WithdrawLeg { leg: LEG });
    stage.wait(10);
    stage.silence_leg();
    stage.hub(publish(GRIDS, 10, "A by unicast again", "Grid", 50));
    stage.wait(1_000);
    stage.disconnect();
    stage.end()
}

fn silent_leg() -> Conversation {
    let mut stage =
        stage("A leg dies in the middle of a product: the site leaves it and asks the session", vec![]);
    stage.hub(open(GRIDS, 71, 3));
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.leg(offer(GRIDS, 71), 3, &[3, 4, 5, 6, 7, 8, 9]);
    stage.wait(300);
    stage.hub(publish(GRIDS, 4, "half of it is lost", "Grid", 6_000));
    stage.wait(1);
    stage.silence_leg();
    let (leg, leg_epoch) = (LEG, offer(GRIDS, 71).leg_epoch);
    stage.hub(HubAct::PacketsGone { leg, leg_epoch, packets: vec![(3, 9)] });
    stage.hub(publish(GRIDS, 5, "nobody announces it", "Grid", 100));
    stage.wait(9_000);
    stage.disconnect();
    stage.end()
}

fn refused() -> Conversation {
    let mut stage = stage("Every refusal a site can hear, with its sentence", vec![]);
    for code in ["Version", "Token", "Credential", "Expired", "Busy", "Protocol", "Unavailable"] {
        stage.connect(credential());
        stage.hub(refuse(code, &format!("a sentence for {code}")));
        stage.disconnect();
    }
    stage.end()
}

fn trains() -> Conversation {
    let mut stage = stage(
        "Small products travel in trains: one car is damaged once, one is held already, one is not wanted, one is \
         large",
        vec![known(71, &[(0, 2), (5, 5)], 2)],
    );
    stage.damage(GRIDS, 7, 1);
    stage.hold(&["held 9"]);
    stage.hub(open(GRIDS, 71, 2));
    for sequence in 3..=12 {
        let (id, size) = match sequence {
            9 => ("held", 700),
            10 => ("not wanted", 700),
            11 => ("large", 90_000),
            _ => ("small", 700),
        };
        stage.hub(publish(GRIDS, sequence, id, "Grid", size));
    }
    stage.connect(credential());
    stage.hub(admit(vec![Wish { not_pattern: Some("^not".to_owned()), ..wish(GRIDS, ".*") }]));
    stage.wait(500);
    (13..=15).for_each(|sequence| stage.hub(publish(GRIDS, sequence, "live", "Grid", 200)));
    stage.wait(8_000);
    stage.disconnect();
    stage.end()
}

fn data_connections() -> Conversation {
    let mut stage = stage("Grids travel by two data connections; one breaks with products on it", vec![]);
    stage.hub(open(GRIDS, 71, 0));
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    let grids = vec!["Grid".to_owned(), "Bulk".to_owned()];
    stage.hub(HubAct::PlanStreams(vec![grids.clone(), grids]));
    stage.wait(10);
    (1..=4).for_each(|sequence| stage.hub(publish(GRIDS, sequence, "grid", "Grid", 40_000)));
    stage.hub(publish(GRIDS, 5, "warning on the first", "Warning", 100));
    stage.break_stream(1);
    stage.wait(200);
    stage.hub(publish(GRIDS, 6, "grid", "Grid", 40_000));
    stage.wait(2_000);
    stage.hub(publish(GRIDS, 7, "on the one that came back", "Bulk", 40_000));
    stage.wait(1_000);
    stage.hub(HubAct::PlanStreams(vec![]));
    stage.hub(publish(GRIDS, 8, "on the first again", "Grid", 40_000));
    stage.wait(1_000);
    stage.disconnect();
    stage.end()
}

fn resends() -> Conversation {
    let mut stage = stage(
        "Stored products go once more, beside a live one; a backfill brings what the site has not; the next \
         session has nothing of that to repeat",
        vec![known(71, &[(0, 6)], 6)],
    );
    stage.hold(&["A 4"]);
    stage.hub(open(GRIDS, 71, 0));
    (1..=6).for_each(|sequence| {
        let id = if sequence % 2 == 0 { "A" } else { "B" };
        stage.hub(publish(GRIDS, sequence, id, "Grid", 30_000 * (sequence as usize % 3)));
    });
    stage.hub(HubAct::Evict { feed: GRIDS.to_owned(), to: 1 });
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.hub(HubAct::Resends(vec![order(8, false, ".*"), order(9, true, "^A")]));
    stage.hub(publish(GRIDS, 7, "live", "Grid", 100));
    stage.disconnect();
    stage.wait(100);
    stage.connect(credential());
    stage.hub(admit(vec![wish(GRIDS, ".*")]));
    stage.wait(3_000);
    stage.disconnect();
    stage.end()
}

fn order(resend: u64, backfill: bool, pattern: &str) -> Order {
    Order {
        resend,
        feed: GRIDS.to_owned(),
        epoch: 71,
        after: 0,
        to: 6,
        backfill,
        pattern: pattern.to_owned(),
    }
}

fn stage(about: &str, known: Vec<Position>) -> Stage {
    Stage::new(Conversation {
        about: about.to_owned(),
        session_version: VERSION,
        known,
        ..Conversation::default()
    })
}

fn credential() -> Show {
    Show::Credential { site: SITE.to_owned(), secret: "kept by the site".to_owned() }
}

fn admit(subscriptions: Vec<Wish>) -> HubAct {
    HubAct::Admit { site: SITE.to_owned(), subscriptions }
}

fn refuse(code: &str, sentence: &str) -> HubAct {
    HubAct::Refuse { code: code.to_owned(), sentence: sentence.to_owned() }
}

fn wish(feed: &str, pattern: &str) -> Wish {
    Wish { feed: feed.to_owned(), pattern: pattern.to_owned(), not_pattern: None }
}

fn open(feed: &str, epoch: u64, head: u64) -> HubAct {
    HubAct::Open { feed: feed.to_owned(), epoch, head, unicast_leg: 1 }
}

fn publish(feed: &str, sequence: u64, id: &str, class: &str, size: usize) -> HubAct {
    HubAct::Publish(published(feed, sequence, id, class, size))
}

fn published(feed: &str, sequence: u64, id: &str, class: &str, size: usize) -> Published {
    let stored_us = stored_us(sequence as i64);
    let (feed, id, class) = (feed.to_owned(), format!("{id} {sequence}"), class.to_owned());
    Published { feed, sequence, id, class, size, created_us: stored_us - 250_000, stored_us }
}

fn offer(feed: &str, epoch: u64) -> Offer {
    Offer {
        leg: LEG,
        feed: feed.to_owned(),
        epoch,
        leg_epoch: 0x0123_4567_89ab_cdef,
        group: "239.1.2.3".to_owned(),
        port: 5_000,
        key_id: 3,
        key: Hex(b"a key of thirty-two bytes, no le".to_vec()),
        rate_bps: 100_000_000,
    }
}

fn known(epoch: u64, settled: &[(u64, u64)], newest_stored_s: i64) -> Position {
    let (settled, newest_stored_us) = (settled.to_vec(), stored_us(newest_stored_s));
    Position { feed: GRIDS.to_owned(), epoch, settled, newest_stored_us }
}

/// Seconds after the beginning, as a stamp of the hub.
fn stored_us(second: i64) -> i64 {
    BEGIN_US + second * 1_000_000
}

const GRIDS: &str = "CONDUIT";
const TEXT: &str = "IDS|DDPLUS";
const SITE: &str = "oslo";
/// The only multicast leg.
pub const LEG: u32 = 7;
