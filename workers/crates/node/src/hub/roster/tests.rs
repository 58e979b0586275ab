use downburst_hub::{SessionInput, StatusChange};
use downburst_vcmtp::Urgency;

use super::*;

fn site() -> SiteName {
    SiteName::parse("unl.edu").unwrap()
}

fn register(
    roster: &Roster,
    stand_by: bool,
    at: Micros,
) -> Result<(Handle, mpsc::UnboundedReceiver<Command>), Refused> {
    let registered = roster.register(&site(), "credential", stand_by, 1, at);
    registered.map(|(handle, commands, _)| (handle, commands))
}

fn is_put_out(commands: &mut mpsc::UnboundedReceiver<Command>) -> bool {
    matches!(
        commands.try_recv(),
        Ok(Command::Tell(SessionInput::Refuse(Refused { code: RefusalCode::Busy, .. })))
    )
}

#[test]
fn a_second_receiver_is_refused_while_the_first_is_heard_and_takes_its_place_when_it_is_not() {
    let roster = Roster::new();
    let (first, mut to_first) = register(&roster, false, Micros::from_secs(10)).unwrap();
    lock(&first.status).heard_at = Micros::from_secs(20);
    let early = register(&roster, false, Micros::from_secs(26)).err().unwrap();
    assert_eq!(early.code, RefusalCode::Busy);
    assert!(early.sentence.contains("another receiver is active as site unl.edu"), "{}", early.sentence);
    assert!(to_first.try_recv().is_err(), "the first notices nothing of it");
    assert_eq!(roster.session(&site()).map(|handle| handle.serial), Some(first.serial));

    let (second, mut to_second) = register(&roster, false, Micros::from_secs(27)).unwrap();
    assert!(is_put_out(&mut to_first) && to_second.try_recv().is_err());
    assert_eq!(roster.session(&site()).map(|handle| handle.serial), Some(second.serial));
    // `closed` after `connected` would mean that the site has left.
    assert!(!roster.unregister(&site(), first.serial), "the end of the first is not told");
    assert!(roster.take_gone().is_empty());
    assert!(roster.unregister(&site(), second.serial));
    assert_eq!(roster.take_gone(), [site()].into());
    assert!(roster.take_gone().is_empty(), "once");
}

#[test]
fn the_first_that_ends_leaves_its_place_at_once() {
    let roster = Roster::new();
    let (first, _to_first) = register(&roster, false, Micros::from_secs(1)).unwrap();
    assert!(roster.unregister(&site(), first.serial));
    assert!(register(&roster, false, Micros::from_secs(1)).is_ok());
}

#[test]
fn a_session_that_stands_by_gives_way_however_well_it_is() {
    let roster = Roster::new();
    let (_first, mut to_first) = register(&roster, true, Micros::from_secs(1)).unwrap();
    let (_second, mut to_second) = register(&roster, false, Micros::from_secs(1)).unwrap();
    assert!(is_put_out(&mut to_first));
    assert!(
        register(&roster, true, Micros::from_secs(2)).is_err(),
        "one that serves does not give way to it"
    );
    assert!(to_second.try_recv().is_err());
}

#[test]
fn what_changes_is_told_once_and_what_is_looked_at_is_not() {
    let roster = Roster::new();
    let (handle, _commands) = register(&roster, false, Micros::from_secs(1)).unwrap();
    let changed = || std::mem::take(&mut lock(&handle.status).changed);
    assert!(changed(), "a session that begins is news");
    lock(&handle.status).heard_at = Micros::from_secs(2);
    assert!(!changed());
    lock(&handle.status).apply(StatusChange::Streams(1));
    assert!(changed() && !changed());
}

fn told(roster: &Roster, credentials: serde_json::Value) {
    let wish = serde_json::json!({"feed": "NGRID", "pattern": ".*", "not_pattern": null});
    let line = serde_json::json!({
        "site": "unl.edu", "active": true, "credentials": credentials, "subscriptions": [wish],
    });
    roster.replace(vec![serde_json::from_value(line).unwrap()]);
}

fn second(number: u64) -> downburst_model::Now {
    downburst_model::Now { monotonic: Micros::from_secs(number), wall: WallMicros(number as i64 * 1_000_000) }
}

