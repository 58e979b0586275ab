use downburst_model::{Digest, Lane, LegId, Origin, ProductId, ProductInfo, ProductKey, WallMicros};
use proptest::prelude::*;

use super::*;
use crate::Subscription;
use crate::patterns::Patterns;
use crate::train::{Head, decode};

const EPOCH: Epoch = Epoch(3);

fn feed() -> FeedName {
    FeedName::parse("NGRID").unwrap()
}

fn filter(pattern: &str, trains: bool) -> Arc<Filter> {
    let wish = Subscription { feed: feed(), pattern: pattern.to_owned(), not_pattern: None, within: None };
    Arc::clone(Patterns::compile(&[wish], false, |_| trains).filter(&feed()).unwrap())
}

fn entry(sequence: u64, id: &str, bytes: Option<usize>, class: Class) -> Entry {
    let info = ProductInfo {
        key: ProductKey { feed: feed(), epoch: EPOCH, sequence: Sequence(sequence) },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse("hub").unwrap(),
        created: WallMicros(sequence as i64),
        stored: WallMicros(-(sequence as i64)),
        size: bytes.unwrap_or(0) as u64,
        digest: Digest([7; 32]),
        class,
        hops: None,
        ldm: None,
        properties: None,
    };
    Entry { info, bytes: bytes.map(|size| vec![sequence as u8; size].into()) }
}

fn stretch(entries: Vec<Entry>, filter: Arc<Filter>) -> Stretch {
    Stretch::new((feed(), EPOCH), (Sequence(0), Sequence(1_000)), entries, filter)
}

/// The numbers of each piece; true marks a product sent by itself.
fn numbers(stretch: &Stretch) -> Vec<(bool, Vec<u64>)> {
    let of = |piece: &Piece| match piece {
        Piece::Product(entry) => (true, vec![entry.info.key.sequence.0]),
        Piece::Cars(cars) => (false, cars.places.iter().map(|place| place.sequence).collect()),
    };
    stretch.pieces.iter().map(of).collect()
}

#[test]
fn small_products_of_a_class_ride_together_and_others_alone() {
    let entries = vec![
        entry(1, "x", Some(10), Class::Grid),
        entry(2, "y", Some(10), Class::Grid),
        entry(3, "x", Some(0), Class::Grid),
        entry(4, "x", Some(CAR_BYTES + 1), Class::Grid),
        entry(5, "x", Some(10), Class::Grid),
        entry(6, "x", Some(10), Class::Warning),
        entry(7, "x", None, Class::Warning),
        entry(8, "x", Some(CAR_BYTES), Class::Warning),
    ];
    let together = numbers(&stretch(entries.clone(), filter("x", true)));
    let expected = [
        (false, vec![1, 3]),
        (true, vec![4]),
        (false, vec![5]),
        (false, vec![6]),
        (true, vec![7]),
        (false, vec![8]),
    ];
    assert_eq!(together, expected);
    let alone = numbers(&stretch(entries, filter("x", false)));
    assert!(alone.iter().all(|(by_itself, _)| *by_itself) && alone.len() == 7, "{alone:?}");
}

#[test]
fn a_run_fits_one_slice() {
    let entries = (1..=300).map(|n| entry(n, &"i".repeat(255), Some(2_000), Class::Grid)).collect();
    let stretch = stretch(entries, filter("i", true));
    let sizes: Vec<usize> = stretch
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Cars(cars) => cars.bytes.len(),
            Piece::Product(_) => panic!("a small product by itself"),
        })
        .collect();
    assert!(sizes.iter().all(|size| *size <= TRAIN_BYTES), "{sizes:?}");
    assert!(sizes.len() <= 12, "{sizes:?}");
    assert!(stretch.memory_bytes() >= 300 * 2_000);
}

#[test]
fn the_account_of_a_stretch_is_what_it_holds_and_little_of_that_is_empty() {
    let in_turn = |n| entry(n, "x", Some(if n % 2 == 0 { 100 } else { CAR_BYTES + 1 }), Class::Grid);
    let small = |n| entry(n, "x", Some(2_000), Class::Grid);
    for entries in [(1..=100).map(in_turn).collect::<Vec<_>>(), (1..=100).map(small).collect()] {
        let stretch = stretch(entries, filter("x", true));
        let (counted, mut used, mut held) = (stretch.memory_bytes(), 0, 0);
        for piece in stretch.pieces {
            if let Piece::Cars(cars) = piece {
                let Cars { bytes, places, .. } = Arc::try_unwrap(cars).unwrap();
                used += bytes.len();
                held += bytes.try_into_mut().unwrap().capacity() + places.capacity() * size_of::<Place>();
            }
        }
        assert!(held <= 2 * used + 4_096, "{held} bytes are held for {used}");
        assert!(counted >= held, "{counted} bytes are counted where {held} are held");
    }
}

#[test]
fn what_does_not_belong_to_the_stretch_is_left_out() {
    let mut foreign = entry(5, "x", Some(1), Class::Grid);
    foreign.info.key.epoch = Epoch(99);
    let entries = [4, 6, 6, 5, 9, 11].map(|n| entry(n, "x", Some(1), Class::Grid));
    let entries = entries.into_iter().chain([foreign]);
    let stretch = Stretch::new((feed(), EPOCH), (Sequence(4), Sequence(10)), entries, filter("x", true));
    assert_eq!(numbers(&stretch), [(false, vec![6, 9])]);
}

proptest! {
    #[test]
    fn any_part_of_a_run_is_a_train_of_its_own(
        steps in prop::collection::vec((1u64..4, 0usize..90), 1..40),
        first in 0u64..90,
        length in 0u64..90,
    ) {
        let mut sequence = 0;
        let entries: Vec<Entry> = steps
            .into_iter()
            .map(|(step, size)| {
                sequence += step;
                entry(sequence, &format!("id {sequence}"), Some(size), Class::Bulk)
            })
            .collect();
        let last = first + length;
        let expected: Vec<(u64, Bytes)> = entries
            .iter()
            .map(|entry| (entry.info.key.sequence.0, entry.bytes.as_ref().and_then(Content::whole).unwrap()))
            .filter(|(number, _)| (first..=last).contains(number))
            .collect();
        let stretch = stretch(entries, filter("id", true));
        let [Piece::Cars(cars)] = stretch.pieces.as_slice() else { panic!("one run") };
        let Some(part) = cars.part(first, last) else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        prop_assert_eq!(part.products, expected.len() as u64);
        prop_assert_eq!(part.product_bytes, expected.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
        let (base, class) = (cars.base.clone(), cars.class);
        let (leg, previous) = (LegId(1), part.first - 1);
        let head = Head { feed: feed(), epoch: EPOCH, class, lane: Lane::Live, leg, previous, to: part.last, base };
        let mut body = BytesMut::new();
        head.encode(&mut body);
        body.extend_from_slice(&part.bytes);
        let (train, _) = decode(&body.freeze()).unwrap();
        let read: Vec<(u64, Bytes)> = train.cars.into_iter().map(|car| (car.sequence.0, car.bytes)).collect();
        prop_assert_eq!(read, expected);
    }
}
