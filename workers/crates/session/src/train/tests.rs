use downburst_model::LdmIdent;
use proptest::prelude::*;

use super::*;
use crate::frame::{Decoder, Frame, train_header};

fn info(sequence: u64, id: &str, stamps: (i64, i64), origin: &str) -> ProductInfo {
    ProductInfo {
        key: ProductKey {
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: Epoch(7),
            sequence: Sequence(sequence),
        },
        id: ProductId::parse(id).unwrap(),
        origin: Origin::parse(origin).unwrap(),
        created: WallMicros(stamps.0),
        stored: WallMicros(stamps.1),
        size: 0,
        digest: Digest([sequence as u8; 32]),
        class: Class::Grid,
        hops: Hops::through(None, downburst_model::HubName::parse("upper").unwrap()),
        ldm: None,
        properties: None,
    }
}

/// The head and the run of cars of these products.
fn encoded(products: &[(ProductInfo, Vec<u8>)], previous: u64, to: u64) -> (Head, BytesMut) {
    let first = &products[0].0;
    let base = Base {
        sequence: first.key.sequence.0,
        created: first.created,
        stored: first.stored,
        origin: first.origin.clone(),
        hops: first.hops.clone(),
    };
    let mut run = BytesMut::new();
    products.iter().for_each(|(info, bytes)| put_car(&mut run, &base, info, bytes));
    let (feed, epoch) = (first.key.feed.clone(), first.key.epoch);
    (Head { feed, epoch, class: Class::Grid, lane: Lane::Backfill, leg: LegId(9), previous, to, base }, run)
}

fn body(head: &Head, run: &[u8]) -> Bytes {
    let mut body = BytesMut::new();
    head.encode(&mut body);
    body.put_slice(run);
    body.freeze()
}

fn stamp() -> impl Strategy<Value = Option<LdmStamp>> {
    let ident = prop::option::weighted(0.1, prop::collection::vec(any::<u8>(), 0..256));
    prop::option::of((any::<[u8; 16]>(), any::<u32>(), any::<u32>(), ident)).prop_map(|said| {
        said.map(|(signature, sequence, feed_type, ident)| LdmStamp {
            signature,
            sequence,
            feed_type,
            ident: ident.and_then(LdmIdent::new),
        })
    })
}

fn products() -> impl Strategy<Value = Vec<(ProductInfo, Vec<u8>)>> {
    let product = (
        1u64..4,
        "[A-Za-z0-9 /]{1,60}",
        any::<(i64, i64)>(),
        0usize..3,
        prop::collection::vec(any::<u8>(), 0..50),
        stamp(),
    );
    prop::collection::vec(product, 1..30).prop_map(|products| {
        let mut sequence = 100;
        let named = products.into_iter().map(|(step, id, stamps, origin, bytes, ldm)| {
            sequence += step;
            let info = info(sequence, &id, stamps, ["", "a.example", "b.example"][origin]);
            (ProductInfo { size: bytes.len() as u64, ldm, ..info }, bytes)
        });
        named.collect()
    })
}

proptest! {
    #[test]
    fn trains_come_back_through_frames_and_no_cut_of_one_is_taken_for_a_whole(
        products in products(),
        cut: prop::sample::Index,
    ) {
        let last = products.last().unwrap().0.key.sequence.0;
        let (head, run) = encoded(&products, 50, last + 3);
        let mut decoder = Decoder::default();
        decoder.push(train_header(&head, run.len()));
        prop_assert!(decoder.next().unwrap().is_none());
        decoder.push(run.clone().freeze());
        let Some(Frame::Train(train, around)) = decoder.next().unwrap() else { panic!("no train") };
        prop_assert_eq!(around, Around { previous: 50, to: last + 3 });
        prop_assert_eq!((train.lane, train.leg), (Lane::Backfill, LegId(9)));
        let read: Vec<_> = train.cars.iter().map(|car| (train.info(car), car.bytes.to_vec())).collect();
        prop_assert_eq!(&read, &products);

        let body = body(&head, &run);
        let short = body.slice(..cut.index(body.len()));
        if let Some((train, _)) = decode(&short) {
            prop_assert!(train.cars.len() < products.len(), "a cut between cars leaves whole cars only");
            let mut pairs = train.cars.iter().zip(&products);
            prop_assert!(pairs.all(|(car, (info, bytes))| car.id == info.id && car.bytes == bytes));
        }
    }

    #[test]
    fn flipped_bytes_and_noise_are_survived(
        products in products(),
        at: prop::sample::Index,
        to: u8,
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (head, run) = encoded(&products, 50, u64::MAX);
        let mut bytes = body(&head, &run).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = decode(&Bytes::from(bytes));
        let _ = decode(&Bytes::from(noise));
    }
}

#[test]
fn the_bytes_of_a_product_are_those_of_the_frame_and_no_copy() {
    let (head, run) = encoded(&[(info(5, "a", (1, 2), "h"), vec![1; 100])], 4, 5);
    let body = body(&head, &run);
    let (train, _) = decode(&body).unwrap();
    assert!(body.as_ptr_range().contains(&train.cars[0].bytes.as_ptr()));
}

#[test]
fn a_train_that_contradicts_itself_is_refused() {
    let two = [(info(5, "a", (1, 2), "h"), vec![1]), (info(6, "b", (1, 2), "h"), vec![2])];
    let ((head, run), twice) = (encoded(&two, 4, 6), encoded(&[two[0].clone(), two[0].clone()], 4, 6));
    assert!(decode(&body(&head, &run)).is_some());
    assert_eq!(decode(&body(&twice.0, &twice.1)), None, "numbers rise");
    assert_eq!(decode(&body(&head, &[])), None, "a train has cars");
    for (previous, to) in [(5, 6), (4, 5), (u64::MAX, 6)] {
        assert_eq!(decode(&body(&Head { previous, to, ..head.clone() }, &run)), None, "{previous} {to}");
    }
}

#[test]
fn a_car_with_flags_of_a_later_release_or_a_stamp_that_can_not_be_is_refused() {
    let one = |stamp: &[u8], flags: u8| {
        let (head, mut run) = encoded(&[(info(5, "a", (1, 2), "h"), vec![1])], 4, 5);
        // The flags follow three numbers of one byte each.
        run[3] = flags;
        let rest = run.split_off(4);
        if flags & STAMPED != 0 {
            run.put_varint(stamp.len() as u64);
            run.put_slice(stamp);
        }
        run.unsplit(rest);
        decode(&body(&head, &run)).map(|(train, _)| train.cars[0].ldm.clone())
    };
    let good = LdmStamp { signature: [9; 16], sequence: 1, feed_type: 8, ident: LdmIdent::new(vec![7; 255]) };
    let bytes = minicbor::to_vec(&good).unwrap();
    assert_eq!(one(&[], 0), Some(None));
    assert_eq!(one(&bytes, STAMPED), Some(Some(good)));
    // The length byte of an identifier of 255 bytes follows its CBOR head.
    let mut long = bytes.clone();
    let at = bytes.len() - 255 - 2;
    long.splice(at..at + 2, [0x59, 1, 0]);
    long.push(7);
    for bad in [long.as_slice(), &bytes[..20], &[], &[0x80]] {
        assert_eq!(one(bad, STAMPED), None, "{} bytes", bad.len());
    }
    for flags in [4, 8, 0x80, 4 | STAMPED] {
        assert_eq!(one(&bytes, flags), None, "flags {flags}");
    }
}