/// The commands that the session gets each second, until the end of the range.
fn tended(
    roster: &Roster,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    seconds: std::ops::Range<u64>,
) -> Vec<(u64, bool)> {
    let mut found = Vec::new();
    for number in seconds {
        roster.tend_credentials(second(number));
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Tell(SessionInput::WantCredential) => found.push((number, true)),
                Command::Tell(SessionInput::TellCredential) => found.push((number, false)),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_site_is_asked_for_another_credential_when_it_is_due_and_again_after_a_minute() {
    let roster = Roster::new();
    let (_handle, mut commands) = register(&roster, false, Micros::from_secs(1)).unwrap();
    told(
        &roster,
        serde_json::json!([{"sha256": "credential", "expires_us": 900_000_000, "renew_us": 100_000_000}]),
    );
    assert_eq!(tended(&roster, &mut commands, 90..100), []);
    assert_eq!(tended(&roster, &mut commands, 100..162), [(100, true), (160, true)]);
}

#[test]
fn a_session_goes_on_with_the_credential_that_took_the_place_of_its_own() {
    let roster = Roster::new();
    let (handle, mut commands) = register(&roster, false, Micros::from_secs(1)).unwrap();
    let (old, new) = (
        serde_json::json!({"sha256": "credential", "expires_us": 500_000_000}),
        serde_json::json!({"sha256": "next", "expires_us": 900_000_000, "replaces": "credential"}),
    );
    let take = |sha256: &str| roster.take_credential(&site(), handle.serial, sha256, WallMicros(0));
    told(&roster, serde_json::json!([old]));
    assert_eq!(take("next"), None, "nobody knows it");
    told(&roster, serde_json::json!([old, new]));
    assert_eq!(roster.take_credential(&site(), handle.serial + 1, "next", WallMicros(0)), None);
    assert_eq!(take("next").as_deref(), Some("credential"));
    assert_eq!(take("next"), None, "once");
    assert_eq!(
        tended(&roster, &mut commands, 0..62),
        [(0, false), (60, false)],
        "until the agent lets it end"
    );
    told(&roster, serde_json::json!([new]));
    assert_eq!(tended(&roster, &mut commands, 200..300), []);
    roster.expire(WallMicros(600_000_000));
    assert!(
        !matches!(commands.try_recv(), Ok(Command::Tell(SessionInput::Refuse(_)))),
        "the former one's end is nothing to it"
    );
    told(&roster, serde_json::json!([]));
    assert!(matches!(
        commands.try_recv(),
        Ok(Command::Tell(SessionInput::Refuse(Refused { code: RefusalCode::Credential, .. })))
    ));
}

#[test]
fn who_has_a_replaced_credential_alone_is_shut_out_soon_and_a_revoked_one_at_once() {
    let roster = Roster::new();
    let feed = FeedName::parse("NGRID").unwrap();
    let barred = |sha256: &str, at: i64| roster.barred(&site(), sha256, &feed, WallMicros(at));
    let new = serde_json::json!({"sha256": "next", "expires_us": 900, "replaces": "credential"});
    told(&roster, serde_json::json!([{"sha256": "credential", "expires_us": 500}, new]));
    assert_eq!((barred("credential", 0), barred("next", 0)), (None, None));
    told(&roster, serde_json::json!([new]));
    assert_eq!((barred("credential", 0), barred("next", 0)), (Some(Urgency::Soon), None));
    assert_eq!(
        (barred("credential", 900), barred("next", 900)),
        (Some(Urgency::AtOnce), Some(Urgency::AtOnce))
    );
    told(&roster, serde_json::json!([]));
    assert_eq!((barred("credential", 0), barred("next", 0)), (Some(Urgency::AtOnce), Some(Urgency::AtOnce)));
}

#[test]
fn sites_that_were_enrolled_together_are_asked_one_after_the_other() {
    let roster = Roster::new();
    let mut streams = Vec::new();
    let mut lines = Vec::new();
    for number in 0..10 {
        let name = SiteName::parse(&format!("site{number}")).unwrap();
        let (_handle, commands, _) =
            roster.register(&name, "credential", false, 1, Micros::from_secs(1)).ok().unwrap();
        streams.push(commands);
        let credential = serde_json::json!({"sha256": "credential", "expires_us": null, "renew_us": 0});
        let line = serde_json::json!({"site": name, "active": true, "credentials": [credential], "subscriptions": []});
        lines.push(serde_json::from_value(line).unwrap());
    }
    roster.replace(lines);
    let mut asked = Vec::new();
    for number in 0..4 {
        roster.tend_credentials(second(number));
        let wanted = |commands: &mut mpsc::UnboundedReceiver<Command>| {
            std::iter::from_fn(|| commands.try_recv().ok())
                .filter(|it| matches!(it, Command::Tell(SessionInput::WantCredential)))
                .count()
        };
        asked.push(streams.iter_mut().map(wanted).sum::<usize>());
    }
    assert_eq!(asked, [4, 4, 2, 0]);
}
