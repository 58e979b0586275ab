//! The move of a session to another way: stored and reported first, then called at once.
use super::*;

/// A connection with products that wait for the disk, told to move.
fn moving(products: usize) -> Rig {
    let mut rig = Rig::new(settings());
    rig.connect();
    rig.stores = false;
    rig.publish(products, 40_000);
    rig.take_said();
    rig.tell(Input::Move);
    rig.settle();
    rig
}

fn store_all(rig: &mut Rig) {
    while !rig.storing.is_empty() {
        rig.store_next();
    }
    rig.settle();
}

#[test]
fn what_was_received_is_stored_and_reported_before_the_next_call() {
    let mut rig = moving(3);
    assert_eq!((rig.take_said(), rig.connection.takes_bytes()), (Vec::new(), false));
    store_all(&mut rig);
    assert_eq!((rig.take_said(), rig.receipts.len()), (vec!["farewell".to_owned()], 3));
    rig.tell(Input::HungUp { random: 1.0 });
    rig.settle();
    assert_eq!(rig.take_said(), ["dial"], "without a pause, and the owner hears of no absence");
    rig.stores = true;
    rig.answer();
    rig.settle();
    rig.publish(2, 10);
    rig.wait(SECOND);
    assert_eq!(rig.take_said(), ["well as Serve"]);
    let mut received: Vec<u64> = rig.receipts.iter().map(|it| it.key.sequence.0).collect();
    received.sort_unstable();
    assert_eq!(received, [1, 2, 3, 4, 5], "each once");
}

#[test]
fn a_node_that_does_not_hang_up_and_one_that_is_gone_delay_the_move_by_a_second_at_most() {
    let mut rig = moving(0);
    rig.wait(Micros::from_millis(1_001));
    assert_eq!(rig.take_said(), ["farewell", "dial"]);
    let mut rig = moving(1);
    rig.cut();
    store_all(&mut rig);
    assert_eq!(rig.take_said(), ["dial"]);
}

#[test]
fn a_new_role_during_the_move_holds() {
    let mut rig = moving(1);
    rig.tell(Input::Role(Role::StandBy));
    store_all(&mut rig);
    rig.tell(Input::HungUp { random: 1.0 });
    rig.settle();
    rig.answer();
    rig.settle();
    assert_eq!(rig.take_said(), ["farewell", "dial", "well as StandBy"]);
    for role in [Role::Leave, Role::End] {
        let mut rig = moving(1);
        rig.tell(Input::Role(role));
        store_all(&mut rig);
        rig.tell(Input::HungUp { random: 1.0 });
        rig.settle();
        assert_eq!(rig.take_said().last().map(String::as_str), Some("over, 0 unsaid"), "{role:?}");
    }
}

#[test]
fn there_is_no_move_without_a_session() {
    let mut rig = Rig::new(settings());
    rig.settle();
    rig.take_said();
    rig.tell(Input::Move);
    rig.settle();
    assert_eq!((rig.take_said(), rig.connection.is_up()), (Vec::new(), false));
}
