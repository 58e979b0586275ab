use std::collections::VecDeque;

use downburst_model::{Class, Micros};

use crate::packet::payload::Payload;

/// The packets that can be rebuilt, the oldest first. Bounded by age, by the deadline of the products, and by the bytes
/// that they keep in memory: a packet counts with its content and its own description. A product is released with its
/// last packet, so pinned memory exceeds the limit by the products that are partly out of the window.
#[derive(Debug)]
pub(crate) struct Window {
    first: u64,
    packets: VecDeque<Kept>,
    bytes: u64,
    limit_bytes: u64,
    limit_age: Micros,
    /// Later, nobody wants their products any more.
    deadline: Option<Micros>,
    /// The time at which the hub stored the newest product in the packets so far.
    newest: Micros,
}

/// A packet that was sent.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) payload: Payload,
    /// The most urgent class in it.
    pub(crate) class: Class,
    /// The time at which it was first sent.
    pub(crate) sent: Micros,
    /// The time at which the hub stored the newest product in it and in the packets before.
    newest: Micros,
    /// The time until which its repair to the group is on its way to any site that asks for it.
    pub(crate) quiet_until: Option<Micros>,
    /// It waits to be repaired to the group.
    pub(crate) queued: bool,
    /// It is repaired by itself and immediately; otherwise with the rest of its block.
    pub(crate) hurried: bool,
    /// The site that asked for it first.
    pub(crate) asker: Option<u64>,
}

impl Window {
    pub(crate) fn new(limit_bytes: u64, limit_age: Micros) -> Self {
        let packets = VecDeque::new();
        Self { first: 1, packets, bytes: 0, limit_bytes, limit_age, deadline: None, newest: Micros(0) }
    }

    /// Packets whose products are all older than this are not repaired any more.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Micros>) {
        self.deadline = deadline;
    }

    /// The deadline of the feed's products.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.deadline
    }

    /// The next packet has a product that the hub stored at this time.
    pub(crate) fn stored(&mut self, at: Micros) {
        self.newest = self.newest.max(at);
    }

    /// Keeps the next packet; returns its number. Numbers are dense from 1.
    pub(crate) fn push(&mut self, payload: Payload, class: Class, hurried: bool, now: Micros) -> u64 {
        let packet = self.next();
        let newest = self.newest;
        let kept = Kept {
            payload,
            class,
            sent: now,
            newest,
            quiet_until: None,
            queued: false,
            hurried,
            asker: None,
        };
        self.bytes = self.bytes.saturating_add(kept.memory_bytes());
        self.packets.push_back(kept);
        self.expire(now);
        packet
    }

    /// Releases packets beyond the limit of age or of bytes, and those that are late.
    pub(crate) fn expire(&mut self, now: Micros) {
        while let Some(oldest) = self.packets.front() {
            let is_late = self.deadline.is_some_and(|deadline| now.since(oldest.newest) > deadline);
            if self.bytes <= self.limit_bytes && now.since(oldest.sent) <= self.limit_age && !is_late {
                break;
            }
            self.bytes = self.bytes.saturating_sub(oldest.memory_bytes());
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// The oldest number kept; the next number if nothing is.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number the next packet gets.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub(crate) fn packet(&self, packet: u64) -> Option<&Kept> {
        self.packets.get(self.place(packet)?)
    }

    pub(crate) fn packet_mut(&mut self, packet: u64) -> Option<&mut Kept> {
        let place = self.place(packet)?;
        self.packets.get_mut(place)
    }

    fn place(&self, packet: u64) -> Option<usize> {
        usize::try_from(packet.checked_sub(self.first)?).ok()
    }
}

impl Kept {
    fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(self.payload.frames.as_slice()) + self.payload.encoded_bytes())
            as u64
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_model::Sequence;

    use super::*;
    use crate::packet::payload::Frame;

    fn payload(bytes: usize) -> Payload {
        let block =
            Frame::Block { sequence: Sequence(1), offset: 0, bytes: Bytes::from(vec![0; bytes]).into() };
        Payload { announced: Sequence(0), frames: vec![block], padding: 0 }
    }

    #[test]
    fn numbers_are_dense_and_the_oldest_leave_by_bytes() {
        let mut window = Window::new(10_000, Micros::from_secs(60));
        for number in 1..=100 {
            assert_eq!(window.push(payload(1_000), Class::Bulk, false, Micros(0)), number);
        }
        assert!(window.bytes <= 10_000);
        assert_eq!(window.next(), 101);
        assert!(window.first() >= 92 && window.first() < 100, "{}", window.first());
        assert!(window.packet(window.first() - 1).is_none());
        assert!(window.packet(100).is_some() && window.packet(101).is_none());
    }

    #[test]
    fn the_oldest_leave_by_age() {
        let mut window = Window::new(u64::MAX, Micros::from_secs(60));
        window.push(payload(1), Class::Bulk, false, Micros::from_secs(0));
        window.push(payload(1), Class::Bulk, false, Micros::from_secs(30));
        window.expire(Micros::from_secs(61));
        assert_eq!((window.first(), window.next()), (2, 3));
        window.expire(Micros::from_secs(91));
        assert_eq!((window.first(), window.next()), (3, 3));
        assert_eq!(window.bytes, 0);
    }
    #[test]
    fn packets_whose_products_are_all_late_leave() {
        let mut window = Window::new(u64::MAX, Micros::from_secs(60));
        window.set_deadline(Some(Micros::from_millis(100)));
        for millis in [0, 40, 20] {
            window.stored(Micros::from_millis(millis));
            window.push(payload(1), Class::Bulk, false, Micros::from_millis(50));
        }
        window.expire(Micros::from_millis(100));
        assert_eq!(window.first(), 1);
        window.expire(Micros::from_millis(101));
        assert_eq!(window.first(), 2, "the others have a newer one, or follow a packet that has");
        window.set_deadline(None);
        window.expire(Micros::from_secs(2));
        assert_eq!((window.first(), window.next()), (2, 4));
    }
}
