//! Packets, stamps and extensions: places of fields as the RFCs draw them, and what arbitrary octets do.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails stops"
)]
use std::net::SocketAddr;

use downburst_stamp::tlv::{self, Ends};
use downburst_stamp::{Answer, ErrorEstimate, Format, Key, Malformed, Request, WallNanos};
use proptest::prelude::*;

fn key() -> Key {
    Key::new(b"a secret of sixteen octets or more").unwrap()
}

fn ends() -> Ends {
    Ends { source: "192.0.2.7:40001".parse().unwrap(), destination: "[2001:db8::2]:862".parse().unwrap() }
}

fn answer() -> Answer {
    Answer {
        sequence: 0x0102_0304,
        stamp: 0x1112_1314_1516_1718,
        estimate: ErrorEstimate::from_bits(0x8a21),
        session: 0x3132,
        received: 0x4142_4344_4546_4748,
        request_sequence: 0x5152_5354,
        request_stamp: 0x6162_6364_6566_6768,
        request_estimate: ErrorEstimate::from_bits(0xc172),
        ttl: Some(0x81),
    }
}

#[test]
fn an_open_answer_has_its_fields_where_the_rfc_draws_them() {
    let octets = answer().write(None);
    assert_eq!(octets.len(), 44);
    assert_eq!(
        octets[..16],
        [1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x8a, 0x21, 0x31, 0x32]
    );
    assert_eq!(octets[16..28], [0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53, 0x54]);
    assert_eq!(octets[28..38], [0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0xc1, 0x72]);
    assert_eq!(octets[38..], [0, 0, 0x81, 0, 0, 0]);
    assert_eq!(Answer::read(&octets, None), Ok(answer()));
}

#[test]
fn an_authenticated_answer_has_its_fields_apart_and_a_tag_at_its_end() {
    let octets = answer().write(Some(&key()));
    assert_eq!(octets.len(), 112);
    for (at, first) in
        [(0, 1), (16, 0x11), (24, 0x8a), (26, 0x31), (32, 0x41), (48, 0x51), (64, 0x61), (72, 0xc1)]
    {
        assert_eq!(octets[at], first, "at {at}");
    }
    assert_eq!(octets[80], 0x81);
    assert_eq!(Answer::read(&octets, Some(&key())), Ok(answer()));
    for changed in 0..112 {
        let mut octets = octets.clone();
        octets[changed] ^= 1;
        assert_eq!(Answer::read(&octets, Some(&key())), Err(Malformed::NotAuthentic), "octet {changed}");
    }
    assert_eq!(Answer::read(&octets[..111], Some(&key())), Err(Malformed::TooShort));
}

#[test]
fn the_tag_is_half_of_an_hmac_sha_256() {
    let octets = answer().write(Some(&key()));
    let whole = ring::hmac::sign(
        &ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"a secret of sixteen octets or more"),
        &octets[..96],
    );
    assert_eq!(octets[96..], whole.as_ref()[..16]);
    assert!(Key::new(&[1; 15]).is_err());
    assert!(!format!("{:?}", key()).contains("secret"));
}

#[test]
fn answers_of_twamp_light_are_read_down_to_38_octets() {
    let octets = answer().write(None);
    assert_eq!(Answer::read(&octets[..41], None), Ok(answer()));
    assert_eq!(Answer::read(&octets[..38], None), Ok(Answer { ttl: None, ..answer() }));
    assert_eq!(Answer::read(&octets[..37], None), Err(Malformed::TooShort));
}

#[test]
fn known_moments_have_their_stamps() {
    let billion = WallNanos(1_000_000_000_500_000_000);
    assert_eq!(Format::Ntp.encode(billion), ((1_000_000_000 + 2_208_988_800) << 32) | (1 << 31));
    assert_eq!(Format::Ptp.encode(billion), (1_000_000_000 << 32) | 500_000_000);
    // The first second of NTP's second era, 2036-02-07.
    assert_eq!(Format::Ntp.decode(0).0, 2_085_978_496_000_000_000);
}

#[test]
fn estimates_are_never_below_the_error() {
    assert_eq!(ErrorEstimate::from_bits(0xbfff).nanos().map(|nanos| nanos > 1 << 62), Some(true));
    assert_eq!(ErrorEstimate::from_bits(0x8000).nanos(), None);
    // 1 * 2^(32 - 32) s.
    assert_eq!(ErrorEstimate::from_bits(0x2001).nanos(), Some(1_000_000_000));
    assert!(!ErrorEstimate::unknown(Format::Ptp).synchronized);
}

#[test]
fn a_location_is_answered_and_read_again() {
    let mut packet = Vec::new();
    tlv::push_location_request(&mut packet);
    tlv::push_padding(&mut packet, 20);
    tlv::reflect(&mut packet, &ends(), 0, None);
    let read = tlv::read(&packet);
    assert_eq!(read.seen_as, Some(ends().source));
    assert_eq!((read.unrecognized, read.refused), (0, 0));
    assert_eq!(
        packet[..12],
        [0, 2, 0, 24, 862_u16.to_be_bytes()[0], 862_u16.to_be_bytes()[1], 0x9c, 0x41, 0, 8, 0, 16]
    );
    assert_eq!(packet[28..32], [0, 1, 0, 16]);
}

#[test]
fn a_source_of_ipv6_is_seen_too() {
    let mut packet = Vec::new();
    tlv::push_location_request(&mut packet);
    let source: SocketAddr = "[2001:db8::9]:5000".parse().unwrap();
    tlv::reflect(&mut packet, &Ends { source, ..ends() }, 0, None);
    assert_eq!(tlv::read(&packet).seen_as, Some(source));
}

