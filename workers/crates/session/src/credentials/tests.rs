use std::convert::Infallible;

use super::*;

fn secrets(next: Option<&str>, former: Option<&str>) -> Secrets {
    Secrets::new("one".to_owned(), next.map(str::to_owned), former.map(str::to_owned))
}

fn offered(secrets: &mut Secrets, fresh: &str) -> String {
    let current = secrets.shown().to_owned();
    offered_for(secrets, &current, fresh)
}

fn offered_for(secrets: &mut Secrets, of: &str, fresh: &str) -> String {
    secrets.offer(|it| it == of, || Ok::<_, Infallible>(fresh.to_owned())).unwrap().to_owned()
}

fn all(secrets: &Secrets) -> (&str, Option<&str>, Option<&str>) {
    (secrets.current(), secrets.next(), secrets.former())
}

#[test]
fn one_takes_the_place_of_another_once_the_hub_keeps_it() {
    let mut secrets = secrets(None, None);
    assert_eq!(offered(&mut secrets, "two"), "two");
    assert_eq!(offered(&mut secrets, "three"), "two", "asked twice, the same is offered");
    assert_eq!((secrets.shown(), all(&secrets)), ("one", ("one", Some("two"), None)));
    assert_eq!(secrets.kept(|it| it == "other"), None);
    assert_eq!(secrets.kept(|it| it == "two"), Some("two"));
    assert_eq!((secrets.shown(), all(&secrets)), ("two", ("two", None, Some("one"))));
    assert_eq!(secrets.kept(|it| it == "two"), Some("two"), "said twice, it is shown twice");
    assert_eq!(offered_for(&mut secrets, "one", "three"), "two", "the session still is the former one's");
    assert!(!secrets.let_in());
    assert_eq!(secrets.kept(|it| it == "two"), None, "the session is its own: there is nothing to show");
    assert_eq!(offered(&mut secrets, "three"), "three");
}

#[test]
fn what_the_hub_refuses_is_followed_by_what_it_may_know_instead() {
    let mut secrets = secrets(Some("two"), Some("zero"));
    let mut shown = vec![secrets.shown().to_owned()];
    while secrets.refused() {
        shown.push(secrets.shown().to_owned());
    }
    assert_eq!(shown, ["one", "two", "zero", "one"], "what is refused first may be a session that stood");
    assert_eq!(secrets.shown(), "one", "the next round begins with the first");
    assert_eq!(all(&secrets), ("one", Some("two"), Some("zero")), "a refusal forgets nothing");
}

#[test]
fn the_end_of_the_former_one_in_its_session_says_nothing_of_the_current_one() {
    let mut secrets = secrets(None, None);
    offered(&mut secrets, "two");
    secrets.kept(|it| it == "two");
    assert!(secrets.refused());
    assert_eq!(secrets.shown(), "two");
    assert!(secrets.refused());
    assert_eq!(secrets.shown(), "one", "only then");
}

#[test]
fn a_session_sees_more_than_one_change() {
    let mut secrets = secrets(None, None);
    for (of, fresh) in [("one", "two"), ("two", "three"), ("three", "four")] {
        assert_eq!(offered_for(&mut secrets, of, fresh), fresh);
        assert_eq!(secrets.kept(|it| it == fresh), Some(fresh));
    }
    assert_eq!(all(&secrets), ("four", None, Some("three")));
    assert_eq!(offered_for(&mut secrets, "four", "five"), "five");
    assert!(secrets.refused(), "the session was four's, and five was offered");
    assert_eq!(secrets.shown(), "five");
}

#[test]
fn who_lets_the_site_in_decides_which_is_the_current_one() {
    let mut lost_answer = secrets(Some("two"), None);
    assert!(lost_answer.refused() && lost_answer.let_in());
    assert_eq!(all(&lost_answer), ("two", None, Some("one")));
    let mut restored_hub = secrets(None, Some("zero"));
    assert!(restored_hub.refused() && restored_hub.let_in());
    assert_eq!(all(&restored_hub), ("zero", None, Some("one")));
    assert!(!restored_hub.let_in(), "nothing to keep");
}

#[test]
fn randomness_that_fails_leaves_everything_as_it_is() {
    let mut secrets = secrets(None, None);
    assert_eq!(secrets.offer(|it| it == "one", || Err("no random numbers")), Err("no random numbers"));
    assert_eq!(all(&secrets), ("one", None, None));
}

#[test]
fn nothing_of_them_is_printed() {
    assert!(!format!("{:?}", secrets(Some("two"), Some("zero"))).contains("two"));
}
