//! The proof that a batch's statements about products are the sender's, not another holder's of the group's key.
//!
//! A proof does not cover packets with blocks only, until a receiver detects a forged one: then for a while their
//! hashes are sent in packets of their own, which the proof covers. A list is the number of a packet (8), then
//! 18 bytes for each packet as below.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | first packet of the batch, big-endian as all numbers |
//! | 8..10 | packets in the batch; the last one carries this proof |
//! | 10..18 | the last sequence announced before the batch |
//! | 18 | 1: lists in packets of the batch have the hashes of those with blocks only; 0: no lists |
//! | 19 | number of MACs at the end; 0: a signature |
//! | 20..22 | number of the following entries |
//! | 18 each | a packet with manifests, a head or hashes: distance from the first (2), start of its SHA-256 (16) |
//! | 24 each | a repair symbol sent with the batch: its number (8), start of its SHA-256 (16) |
//! | rest | Ed25519 signature (64), or a MAC (12) for each site, see `proof_signature.rs` |
//!
//! Hashes are of payloads. The signature is over `downburst vcmtp proof 1`, leg (4), leg epoch (8) and all of the
//! above.
pub(crate) mod signature;

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use downburst_model::{Micros, Sequence};
use ring::digest::{Context, SHA256};

use signature::{MOST_SEAL_BYTES, ProofSigner, ProofVerifier, Refusal, seal_bytes};

/// The hash of a packet's payload.
pub(crate) type Hash = [u8; 16];

/// The hash of a payload that is given in parts.
pub(crate) fn content_hash(parts: &[&[u8]]) -> Hash {
    let mut digest = Context::new(&SHA256);
    parts.iter().for_each(|part| digest.update(part));
    let mut hash = Hash::default();
    hash.iter_mut().zip(digest.finish().as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

/// A verified proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) announced: Sequence,
    /// True if lists have the hashes of packets with blocks only.
    pub(crate) is_listed: bool,
    pub(crate) controls: Vec<(u64, Hash)>,
    pub(crate) symbols: Vec<(u64, Hash)>,
}

/// The sender's hash of a packet for a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashed {
    /// None: the packet has blocks only.
    No,
    /// A packet with manifests, a head or hashes.
    Control(Hash),
    /// A packet with blocks only; its hash goes into a list.
    Block(Hash),
}

/// Collects the sender's statements and signs them in batches.
pub(crate) struct Prover {
    pub(crate) voucher: ProofSigner,
    open: Option<Open>,
    list: Vec<(u64, Hash)>,
    /// Hashes of packets sent before the first forgery was reported; they are listed late.
    past: VecDeque<(u64, Hash)>,
    /// The time until which all packets are listed, because of forgeries.
    alarmed_until: Micros,
    signed: Option<Micros>,
    /// The previous proof, which is repeated: the loss of a single one costs no repair.
    previous: Option<Bytes>,
    /// The maximum length of a proof together with the previous one.
    room: usize,
}

#[derive(Debug)]
struct Open {
    first: u64,
    count: u16,
    announced: Sequence,
    is_listed: bool,
    controls: Vec<(u16, Hash)>,
    symbols: Vec<(u64, Hash)>,
    since: Micros,
}

impl Prover {
    /// `room` is the space for frame bodies in a proof's packet.
    pub(crate) fn new(voucher: ProofSigner, room: usize) -> Self {
        Self {
            voucher,
            open: None,
            list: Vec::new(),
            past: VecDeque::new(),
            alarmed_until: Micros(0),
            signed: None,
            previous: None,
            room,
        }
    }

    /// Changes the length of packets. An open batch that no longer fits is closed immediately.
    pub(crate) fn change_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Takes the report of forged datagrams: for a while receivers need the hash of every packet.
    pub(crate) fn alarm(&mut self, now: Micros) {
        self.alarmed_until = now.plus(ALARM);
    }

    /// Adds a packet with blocks only that was sent before lists began.
    pub(crate) fn note_past(&mut self, packet: u64, hash: Hash) {
        self.past.push_back((packet, hash));
    }

    /// True if packets with blocks only must be hashed.
    pub(crate) fn lists(&self, now: Micros) -> bool {
        now < self.alarmed_until
    }

