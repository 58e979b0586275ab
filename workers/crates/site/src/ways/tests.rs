use super::*;

const RELAY: &str = "relay:1";
const SECOND: &str = "second:1";

fn at(seconds: u64) -> Micros {
    Micros::from_secs(seconds)
}

fn way(text: &str) -> RelayChain {
    if text.is_empty() { RelayChain::new() } else { relay_chain(text).unwrap() }
}

fn tell(ways: &mut Ways, chains: &[&str]) -> Option<String> {
    ways.told(&chains.iter().map(|&chain| chain.to_owned()).collect::<Vec<_>>())
}

fn order(ways: &Ways, seconds: u64) -> Vec<String> {
    ways.order(at(seconds)).iter().map(|way| way.join(",")).collect()
}

/// A connection by the first way that is not in `dead`.
fn connect(ways: &mut Ways, seconds: u64, dead: &[&str]) -> String {
    let tried = ways.order(at(seconds));
    let taken = tried.iter().find(|it| !dead.contains(&it.join(",").as_str())).cloned().unwrap();
    ways.connected(at(seconds), &tried, &taken);
    taken.join(",")
}

/// A site that connected directly and was told these chains.
fn told(chains: &[&str]) -> Ways {
    let mut ways = Ways::default();
    assert_eq!(connect(&mut ways, 0, &[]), "");
    tell(&mut ways, chains);
    ways
}

#[test]
fn a_site_that_is_told_a_way_tries_it_and_moves() {
    let mut ways = told(&[RELAY]);
    assert_eq!(ways.try_better(at(1)), Some(way(RELAY)));
    assert_eq!(ways.try_better(at(1)), None, "one trial at a time");
    assert!(ways.opened(at(1)));
    ways.ended(at(2));
    assert_eq!(order(&ways, 2), [RELAY, ""], "the short session by the direct way is no fault of it");
    assert_eq!(connect(&mut ways, 2, &[]), RELAY);
    assert_eq!(ways.try_better(at(2)), None);
}

#[test]
fn the_same_set_told_again_changes_nothing() {
    let mut ways = told(&[RELAY, RELAY]);
    assert!(tell(&mut ways, &[RELAY]).is_none());
    ways.ended(at(100));
    assert_eq!(connect(&mut ways, 100, &[]), RELAY);
    assert!(tell(&mut ways, &[RELAY]).is_none());
    assert_eq!((ways.try_better(at(100)), ways.subscribed(), ways.deadline(at(100))), (None, None, None));
}

#[test]
fn an_empty_set_and_a_hub_that_tells_none_lead_back_to_the_direct_way() {
    for tells in [true, false] {
        let mut ways = told(&[RELAY]);
        ways.ended(at(100));
        connect(&mut ways, 100, &[]);
        let sentence = if tells { tell(&mut ways, &[]) } else { ways.subscribed() };
        assert!(sentence.unwrap().ends_with("connect directly"));
        assert_eq!(ways.try_better(at(101)), Some(way("")));
        assert!(ways.opened(at(101)));
        ways.ended(at(101));
        assert_eq!(connect(&mut ways, 101, &[]), "");
    }
}

#[test]
fn a_dead_relay_leaves_the_session_where_it_is_and_is_tried_after_growing_rests() {
    let mut ways = told(&[RELAY]);
    let mut now_s = 0;
    let rests: Vec<u64> = (0..6)
        .map(|_| {
            assert_eq!(ways.try_better(at(now_s)), Some(way(RELAY)));
            ways.not_opened(at(now_s));
            assert_eq!(ways.try_better(at(now_s)), None);
            let due_s = ways.deadline(at(now_s)).unwrap().0 / 1_000_000;
            let rest_s = due_s - std::mem::replace(&mut now_s, due_s);
            rest_s / 60
        })
        .collect();
    assert_eq!(rests, [1, 2, 4, 8, 16, 16]);
    assert_eq!(ways.taken.as_ref().map(|taken| taken.way.clone()), Some(way("")));
}

