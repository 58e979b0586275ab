use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey};

use super::RepairChannel;
use super::window::ReplayWindow;
use crate::packet::seal::{TAG_BYTES, algorithm};

/// One end of a channel: seals one direction and opens the other.
pub(super) struct End {
    /// `None` only if the library refuses a key of the right length; then no datagram is opened or sealed.
    key: Option<LessSafeKey>,
    id: u32,
    seals: u8,
    opens: u8,
    sent: u64,
    heard: ReplayWindow,
}

/// An intact datagram, received for the first time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) counter: u64,
    /// True if no later datagram has arrived.
    pub(super) newest: bool,
    pub(super) kind: u8,
    pub(super) body: Bytes,
}

impl End {
    pub(super) fn of_site(channel: &RepairChannel) -> Self {
        Self::new(channel, TO_HUB, TO_SITE)
    }

    pub(super) fn of_hub(channel: &RepairChannel) -> Self {
        Self::new(channel, TO_SITE, TO_HUB)
    }

    fn new(channel: &RepairChannel, seals: u8, opens: u8) -> Self {
        let key = UnboundKey::new(algorithm(channel.cipher), &channel.secret).ok().map(LessSafeKey::new);
        Self { key, id: channel.id, seals, opens, sent: 0, heard: ReplayWindow::default() }
    }

    /// `None` when the counter is exhausted, which no channel reaches.
    pub(super) fn seal(&mut self, kind: u8, number: u64, body: &[u8]) -> Option<Bytes> {
        let counter = self.sent.checked_add(1).filter(|counter| *counter < COUNTER_LIMIT)?;
        let header = self.header(counter);
        let mut datagram = BytesMut::with_capacity(CHANNEL_BYTES + body.len());
        datagram.put_slice(&header);
        datagram.put_u8(kind);
        datagram.put_u64(number);
        datagram.put_slice(body);
        let (_, payload) = datagram.split_at_mut_checked(HEADER_BYTES)?;
        let nonce = nonce(self.seals, counter);
        let tag = self.key.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(header), payload).ok()?;
        datagram.put_slice(tag.as_ref());
        self.sent = counter;
        Some(datagram.freeze())
    }

    /// `None` if it is not of this channel and direction, damaged, or repeated.
    pub(super) fn open(&mut self, datagram: Bytes) -> Option<Opened> {
        let header = *datagram.first_chunk::<HEADER_BYTES>()?;
        let [mark, _, _, _, _, c @ ..] = header;
        if mark != self.opens || channel_of(&datagram) != Some(self.id) {
            return None;
        }
        let [c0, c1, c2, c3, c4, c5] = c;
        let counter = u64::from_be_bytes([0, 0, c0, c1, c2, c3, c4, c5]);
        if !self.heard.is_new(counter) {
            return None;
        }
        let mut payload = BytesMut::from(datagram);
        payload.advance(HEADER_BYTES);
        let nonce = nonce(self.opens, counter);
        let length = self.key.as_ref()?.open_in_place(nonce, Aad::from(header), &mut payload).ok()?.len();
        payload.truncate(length);
        let kind = payload.try_get_u8().ok()?;
        let newest = self.heard.note(counter);
        Some(Opened { counter, newest, kind, body: payload.freeze() })
    }

    fn header(&self, counter: u64) -> [u8; HEADER_BYTES] {
        let [i0, i1, i2, i3] = self.id.to_be_bytes();
        let [_, _, c0, c1, c2, c3, c4, c5] = counter.to_be_bytes();
        [self.seals, i0, i1, i2, i3, c0, c1, c2, c3, c4, c5]
    }
}

/// The channel id in a datagram to the hub; the channel may not exist.
pub fn channel_of(datagram: &[u8]) -> Option<u32> {
    let [_, i0, i1, i2, i3, ..] = *datagram.first_chunk::<HEADER_BYTES>()?;
    Some(u32::from_be_bytes([i0, i1, i2, i3]))
}

/// True if the datagram has the mark of a repair channel, not of a group.
pub(crate) fn is_from_hub(datagram: &[u8]) -> bool {
    datagram.first() == Some(&TO_SITE)
}

fn nonce(mark: u8, counter: u64) -> Nonce {
    let [c0, c1, c2, c3, c4, c5, c6, c7] = counter.to_be_bytes();
    Nonce::assume_unique_for_key([mark, 0, 0, 0, c0, c1, c2, c3, c4, c5, c6, c7])
}

/// The overhead of a repair over its packet: as much as a group's datagram leaves free.
pub(super) const CHANNEL_BYTES: usize = HEADER_BYTES + 1 + 8 + TAG_BYTES;

/// The high half is the direction, the low half the version.
const TO_HUB: u8 = 0xc1;
const TO_SITE: u8 = 0xb1;

const HEADER_BYTES: usize = 11;
const COUNTER_LIMIT: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cipher;

    fn ends() -> (End, End) {
        let channel = RepairChannel { id: 7, port: 1, secret: [5; 32], cipher: Cipher::default() };
        (End::of_site(&channel), End::of_hub(&channel))
    }

    #[test]
    fn each_end_opens_what_the_other_sealed_once() {
        let (mut site, mut hub) = ends();
        let (first, second) = (site.seal(1, 9, b"body").unwrap(), site.seal(1, 9, b"body").unwrap());
        assert_eq!(first.len(), CHANNEL_BYTES + 4);
        assert_eq!(channel_of(&first), Some(7));
        let opened = hub.open(second.clone()).unwrap();
        assert_eq!((opened.counter, opened.newest, opened.kind), (2, true, 1));
        assert_eq!(&opened.body[8..], b"body");
        let late = hub.open(first.clone()).unwrap();
        assert_eq!((late.counter, late.newest), (1, false));
        assert_eq!((hub.open(first.clone()), hub.open(second)), (None, None), "they came before");
        assert_eq!(site.open(first), None, "an end does not open its own");
    }

    #[test]
    fn any_flipped_bit_is_noticed_and_spoils_nothing() {
        let (mut site, mut hub) = ends();
        let datagram = hub.seal(3, 1, b"body").unwrap();
        for bit in 0..datagram.len() * 8 {
            let mut forged = datagram.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(site.open(forged.into()), None, "bit {bit}");
        }
        (0..datagram.len()).for_each(|length| assert_eq!(site.open(datagram.slice(..length)), None));
        assert!(site.open(datagram).is_some());
    }

    #[test]
    fn a_repair_of_the_longest_packet_is_as_long_as_a_datagram_of_the_group() {
        let longest =
            1_452 - crate::packet::seal::HEADER_BYTES - TAG_BYTES - crate::packet::symbol::SYMBOL_BYTES;
        assert_eq!(longest + CHANNEL_BYTES, 1_452);
    }
}