    /// Adds a sent packet, other than that of a proof.
    pub(crate) fn note(&mut self, now: Micros, packet: u64, announced: Sequence, hashed: Hashed) {
        let is_listed = self.lists(now);
        let open = self.open.get_or_insert_with(|| Open::new(now, packet, announced, is_listed));
        match hashed {
            Hashed::No => open.is_listed = false,
            Hashed::Control(hash) => open.controls.push((open.count, hash)),
            Hashed::Block(hash) => self.list.push((packet, hash)),
        }
        open.count = open.count.saturating_add(1);
    }

    /// Adds a sent symbol, which precedes the packet `next`.
    pub(crate) fn note_symbol(&mut self, now: Micros, next: u64, announced: Sequence, symbol: (u64, Hash)) {
        let is_listed = self.lists(now);
        let open = self.open.get_or_insert_with(|| Open::new(now, next, announced, is_listed));
        open.symbols.push(symbol);
    }

    /// The time at which [`take_list`](Self::take_list) or [`close`](Self::close) is due. `idle`: nothing else is
    /// queued, so the packets already sent need not wait for more.
    pub(crate) fn due(&self, idle: bool) -> Option<Micros> {
        if !self.past.is_empty() {
            return Some(Micros(0));
        }
        let open = self.open.as_ref()?;
        let list_bytes = LIST_BYTES + self.list.len().saturating_add(1) * CONTROL_BYTES;
        if open.count >= MOST_PACKETS || open.has_no_room(self.room) || list_bytes > self.room {
            return Some(Micros(0));
        }
        let at_once = open.since.max(self.signed.map_or(Micros(0), |signed| signed.plus(SHORTEST)));
        let latest = open.since.plus(LONGEST);
        Some(if idle { at_once.min(latest) } else { latest })
    }

    /// The body of a list with the hashes of the packets sent since the last list; to be sent before the batch
    /// is closed, if the proof has room for it.
    pub(crate) fn take_list(&mut self) -> Option<Bytes> {
        if self.open.as_ref().is_some_and(|open| open.has_no_room(self.room)) {
            return None;
        }
        let most = self.room.saturating_sub(LIST_BYTES) / CONTROL_BYTES;
        let late = self.past.drain(..most.min(self.past.len()));
        let entries: Vec<(u64, Hash)> =
            if late.len() > 0 { late.collect() } else { std::mem::take(&mut self.list) };
        let (first, _) = *entries.first()?;
        let mut body = BytesMut::new();
        body.put_u64(first);
        for (packet, hash) in entries {
            body.put_u16(u16::try_from(packet.saturating_sub(first)).unwrap_or(u16::MAX));
            body.put_slice(&hash);
        }
        Some(body.freeze())
    }

    /// Ends the batch; returns the bodies of the frames of the packet with its proof, the older proof first.
    pub(crate) fn close(&mut self, now: Micros) -> Vec<Bytes> {
        let Some(open) = self.open.take() else { return Vec::new() };
        self.signed = Some(now);
        let proof = self.sign(&open);
        let previous = self.previous.replace(proof.clone());
        let fits = |previous: &Bytes| {
            previous.len() + proof.len() + crate::packet::payload::FRAME_BYTES <= self.room
        };
        previous.filter(fits).into_iter().chain([proof.clone()]).collect()
    }

    fn sign(&self, open: &Open) -> Bytes {
        let macs = self.voucher.macs();
        let mut signed = BytesMut::new();
        signed.put_u64(open.first);
        signed.put_u16(open.count.saturating_add(1));
        signed.put_u64(open.announced.0);
        signed.put_u8(u8::from(open.is_listed));
        signed.put_u8(macs);
        signed.put_u16(u16::try_from(open.controls.len()).unwrap_or(u16::MAX));
        for (distance, hash) in &open.controls {
            signed.put_u16(*distance);
            signed.put_slice(hash);
        }
        for (number, hash) in &open.symbols {
            signed.put_u64(*number);
            signed.put_slice(hash);
        }
        let seal = self.voucher.seal(&signed, macs);
        signed.put_slice(&seal);
        signed.freeze()
    }
}

impl Open {
    fn new(now: Micros, first: u64, announced: Sequence, is_listed: bool) -> Self {
        Self { first, count: 0, announced, is_listed, controls: Vec::new(), symbols: Vec::new(), since: now }
    }

    /// True if a proof of `room` bytes can't take another entry of either kind.
    fn has_no_room(&self, room: usize) -> bool {
        let listed = self.controls.len() * CONTROL_BYTES + (self.symbols.len() + 1) * SYMBOL_BYTES;
        FIXED_BYTES + listed + MOST_SEAL_BYTES > room
    }
}

