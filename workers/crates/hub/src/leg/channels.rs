//! The open repair channels of a hub.
use std::collections::BTreeMap;

use downburst_model::LegId;

/// Repair channels by number. `C` is the driver's channel.
#[derive(Debug)]
pub struct ChannelTable<C> {
    open: BTreeMap<u32, Open<C>>,
}

#[derive(Debug)]
struct Open<C> {
    session: u64,
    leg: LegId,
    channel: C,
}

impl<C> ChannelTable<C> {
    /// Opens a channel for a session that is offered a leg; false if its number is taken. A session that is offered
    /// the same leg again and again loses an earlier channel of it, and keeps the one in use.
    pub fn open(
        &mut self,
        id: u32,
        (session, leg): (u64, LegId),
        channel: C,
        is_in_use: impl Fn(&C) -> bool,
    ) -> bool {
        if self.open.contains_key(&id) {
            return false;
        }
        self.make_room(session, leg, is_in_use);
        self.open.insert(id, Open { session, leg, channel });
        true
    }

    /// The channel with this number.
    pub fn find(&self, id: u32) -> Option<&C> {
        self.open.get(&id).map(|open| &open.channel)
    }

    /// Removes the channels of a session that ended.
    pub fn forget(&mut self, session: u64) {
        self.open.retain(|_, open| open.session != session);
    }

    fn make_room(&mut self, session: u64, leg: LegId, is_in_use: impl Fn(&C) -> bool) {
        let same = || self.open.iter().filter(|(_, open)| open.session == session && open.leg == leg);
        if same().count() >= CHANNELS {
            let unused = same().find(|(_, open)| !is_in_use(&open.channel));
            if let Some(id) = unused.or_else(|| same().next()).map(|(id, _)| *id) {
                self.open.remove(&id);
            }
        }
    }
}

impl<C> Default for ChannelTable<C> {
    fn default() -> Self {
        Self { open: BTreeMap::new() }
    }
}

/// The limit for a session and leg: the channel in use, and those of offers that the site has or may never see.
const CHANNELS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const LEG: LegId = LegId(5);

    /// A table with all channels that session 1 may have on the leg, numbered from 10. A channel is true if in use.
    fn full() -> ChannelTable<bool> {
        let mut table = ChannelTable::default();
        let ids = 10..10 + CHANNELS as u32;
        assert!(ids.clone().all(|id| table.open(id, (1, LEG), id == 10, |used| *used)));
        assert!(ids.clone().all(|id| table.find(id).is_some()));
        table
    }

    #[test]
    fn the_channel_in_use_is_kept_when_the_same_leg_is_offered_again_and_again() {
        let mut table = full();
        for id in 100..120 {
            assert!(table.open(id, (1, LEG), false, |used| *used));
        }
        assert_eq!((table.open.len(), table.find(10)), (CHANNELS, Some(&true)));
        assert!(table.find(119).is_some(), "the latest offer is open");
    }

    #[test]
    fn room_is_made_even_if_all_are_in_use() {
        let mut table = full();
        assert!(table.open(100, (1, LEG), true, |_| true));
        assert_eq!((table.open.len(), table.find(10)), (CHANNELS, None));
    }

    #[test]
    fn other_sessions_and_legs_have_room_of_their_own() {
        let mut table = full();
        assert!(
            table.open(100, (2, LEG), false, |_| false) && table.open(101, (1, LegId(6)), false, |_| false)
        );
        assert_eq!(table.open.len(), CHANNELS + 2);
        table.forget(1);
        assert_eq!(table.open.keys().copied().collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn a_number_is_given_once_at_a_time() {
        let mut table = full();
        assert!(!table.open(10, (2, LEG), false, |_| false));
        assert_eq!(table.find(10), Some(&true), "its channel stays");
    }
}
