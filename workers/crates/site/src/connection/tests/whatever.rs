//! Random events of a connection, in any order.
use proptest::prelude::*;

use super::*;

/// An event of a connection.
#[derive(Clone, Debug)]
enum Happening {
    Publish(usize, usize),
    Cut,
    Answer,
    NoAnswer,
    Store,
    Wait(u64),
    StandBy,
    Serve,
    Move,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1usize..4, 0usize..100_000).prop_map(|(count, size)| Happening::Publish(count, size)),
        1 => Just(Happening::Cut),
        4 => Just(Happening::Answer),
        1 => Just(Happening::NoAnswer),
        4 => Just(Happening::Store),
        4 => (0u64..2_000).prop_map(Happening::Wait),
        1 => Just(Happening::StandBy),
        3 => Just(Happening::Serve),
        2 => Just(Happening::Move),
    ]
}

impl Rig {
    fn happen(&mut self, happening: &Happening) {
        let is_called = self.outputs.iter().rev().find_map(|output| match output {
            Output::Dial => Some(true),
            Output::HangUp | Output::Farewell => Some(false),
            _ => None,
        }) == Some(true)
            && self.hub.is_none();
        match happening {
            Happening::Publish(count, size) => self.publish(*count, *size),
            Happening::Cut => self.cut(),
            Happening::Answer if is_called => self.answer(),
            Happening::NoAnswer if is_called => self.fail_to_answer(Ended::Unanswered),
            Happening::Answer | Happening::NoAnswer => {}
            Happening::Store => self.store_next(),
            Happening::Wait(millis) => self.wait(Micros::from_millis(*millis)),
            Happening::StandBy => self.tell(Input::Role(Role::StandBy)),
            Happening::Move => self.tell(Input::Move),
            Happening::Serve => self.tell(Input::Role(Role::Serve)),
        }
        self.settle();
        assert_eq!(self.connection.misplaced(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_one_that_leaves_has_stored_and_reported_or_given_back(
        happenings in proptest::collection::vec(happening(), 1..60),
    ) {
        let mut rig = Rig::new(settings());
        rig.stores = false;
        rig.settle();
        for happening in &happenings {
            rig.happen(happening);
        }
        rig.tell(Input::Role(Role::Leave));
        while !rig.storing.is_empty() {
            rig.store_next();
        }
        rig.wait(Micros::from_secs(2));
        let unsaid: Vec<_> = rig.outputs.iter().filter_map(|output| match output {
            Output::Over(unsaid) => Some(unsaid.clone()),
            _ => None,
        }).collect();
        prop_assert_eq!(unsaid.len(), 1, "it ends once");
        let mut said: Vec<u64> = rig
            .receipts
            .iter()
            .chain(&unsaid[0])
            .map(|it| it.key.sequence.0)
            .collect();
        said.sort_unstable();
        said.dedup();
        let positions = rig.connection.positions();
        let is_settled = |number: &u64| positions.iter().any(|it| it.settled.contains(*number));
        prop_assert!(said.iter().all(is_settled), "what is reported is settled");
        let dials = rig.outputs.iter().filter(|it| matches!(it, Output::Dial)).count();
        let ends = rig.outputs.iter().filter(|it| matches!(it, Output::HangUp | Output::Farewell)).count();
        // Moves whose session broke meanwhile have neither.
        let moves = happenings.iter().filter(|it| matches!(it, Happening::Move)).count();
        prop_assert!(dials <= ends + moves + 1, "one connection at a time: {dials} calls, {ends} ends");
    }
}