impl Proof {
    /// Returns the proof, if it is the sender's.
    pub(crate) fn check(bytes: &[u8], verifier: &ProofVerifier) -> Result<Self, Refusal> {
        let macs = *bytes.get(MACS_AT).ok_or(Refusal::Forged)?;
        let length = bytes.len().checked_sub(seal_bytes(macs)).ok_or(Refusal::Forged)?;
        let (body, seal) = bytes.split_at_checked(length).ok_or(Refusal::Forged)?;
        let proof = Self::read(body).ok_or(Refusal::Forged)?;
        verifier.check(body, macs, seal).map(|()| proof)
    }

    /// The packets covered by a proof, which may be forged.
    pub(crate) fn range(mut bytes: &[u8]) -> Option<(u64, u64)> {
        let first = bytes.try_get_u64().ok()?;
        let count = bytes.try_get_u16().ok()?;
        let last = first.checked_add(u64::from(count).checked_sub(1)?)?;
        (first > 0 && last < u64::MAX).then_some((first, last))
    }

    fn read(mut body: &[u8]) -> Option<Self> {
        let (first, last) = Self::range(body)?;
        body.advance(10);
        let announced = Sequence(body.try_get_u64().ok()?);
        let is_listed = body.try_get_u8().ok()? == 1;
        body.try_get_u8().ok()?;
        let controls = usize::from(body.try_get_u16().ok()?).checked_mul(CONTROL_BYTES)?;
        let (controls, symbols) = body.split_at_checked(controls)?;
        let controls = hashes(first, controls)?;
        let (symbols, rest) = symbols.as_chunks::<SYMBOL_BYTES>();
        let symbols = symbols.iter().filter_map(|entry| {
            let (number, hash) = entry.split_first_chunk()?;
            Some((u64::from_be_bytes(*number), *hash.first_chunk()?))
        });
        let is_whole = rest.is_empty() && controls.iter().all(|(packet, _)| *packet <= last);
        is_whole.then(|| Self { first, last, announced, is_listed, controls, symbols: symbols.collect() })
    }
}

/// The packets of a list and their hashes. `None` if it is malformed.
pub(crate) fn read_list(mut body: &[u8]) -> Option<Vec<(u64, Hash)>> {
    let first = body.try_get_u64().ok()?;
    hashes(first, body)
}

fn hashes(first: u64, entries: &[u8]) -> Option<Vec<(u64, Hash)>> {
    let (entries, rest) = entries.as_chunks::<CONTROL_BYTES>();
    let entry = |[high, low, hash @ ..]: &[u8; CONTROL_BYTES]| {
        Some((first.checked_add(u64::from(u16::from_be_bytes([*high, *low])))?, *hash))
    };
    rest.is_empty().then(|| entries.iter().map(entry).collect())?
}

const FIXED_BYTES: usize = 22;

/// The offset of the number of MACs in a proof.
const MACS_AT: usize = 19;

const CONTROL_BYTES: usize = 18;
const SYMBOL_BYTES: usize = 24;

/// The length of the number at the start of a list.
const LIST_BYTES: usize = 8;

/// The maximum number of packets that a receiver holds until their proof arrives.
const MOST_PACKETS: u16 = 1_024;

/// The longest time that a product waits for a signature shared with others.
const LONGEST: Micros = Micros::from_millis(5);

/// A leg that is idle after each product signs each of them: at most 500 times a second, which costs each
/// receiver a few percent of a core.
const SHORTEST: Micros = Micros::from_millis(2);

/// The time for which all packets are listed after a reported forgery; later forgeries are reported again.
const ALARM: Micros = Micros::from_secs(600);

#[cfg(test)]
mod tests {
    use downburst_model::LegId;

    use super::*;
    use crate::SigningSeed;

    const LEG: (LegId, u64) = (LegId(7), 99);

    fn prover() -> Prover {
        Prover::new(voucher(5), 700)
    }

    fn voucher(seed: u8) -> ProofSigner {
        ProofSigner::new(&SigningSeed([seed; 32]), LEG).unwrap()
    }

    fn verifier() -> ProofVerifier {
        ProofVerifier::new(&voucher(5).key().unwrap(), None, LEG)
    }

