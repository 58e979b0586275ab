//! The sender's notices to a large group: its size, and the repairs that are on their way.
//!
//! | state | event | next |
//! |---|---|---|
//! | small group | any | no notice |
//! | large group | a repair to the group is decided, or more of it | a notice immediately, another [`GAP`] later |
//! | large group | a second since the last notice | a notice of the size alone |
use std::collections::BTreeMap;

use downburst_model::Micros;

use crate::packet::notice::{MOST_PENDING, Notice, PendingRepair, SMALL_GROUP, number};

#[derive(Debug, Default)]
pub(crate) struct PendingRepairs {
    members: u64,
    /// Pending repairs by their first packet, with the number of notices that must still list each.
    waiting: BTreeMap<u64, (PendingRepair, u8)>,
    said: Option<Micros>,
    counter: u64,
}

impl PendingRepairs {
    pub(crate) fn change_members(&mut self, members: u64) {
        self.members = members;
    }

    /// True if the group has so many sites that their requests are worth avoiding.
    pub(crate) fn is_large_group(&self) -> bool {
        self.members > SMALL_GROUP
    }

    pub(crate) fn announce(&mut self, pending: PendingRepair) {
        if self.is_large_group()
            && (self.waiting.len() < WAITING_LIMIT || self.waiting.contains_key(&pending.first))
        {
            self.waiting.insert(pending.first, (pending, TIMES));
        }
    }

    /// Announces a packet that is about to be sent to the group once more; consecutive ones share an entry.
    pub(crate) fn announce_packet(&mut self, packet: u64) {
        let before = self.waiting.range_mut(..=packet).next_back();
        let grown = before.filter(|(_, (pending, _))| pending.made.is_none()).and_then(
            |(first, (pending, times))| {
                let count = u16::try_from(packet.checked_sub(*first)?.checked_add(1)?).ok()?;
                let known = pending.count.unwrap_or(0);
                (count <= known.saturating_add(1) && count <= LONGEST_RUN).then(|| {
                    pending.count = Some(count.max(known));
                    *times = TIMES;
                })
            },
        );
        if grown.is_none() {
            self.announce(PendingRepair { first: packet, count: Some(1), made: None, within: PACKET_WITHIN });
        }
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        let said = match self.said {
            _ if !self.is_large_group() => return None,
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
        let pending_repairs = self.waiting.values_mut().take(MOST_PENDING).map(|(pending, times)| {
            *times = times.saturating_sub(1);
            *pending
        });
        let notice = Notice {
            members: u32::try_from(self.members).unwrap_or(u32::MAX),
            pending_repairs: pending_repairs.collect(),
        };
        self.waiting.retain(|_, (_, times)| *times > 0);
        Some((number(self.counter)?, notice))
    }
}

/// Each pending repair is in two notices, so that a lost notice causes no requests.
const TIMES: u8 = 2;

/// Between two notices: more than a burst of losses lasts on most links, and below any round trip worth avoiding.
const GAP: Micros = Micros::from_millis(2);

/// Sites that join learn the size of the group.
const HEARTBEAT: Micros = Micros::from_secs(1);

/// Repairs beyond this number are not announced, and sites request them.
const WAITING_LIMIT: usize = 1_024;

/// The most packets that share an entry.
const LONGEST_RUN: u16 = 1_024;

/// Hurried packets are repaired as soon as the pacer lets them out.
const PACKET_WITHIN: Micros = Micros::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn block(first: u64, made: u16) -> PendingRepair {
        PendingRepair { first, count: None, made: Some(made), within: Micros::from_millis(100) }
    }

    #[test]
    fn a_small_group_is_told_nothing() {
        let mut pending_repairs = PendingRepairs::default();
        pending_repairs.change_members(SMALL_GROUP);
        pending_repairs.announce(block(1, 5));
        pending_repairs.announce_packet(9);
        assert_eq!((pending_repairs.deadline(), pending_repairs.take(Micros::from_secs(9))), (None, None));
    }

    #[test]
    fn each_pending_repair_is_announced_twice_and_then_the_size_once_a_second() {
        let mut pending_repairs = PendingRepairs::default();
        pending_repairs.change_members(500);
        pending_repairs.announce(block(1, 5));
        let (first, notice) = pending_repairs.take(Micros(10)).unwrap();
        assert_eq!(notice, Notice { members: 500, pending_repairs: vec![block(1, 5)] });
        pending_repairs.announce(block(1, 6));
        assert_eq!(pending_repairs.take(Micros(10)), None);
        let (second, notice) = pending_repairs.take(Micros(2_010)).unwrap();
        assert_eq!((notice.pending_repairs, second), (vec![block(1, 6)], first + 1));
        assert_eq!(pending_repairs.take(Micros(4_010)).unwrap().1.pending_repairs, [block(1, 6)]);
        assert_eq!(pending_repairs.deadline(), Some(Micros(1_004_010)));
        assert_eq!(pending_repairs.take(Micros(1_004_010)).unwrap().1.pending_repairs, []);
    }

    #[test]
    fn consecutive_packets_share_an_entry() {
        let mut pending_repairs = PendingRepairs::default();
        pending_repairs.change_members(500);
        [7, 8, 9, 8, 20].into_iter().for_each(|packet| pending_repairs.announce_packet(packet));
        let (_, notice) = pending_repairs.take(Micros(0)).unwrap();
        let said: Vec<_> =
            notice.pending_repairs.iter().map(|pending| (pending.first, pending.last())).collect();
        assert_eq!(said, [(7, 9), (20, 20)]);
    }
}
