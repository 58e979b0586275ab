//! Stamps from the network: no number panics, none takes memory.
use downburst_offset::{Estimator, Exchange, Taken};
use proptest::prelude::*;

fn stamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        Just(i64::MIN),
        Just(i64::MAX),
        -50i64..50,
        Just(0),
        (0i64..100).prop_map(|s| s * 7_000_000)
    ]
}

fn exchange() -> impl Strategy<Value = Exchange> {
    (stamp(), stamp(), stamp(), stamp()).prop_map(|(sent, received, replied, returned)| Exchange {
        sent,
        received,
        replied,
        returned,
    })
}

proptest! {
    #[test]
    fn no_stamps_panic(exchanges in prop::collection::vec(exchange(), 0..100), at in stamp()) {
        let mut estimator = Estimator::default();
        for exchange in exchanges {
            let taken = estimator.take(exchange);
            prop_assert_eq!(taken == Taken::Refused, exchange.round_trip_us().is_none());
            let _ = estimator.at(at);
            let _ = estimator.at(exchange.returned);
        }
    }

    #[test]
    fn possible_stamps_have_a_bound_of_half_their_round_trip(
        sent in -1_000_000i64..1_000_000, out in 0i64..500_000, stay in 0i64..1_000, back in 0i64..500_000,
        offset in any::<i32>(),
    ) {
        let received = sent + i64::from(offset) + out;
        let (replied, returned) = (received + stay, sent + out + stay + back);
        let mut estimator = Estimator::default();
        let exchange = Exchange { sent, received, replied, returned };
        prop_assert_eq!(estimator.take(exchange), Taken::Kept);
        let estimate = estimator.at(returned).unwrap();
        let truth = -i64::from(offset);
        prop_assert_eq!(estimate.round_trip_us, (out + back) as u64);
        prop_assert!((estimate.offset_us - truth).unsigned_abs() <= estimate.bound_us);
        prop_assert!(estimate.bound_us >= estimate.round_trip_us / 2);
    }
}