    fn two_packets(prover: &mut Prover, first: u64) -> Vec<Bytes> {
        prover.note(Micros(0), first, Sequence(4), Hashed::Control([1; 16]));
        prover.note_symbol(Micros(0), first + 1, Sequence(5), (1 << 63 | 7, [2; 16]));
        prover.note(Micros(0), first + 1, Sequence(5), Hashed::No);
        prover.close(Micros(0))
    }

    #[test]
    fn a_proof_says_what_was_noted_and_once_more_with_the_next() {
        let mut prover = prover();
        let first = two_packets(&mut prover, 10);
        let expected = Proof {
            first: 10,
            last: 12,
            announced: Sequence(4),
            is_listed: false,
            controls: vec![(10, [1; 16])],
            symbols: vec![(1 << 63 | 7, [2; 16])],
        };
        assert_eq!(
            first.iter().map(|proof| Proof::check(proof, &verifier())).collect::<Vec<_>>(),
            [Ok(expected)]
        );
        let second = two_packets(&mut prover, 13);
        assert_eq!(second[0], first[0]);
        assert_eq!(Proof::range(&second[1]), Some((13, 15)));
        assert!(prover.close(Micros(0)).is_empty());
    }

    #[test]
    fn any_flipped_bit_is_noticed_and_so_are_another_leg_life_and_sender() {
        let proof = two_packets(&mut prover(), 10).remove(0);
        for bit in 0..proof.len() * 8 {
            let mut forged = proof.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(Proof::check(&forged, &verifier()).is_err(), "bit {bit}");
        }
        (0..proof.len()).for_each(|length| assert!(Proof::check(&proof[..length], &verifier()).is_err()));
        let key = voucher(5).key().unwrap();
        for (key, leg) in [(key, (LegId(8), LEG.1)), (key, (LEG.0, 98)), (voucher(6).key().unwrap(), LEG)] {
            assert_eq!(Proof::check(&proof, &ProofVerifier::new(&key, None, leg)), Err(Refusal::Forged));
        }
    }

    #[test]
    fn a_batch_ends_when_it_is_full_or_old_or_nothing_else_waits() {
        let mut prover = prover();
        assert_eq!(prover.due(true), None);
        prover.note(Micros(100), 1, Sequence(0), Hashed::No);
        assert_eq!((prover.due(true), prover.due(false)), (Some(Micros(100)), Some(Micros(5_100))));
        prover.close(Micros(200));
        prover.note(Micros(300), 3, Sequence(0), Hashed::No);
        assert_eq!(prover.due(true), Some(Micros(2_200)), "signatures are not free");
        (4..=1_026).for_each(|packet| prover.note(Micros(300), packet, Sequence(0), Hashed::No));
        assert_eq!(prover.due(false), Some(Micros(0)));
        prover.close(Micros(300));
        let control = Hashed::Control([0; 16]);
        (2_000..2_032).for_each(|packet| prover.note(Micros(300), packet, Sequence(0), control));
        assert_eq!(prover.due(false), Some(Micros(0)), "32 hashes and 8 MACs leave no room for a symbol");
        assert!(prover.close(Micros(300)).iter().all(|proof| proof.len() <= 700));
        (0..25).for_each(|index| prover.note_symbol(Micros(300), 3_000, Sequence(0), (index, [0; 16])));
        assert_eq!(prover.due(false), Some(Micros(0)));
        assert!(prover.close(Micros(300)).iter().all(|proof| proof.len() <= 700));
    }

    #[test]
    fn after_an_alarm_packets_with_blocks_are_listed_for_a_while() {
        let mut prover = prover();
        assert!(!prover.lists(Micros(5)) && prover.take_list().is_none());
        prover.alarm(Micros(5));
        assert!(
            prover.lists(Micros(5))
                && prover.lists(Micros(600_000_004))
                && !prover.lists(Micros(600_000_005))
        );
        let listed: Vec<(u64, Hash)> = (40..78).map(|packet| (packet, [packet as u8; 16])).collect();
        for (packet, hash) in &listed {
            assert_ne!(prover.due(false), Some(Micros(0)));
            prover.note(Micros(9), *packet, Sequence(0), Hashed::Block(*hash));
        }
        assert_eq!(prover.due(false), Some(Micros(0)), "38 hashes fill 700 bytes");
        let list = prover.take_list().unwrap();
        assert!(list.len() <= 700);
        assert_eq!(read_list(&list), Some(listed));
        assert_eq!((prover.due(false), prover.take_list()), (Some(Micros(5_009)), None));
        assert_eq!((read_list(&list[..7]), read_list(&list[..20])), (None, None));
    }
}
