//! What the sender tells a large group: how many it is, and which repairs are on their way.
//!
//! | state | event | next |
//! |---|---|---|
//! | a small group | anything | nothing is said |
//! | a crowd | a repair to the group is decided, or more of it | said at once, and once more [`GAP`] later |
//! | a crowd | a second since the last notice | its size is said |
use std::collections::BTreeMap;

use downburst_model::Micros;

use crate::notice::{MOST_PROMISES, Notice, Promise, number};

#[derive(Debug, Default)]
pub(crate) struct Promises {
    members: u64,
    /// By the first packet, with how often each is to be said.
    waiting: BTreeMap<u64, (Promise, u8)>,
    said: Option<Micros>,
    counter: u64,
}

impl Promises {
    pub(crate) fn change_members(&mut self, members: u64) {
        self.members = members;
    }

    /// True if so many sites hear the group that their requests are worth avoiding.
    pub(crate) fn is_crowd(&self) -> bool {
        self.members > SMALL_GROUP
    }

    pub(crate) fn tell(&mut self, promise: Promise) {
        if self.is_crowd()
            && (self.waiting.len() < WAITING_LIMIT || self.waiting.contains_key(&promise.first))
        {
            self.waiting.insert(promise.first, (promise, TIMES));
        }
    }

    /// Packets that are about to be repaired to the group as they are: runs of them share a promise.
    pub(crate) fn tell_packet(&mut self, packet: u64) {
        let before = self.waiting.range_mut(..=packet).next_back();
        let grown = before.filter(|(_, (promise, _))| promise.made.is_none()).and_then(
            |(first, (promise, times))| {
                let count = u16::try_from(packet.checked_sub(*first)?.checked_add(1)?).ok()?;
                let known = promise.count.unwrap_or(0);
                (count <= known.saturating_add(1) && count <= LONGEST_RUN).then(|| {
                    promise.count = Some(count.max(known));
                    *times = TIMES;
                })
            },
        );
        if grown.is_none() {
            self.tell(Promise { first: packet, count: Some(1), made: None, within: PACKET_WITHIN });
        }
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let said = match self.said {
            _ if !self.is_crowd() => return None,
            None => return Some(Micros(0)),
            Some(said) => said,
        };
        Some(said.plus(if self.waiting.is_empty() { HEARTBEAT } else { GAP }))
    }

    /// The notice that is due, with the number of its datagram.
    pub(crate) fn take(&mut self, now: Micros) -> Option<(u64, Notice)> {
        self.deadline().filter(|due| *due <= now)?;
        self.said = Some(now);
        self.counter += 1;
        let promises = self.waiting.values_mut().take(MOST_PROMISES).map(|(promise, times)| {
            *times = times.saturating_sub(1);
            *promise
        });
        let notice =
            Notice { members: u32::try_from(self.members).unwrap_or(u32::MAX), promises: promises.collect() };
        self.waiting.retain(|_, (_, times)| *times > 0);
        Some((number(self.counter)?, notice))
    }
}

/// Up to so many sites may all ask for what they lost: 32 requests are less than one packet in bytes, and nobody waits.
pub(crate) const SMALL_GROUP: u64 = 32;

/// Each promise is said twice, so that one lost datagram does not make its losers ask.
const TIMES: u8 = 2;

/// Between two notices: more than a burst of losses lasts on most links, and below any round trip worth avoiding.
const GAP: Micros = Micros::from_millis(2);

/// Who joins hears how many they are.
const HEARTBEAT: Micros = Micros::from_secs(1);

/// What is not told is asked for.
const WAITING_LIMIT: usize = 1_024;

/// How many packets share a promise.
const LONGEST_RUN: u16 = 1_024;

/// Hurried packets are repaired as soon as the pacer lets them out.
const PACKET_WITHIN: Micros = Micros::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn block(first: u64, made: u16) -> Promise {
        Promise { first, count: None, made: Some(made), within: Micros::from_millis(100) }
    }

    #[test]
    fn a_small_group_is_told_nothing() {
        let mut promises = Promises::default();
        promises.change_members(SMALL_GROUP);
        promises.tell(block(1, 5));
        promises.tell_packet(9);
        assert_eq!((promises.deadline(), promises.take(Micros::from_secs(9))), (None, None));
    }

    #[test]
    fn each_promise_is_said_twice_and_then_the_size_once_a_second() {
        let mut promises = Promises::default();
        promises.change_members(500);
        promises.tell(block(1, 5));
        let (first, notice) = promises.take(Micros(10)).unwrap();
        assert_eq!(notice, Notice { members: 500, promises: vec![block(1, 5)] });
        promises.tell(block(1, 6));
        assert_eq!(promises.take(Micros(10)), None);
        let (second, notice) = promises.take(Micros(2_010)).unwrap();
        assert_eq!((notice.promises, second), (vec![block(1, 6)], first + 1));
        assert_eq!(promises.take(Micros(4_010)).unwrap().1.promises, [block(1, 6)]);
        assert_eq!(promises.deadline(), Some(Micros(1_004_010)));
        assert_eq!(promises.take(Micros(1_004_010)).unwrap().1.promises, []);
    }

    #[test]
    fn runs_of_packets_share_a_promise() {
        let mut promises = Promises::default();
        promises.change_members(500);
        [7, 8, 9, 8, 20].into_iter().for_each(|packet| promises.tell_packet(packet));
        let (_, notice) = promises.take(Micros(0)).unwrap();
        let said: Vec<_> = notice.promises.iter().map(|promise| (promise.first, promise.last())).collect();
        assert_eq!(said, [(7, 9), (20, 20)]);
    }
}