#[test]
fn what_is_not_known_is_marked_and_what_is_malformed_ends_the_reading() {
    let mut unknown = [0x80, 99, 0, 2, 7, 7, 0x80, 1, 0, 0];
    tlv::reflect(&mut unknown, &ends(), 0, None);
    assert_eq!(unknown, [0x80, 99, 0, 2, 7, 7, 0, 1, 0, 0]);
    assert_eq!(tlv::read(&unknown).unrecognized, 1);
    let mut long = [0x80, 1, 0, 0, 0x80, 1, 0, 200, 5];
    tlv::reflect(&mut long, &ends(), 0, None);
    assert_eq!(long, [0, 1, 0, 0, 0x40, 1, 0, 200, 5]);
    let mut stub = [0x80, 1, 0, 0, 0x80, 1];
    tlv::reflect(&mut stub, &ends(), 0, None);
    assert_eq!(stub, [0, 1, 0, 0, 0x40, 1]);
    let mut location = [0x80, 2, 0, 3, 0, 0, 0, 0x80, 1, 0, 0];
    tlv::reflect(&mut location, &ends(), 0, None);
    assert_eq!(location[0], 0x40);
    assert_eq!(location[7], 0x80, "nothing is read behind what is malformed");
}

#[test]
fn parts_of_a_location_that_are_not_known_are_marked() {
    let mut packet = vec![0x80, 2, 0, 16, 0, 0, 0, 0, 0x80, 1, 0, 8];
    packet.extend([0; 8]);
    tlv::reflect(&mut packet, &ends(), 0, None);
    assert_eq!((packet[0], packet[8]), (0, 0x80));
}

#[test]
fn padding_of_older_senders_stays() {
    for padding in [vec![0; 30], vec![0x2a; 30], vec![0x7f, 1, 0, 200]] {
        let mut reflected = padding.clone();
        tlv::reflect(&mut reflected, &ends(), 0, None);
        assert_eq!(reflected, padding);
    }
}

#[test]
fn extensions_of_an_authenticated_packet_have_a_tag_of_their_own() {
    let mut packet = vec![0, 0, 0, 9];
    tlv::push_location_request(&mut packet);
    tlv::push_tag(&mut packet, 4, &key());
    tlv::push_padding(&mut packet, 10);
    let extension = packet.split_off(4);
    let mut sound = extension.clone();
    tlv::reflect(&mut sound, &ends(), 9, Some(&key()));
    tlv::retag(&mut sound, 3, &key());
    assert_eq!(tlv::read(&sound).seen_as, Some(ends().source));
    let mut other_sequence = extension.clone();
    tlv::reflect(&mut other_sequence, &ends(), 8, Some(&key()));
    assert_eq!(other_sequence[0], 0x20);
    assert_eq!(tlv::read(&other_sequence).refused, 3);
    let mut without = extension[..28].to_vec();
    tlv::reflect(&mut without, &ends(), 9, Some(&key()));
    assert_eq!(without[0], 0x20);
}

proptest! {
    #[test]
    fn packets_come_back(sequence: u32, stamp: u64, bits: u16, session: u16, sealed: bool) {
        let key = sealed.then(key);
        let estimate = ErrorEstimate::from_bits(bits);
        let request = Request { sequence, stamp, estimate, session };
        prop_assert_eq!(Request::read(&request.write(key.as_ref()), key.as_ref()), Ok(request));
        prop_assert_eq!(estimate.bits(), bits);
    }

    #[test]
    fn moments_come_back(nanos in 0_i64..4_000_000_000_000_000_000) {
        for format in [Format::Ntp, Format::Ptp] {
            let back = format.decode(format.encode(WallNanos(nanos)));
            prop_assert!(back.since(WallNanos(nanos)).unsigned_abs() <= 1, "{format:?} {nanos} {back:?}");
        }
    }

    #[test]
    fn an_estimate_is_the_error_rounded_up(error in 0_u64..1 << 60) {
        let nanos = ErrorEstimate::of(error, true, Format::Ntp).nanos().unwrap();
        prop_assert!(nanos >= error);
        prop_assert!(nanos <= error + error / 100 + 2, "{error} became {nanos}");
    }

    #[test]
    fn hostile_octets_are_read_without_harm(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        for key in [None, Some(key())] {
            let _ = Request::read(&octets, key.as_ref());
            let _ = Answer::read(&octets, key.as_ref());
            let _ = tlv::read(&octets);
            let mut reflected = octets.clone();
            tlv::reflect(&mut reflected, &ends(), 1, key.as_ref());
            tlv::retag(&mut reflected, 2, &self::key());
            prop_assert_eq!(reflected.len(), octets.len());
        }
        let _ = Format::Ptp.decode(u64::MAX);
    }

    #[test]
    fn hostile_extensions_are_read_without_harm(
        parts in prop::collection::vec(
            (any::<u8>(), 0_u8..10, 0_u16..40, prop::collection::vec(any::<u8>(), 0..40)), 0..12
        ),
    ) {
        let mut octets = vec![0x80, 1, 0, 0];
        for (flags, kind, length, value) in parts {
            octets.extend([flags, kind]);
            octets.extend(length.to_be_bytes());
            octets.extend(value);
        }
        let mut reflected = octets.clone();
        tlv::reflect(&mut reflected, &ends(), 1, Some(&key()));
        let mut open = octets.clone();
        tlv::reflect(&mut open, &ends(), 1, None);
        prop_assert_eq!(open.len(), octets.len());
        let _ = tlv::read(&open);
    }
}
