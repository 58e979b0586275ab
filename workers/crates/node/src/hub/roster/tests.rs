use downburst_session::RefusalCode;

use super::*;

fn site() -> SiteName {
    SiteName::parse("unl.edu").unwrap()
}

fn register(roster: &Roster, stand_by: bool) -> Result<Member, Refused> {
    roster.register(&site(), "credential", stand_by, (1, [127, 0, 0, 1].into()), Micros::from_secs(1))
}

fn is_refused(member: &mut Member, expected: RefusalCode) -> bool {
    let command = member.commands.try_recv();
    matches!(command, Ok(Command::Tell(SessionInput::Refuse(Refused { code, .. }))) if code == expected)
}

#[test]
fn a_session_that_loses_its_place_learns_it_and_no_other_one_does() {
    let roster = Roster::new();
    let mut first = register(&roster, true).ok().unwrap();
    let mut second = register(&roster, false).ok().unwrap();
    assert!(is_refused(&mut first, RefusalCode::Busy));
    assert!(register(&roster, false).is_err());
    assert!(second.commands.try_recv().is_err());
}

#[test]
fn the_last_session_that_ends_leaves_the_roster_empty() {
    let roster = Roster::new();
    let open = roster.open.subscribe();
    let serial = register(&roster, false).ok().unwrap().handle.serial;
    assert_eq!(*open.borrow(), 1);
    assert!(!roster.unregister(&site(), serial + 1) && *open.borrow() == 1);
    assert!(roster.unregister(&site(), serial) && *open.borrow() == 0);
}

#[test]
fn sessions_of_removed_sites_end_after_the_set_is_replaced() {
    let roster = Roster::new();
    let mut member = register(&roster, false).ok().unwrap();
    assert!(!*roster.told.borrow());
    roster.replace(Vec::new());
    assert!(*roster.told.borrow() && is_refused(&mut member, RefusalCode::Credential));
}

#[test]
fn an_answer_reaches_the_session_that_asked_and_nobody_twice() {
    let roster = Roster::new();
    let (ask, mut answered) = roster.ask().ok().unwrap();
    let answer = || EnrolAnswer { ask, ok: true, site: Some(site()), sentence: None, ends_us: None };
    assert!(roster.answer(answer()) && !roster.answer(answer()));
    assert!(answered.try_recv().is_ok_and(|answer| answer.site == Some(site())));
}
