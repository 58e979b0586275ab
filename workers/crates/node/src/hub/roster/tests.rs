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
    matches!(commands.try_recv(), Ok(Command::Refuse(Refused { code: RefusalCode::Busy, .. })))
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
    // `closed` after `connected` would say that the site has left.
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
    handle.change().streams.open = 1;
    assert!(changed() && !changed());
}