#[test]
fn a_way_by_which_no_session_lasts_rests_and_one_that_lasts_is_forgiven() {
    let mut ways = told(&[RELAY, SECOND]);
    ways.ended(at(100));
    connect(&mut ways, 100, &[]);
    ways.ended(at(159));
    assert_eq!(order(&ways, 160), [SECOND, "", RELAY]);
    connect(&mut ways, 160, &[]);
    ways.ended(at(161));
    assert_eq!(order(&ways, 162), ["", RELAY, SECOND], "the direct way before those that rest");
    assert_eq!(order(&ways, 219), [RELAY, "", SECOND]);
    connect(&mut ways, 219, &[]);
    ways.ended(at(279));
    connect(&mut ways, 300, &[]);
    ways.ended(at(301));
    assert_eq!(order(&ways, 361), [RELAY, SECOND, ""], "a minute again, not two");
}

#[test]
fn a_relay_that_dies_is_left_for_the_direct_way_and_taken_again_after_its_rest() {
    let mut ways = told(&[RELAY]);
    ways.ended(at(100));
    connect(&mut ways, 100, &[]);
    ways.ended(at(200));
    assert_eq!(connect(&mut ways, 200, &[RELAY]), "");
    assert_eq!((ways.try_better(at(259)), ways.deadline(at(259))), (None, Some(at(260))));
    assert_eq!(ways.try_better(at(260)), Some(way(RELAY)));
}

#[test]
fn while_the_hub_is_away_no_way_is_blamed() {
    let mut ways = told(&[RELAY]);
    ways.ended(at(100));
    assert_eq!(order(&ways, 100), [RELAY, ""]);
    // No way leads anywhere: nothing is connected.
    assert_eq!(connect(&mut ways, 130, &[]), RELAY);
}

#[test]
fn an_end_that_the_site_wants_blames_no_way() {
    let mut ways = told(&[RELAY]);
    ways.ended(at(100));
    connect(&mut ways, 100, &[]);
    ways.leaves();
    ways.ended(at(101));
    assert_eq!(order(&ways, 101), [RELAY, ""]);
}

#[test]
fn a_hub_that_changes_its_mind_during_the_trial_stops_the_move() {
    let mut ways = told(&[RELAY]);
    assert_eq!(ways.try_better(at(1)), Some(way(RELAY)));
    tell(&mut ways, &[]);
    assert!(!ways.opened(at(2)));
    assert_eq!(ways.try_better(at(2)), None);
}

#[test]
fn the_administrators_choice_stands_and_a_session_is_not_broken_for_it() {
    let mut ways = Ways::chosen(vec![way("own:1")], false);
    assert_eq!(connect(&mut ways, 0, &["own:1"]), "");
    let sentence = tell(&mut ways, &[RELAY]).unwrap();
    assert!(sentence.contains("by the relay relay:1") && sentence.contains("(--via) stands"), "{sentence}");
    assert!(tell(&mut ways, &[RELAY]).is_none(), "one line");
    assert_eq!((ways.try_better(at(100)), ways.deadline(at(1))), (None, None));
    assert_eq!(order(&ways, 100), ["own:1", ""]);
    let only = Ways::chosen(vec![way("own:1")], true);
    assert_eq!(order(&only, 0), ["own:1"]);
}

#[test]
fn a_way_by_which_no_session_lasts_comes_last() {
    let mut ways = Ways::chosen(vec![way("a:1"), way("b:2")], false);
    connect(&mut ways, 0, &[]);
    ways.ended(at(59));
    assert_eq!(order(&ways, 59), ["b:2", "", "a:1"]);
    let mut only = Ways::chosen(vec![way("a:1")], true);
    connect(&mut only, 0, &[]);
    only.ended(at(1));
    assert_eq!(order(&only, 1), ["a:1"], "nothing else leads there");
}

#[test]
fn rests_are_bounded() {
    let mut rests = Rests::default();
    (0..200).for_each(|port| rests.begin(at(port), &way(&format!("a:{}", port + 1))));
    assert!(rests.until(at(0), &way("a:200")).is_some());
    assert!(rests.until(at(0), &way("a:136")).is_none(), "64 are kept");
}
