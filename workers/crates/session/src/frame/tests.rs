use downburst_model::{Epoch, FeedName, RangeSet, Sequence, WallMicros};
use proptest::prelude::*;

use super::*;

fn feed() -> FeedName {
    FeedName::parse("IDS|DDPLUS").unwrap()
}

fn some_messages() -> Vec<Message> {
    vec![
        Want { feed: feed(), epoch: Epoch(7), sequences: [(1, 5), (9, u64::MAX)].into_iter().collect() }
            .into(),
        Covered { feed: feed(), epoch: Epoch(u64::MAX), from: Sequence(3), to: Sequence(4) }.into(),
        ClockRequest { sent: WallMicros(-5) }.into(),
        Nak {
            leg: LegId(3),
            leg_epoch: 9,
            packets: RangeSet::new(),
            heard: None,
            symbols: Vec::new(),
            unanswered: None,
            losses: None,
        }
        .into(),
    ]
}

fn stream() -> (Vec<u8>, Vec<Frame>) {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    for message in some_messages() {
        bytes.extend_from_slice(&message.encode());
        bytes.extend_from_slice(&[200, 0, 0, 0, 3, 1, 2, 3]);
        frames.push(Frame::Message(message));
    }
    bytes.extend_from_slice(&slice_header(5, 1 << 40, 4));
    bytes.extend_from_slice(b"wind");
    frames.push(Frame::Slice { transfer: 5, offset: 1 << 40, bytes: Bytes::from_static(b"wind") });
    bytes.extend_from_slice(&repair_frame(LegId(1), 2, 3, b"rain"));
    let payload = Bytes::from_static(b"rain");
    frames.push(Frame::Repair { leg: LegId(1), leg_epoch: 2, packet: 3, payload });
    let sealed = Datagrams { leg: LegId(4), segment_bytes: 3, bytes: Bytes::from_static(b"windra") };
    bytes.extend_from_slice(&datagrams_header(&sealed));
    bytes.extend_from_slice(&sealed.bytes);
    frames.push(Frame::Datagrams(sealed));
    (bytes, frames)
}

fn drain(decoder: &mut Decoder) -> Vec<Frame> {
    std::iter::from_fn(|| decoder.next().unwrap()).collect()
}

proptest! {
    #[test]
    fn frames_survive_any_split_and_unknown_kinds_are_skipped(cuts in prop::collection::vec(1usize..30, 1..60)) {
        let (bytes, expected) = stream();
        let (mut decoder, mut found, mut rest) = (Decoder::default(), Vec::new(), bytes.as_slice());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            decoder.push(Bytes::copy_from_slice(now));
            found.extend(drain(&mut decoder));
            rest = later;
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut decoder = Decoder::default();
        decoder.push(bytes.into());
        while let Ok(Some(_)) = decoder.next() {}
    }

    #[test]
    fn no_body_panics(kind in 0u8..40, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::default();
        decoder.push(framed(kind, &body));
        let _ = decoder.next();
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused_by_its_header() {
    for (kind, limit) in [(1, MESSAGE_LIMIT_BYTES), (SLICE, SLICE_BYTES + 12), (99, MESSAGE_LIMIT_BYTES)] {
        let mut decoder = Decoder::default();
        let mut header = BytesMut::new();
        put_header(&mut header, kind, limit + 1);
        decoder.push(header.freeze());
        assert_eq!(decoder.next(), Err(FrameError::TooLong { kind, bytes: limit + 1, limit }));
    }
}

#[test]
fn a_short_or_broken_body_is_refused() {
    let mut decoder = Decoder::default();
    decoder.push(framed(SLICE, &[1, 2, 3]));
    assert_eq!(decoder.next(), Err(FrameError::TooShort { kind: SLICE }));
    let mut decoder = Decoder::default();
    decoder.push(framed(15, &[0xff]));
    assert!(matches!(decoder.next(), Err(FrameError::Body { kind: 15, .. })));
}

#[test]
fn datagrams_of_no_length_or_too_many_are_refused() {
    let refused = |segment_bytes: u16, bytes: &[u8]| {
        let datagrams = Datagrams { leg: LegId(4), segment_bytes, bytes: Bytes::copy_from_slice(bytes) };
        let mut decoder = Decoder::default();
        decoder.push([datagrams_header(&datagrams).as_ref(), bytes].concat().into());
        decoder.next()
    };
    assert!(
        refused(2, &[0; 128]).is_ok_and(|frame| frame.is_some()),
        "as many as there may be, of two bytes"
    );
    for (segment_bytes, bytes) in [(0, 4), (2, 0), (5, 4), (2, 130)] {
        assert_eq!(
            refused(segment_bytes, &vec![0; bytes]),
            Err(unsound(DATAGRAMS)),
            "{segment_bytes} {bytes}"
        );
    }
}

#[test]
fn the_longest_hello_fits_a_frame() {
    let settled: RangeSet =
        (0..32_768u64).map(|n| (u64::MAX / 2 + n * 4, u64::MAX / 2 + n * 4 + 1)).collect();
    let position =
        crate::FeedPosition { feed: feed(), epoch: Epoch(1), settled, newest_stored: WallMicros(i64::MAX) };
    let body = minicbor::to_vec(&position).unwrap();
    assert!(body.len() < MESSAGE_LIMIT_BYTES - 64 * 1024, "{}", body.len());
}
