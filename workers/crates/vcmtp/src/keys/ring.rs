use std::collections::VecDeque;
use std::ops::Range;

use downburst_model::{LegId, Micros};

use crate::LegKey;
use ring::digest::{SHA256, digest};

use crate::packet::seal::{Seal, named_key};

/// The keys with which a receiver opens datagrams, in the order of arrival.
///
/// | key | event | next |
/// |---|---|---|
/// | - | received | valid |
/// | valid | a datagram opens with a later key | valid for [`GRACE`] |
/// | valid, with a time limit | the time is over, or [`KEYS`] later keys were received | forgotten |
///
/// A disused key must be forgotten: sites that left the leg still have it, and could forge datagrams with it.
pub(crate) struct KeyRing {
    leg: LegId,
    leg_epoch: u64,
    keys: VecDeque<Held>,
}

/// A payload's place in an opened datagram.
pub(crate) struct Opening {
    pub(crate) number: u64,
    pub(crate) payload: Range<usize>,
    pub(crate) key: KeyMark,
}

/// Identifies a key without revealing it. An id alone does not: a key can replace another with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyMark([u8; 8]);

struct Held {
    key: LegKey,
    mark: KeyMark,
    seal: Seal,
    ends: Option<Micros>,
}

impl KeyRing {
    pub(crate) fn new(leg: LegId, leg_epoch: u64, key: &LegKey) -> Self {
        let mut ring = Self { leg, leg_epoch, keys: VecDeque::new() };
        ring.insert(key);
        ring
    }

    /// Adds a key. A known key changes nothing; a different key replaces one with the same id.
    pub(crate) fn insert(&mut self, key: &LegKey) {
        if self.keys.iter().any(|held| held.key == *key) {
            return;
        }
        self.keys.retain(|held| held.key.id != key.id);
        if self.keys.len() >= KEYS {
            self.keys.pop_front();
        }
        let seal = Seal::new(self.leg, self.leg_epoch, key);
        self.keys.push_back(Held { key: key.clone(), mark: KeyMark::of(key), seal, ends: None });
    }

    /// As [`Seal::open`], with the key identified by the datagram.
    pub(crate) fn open(&mut self, now: Micros, datagram: &mut [u8]) -> Option<Opening> {
        let named = named_key(datagram)?;
        let (place, held) = self.valid(now, |held| held.seal.key_id() == named)?;
        let (number, payload) = held.seal.open(datagram)?;
        let key = held.mark;
        self.retire(now, place);
        Some(Opening { number, payload, key })
    }

    /// True if a key with the id of the datagram's is here, valid or not.
    pub(crate) fn knows(&self, datagram: &[u8]) -> bool {
        named_key(datagram).is_some_and(|named| self.keys.iter().any(|held| held.seal.key_id() == named))
    }

    /// Notes a datagram that was opened elsewhere; false if its key is not valid here.
    pub(crate) fn used(&mut self, now: Micros, mark: KeyMark) -> bool {
        let found = self.valid(now, |held| held.mark == mark).map(|(place, _)| place);
        found.into_iter().for_each(|place| self.retire(now, place));
        found.is_some()
    }

    fn valid(&self, now: Micros, is_it: impl Fn(&Held) -> bool) -> Option<(usize, &Held)> {
        let found = self.keys.iter().enumerate().find(|(_, held)| is_it(held))?;
        Some(found).filter(|(_, held)| held.ends.is_none_or(|ends| now < ends))
    }

    /// Sets the time limit of the first `count` keys, which are no longer used.
    fn retire(&mut self, now: Micros, count: usize) {
        if count == 0 {
            return;
        }
        for held in self.keys.iter_mut().take(count) {
            held.ends.get_or_insert(now.plus(GRACE));
        }
        while self.keys.front().and_then(|held| held.ends).is_some_and(|ends| ends <= now) {
            self.keys.pop_front();
        }
    }
}

impl KeyMark {
    fn of(key: &LegKey) -> Self {
        let mut mark = [0; 8];
        mark.iter_mut().zip(digest(&SHA256, &key.secret).as_ref()).for_each(|(to, from)| *to = *from);
        Self(mark)
    }
}

/// The key in use, the next one, and a replacement of the next one after the bar of a site that knew it.
const KEYS: usize = 3;

/// On any path datagrams overtake each other by milliseconds; by this time the last one under the old key has
/// long arrived.
const GRACE: Micros = Micros::from_secs(2);

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::Cipher;

    const LEG: LegId = LegId(7);

    fn key(id: u8) -> LegKey {
        LegKey::new(id, [id; 32])
    }

    fn sealed(key: &LegKey, packet: u64) -> BytesMut {
        let seal = Seal::new(LEG, 1, key);
        seal.seal(packet, &mut BytesMut::new(), |buffer| buffer.extend_from_slice(b"payload")).unwrap()
    }

    fn opens(ring: &mut KeyRing, now: u64, key: &LegKey) -> bool {
        let mut datagram = sealed(key, 5).to_vec();
        let opening = ring.open(Micros(now), &mut datagram);
        opening.is_some_and(|it| it.number == 5 && datagram[it.payload] == *b"payload")
    }

    #[test]
    fn an_old_key_opens_until_the_next_one_is_used_and_for_a_while() {
        let mut ring = KeyRing::new(LEG, 1, &key(1));
        ring.insert(&key(2));
        assert!(opens(&mut ring, 90_000_000, &key(1)));
        assert!(opens(&mut ring, 90_000_000, &key(2)));
        assert!(opens(&mut ring, 90_000_000 + GRACE.0 - 1, &key(1)));
        assert!(!opens(&mut ring, 90_000_000 + GRACE.0, &key(1)));
        assert!(opens(&mut ring, 90_000_000 + GRACE.0, &key(2)));
        assert_eq!(ring.keys.len(), 1);
    }

    #[test]
    fn a_forgery_under_the_next_key_does_not_end_the_present_one() {
        let mut ring = KeyRing::new(LEG, 1, &key(1));
        ring.insert(&key(2));
        let mut forged = sealed(&key(1), 5).to_vec();
        forged[1] = 2;
        assert!(ring.open(Micros(0), &mut forged).is_none());
        assert!(opens(&mut ring, 600_000_000, &key(1)));
    }

    #[test]
    fn the_ring_is_bounded_and_ids_come_round() {
        let mut ring = KeyRing::new(LEG, 1, &key(1));
        for id in (2..=255).chain(0..9) {
            ring.insert(&key(id));
            ring.insert(&key(id));
            assert!(ring.keys.len() <= KEYS);
            assert!(opens(&mut ring, u64::from(id), &key(id)));
        }
        let other = LegKey::new(8, [99; 32]);
        ring.insert(&other);
        assert!(opens(&mut ring, 9, &other));
        assert!(!opens(&mut ring, 9, &key(8)));
    }

    #[test]
    fn both_ciphers_seal_and_neither_opens_the_other() {
        let chacha = LegKey { cipher: Cipher::ChaCha20Poly1305, ..key(1) };
        assert!(opens(&mut KeyRing::new(LEG, 1, &chacha), 0, &chacha));
        assert!(!opens(&mut KeyRing::new(LEG, 1, &key(1)), 0, &chacha));
    }
}
