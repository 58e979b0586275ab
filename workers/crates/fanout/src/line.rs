use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::FeedName;

use crate::turn::Turn;

/// The products of one class: live ones, and late ones (backfill, resend) that leave a small share of the line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) turn: Turn,
    live: Share,
    late: Share,
    level: u64,
}

/// A product in the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: u32,
    pub(crate) feed: FeedName,
    pub(crate) live: bool,
    pub(crate) bytes: Bytes,
    pub(crate) sent: usize,
}

#[derive(Debug, Default)]
struct Share {
    turn: Turn,
    queue: VecDeque<Waiting>,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.live.queue.is_empty() && self.late.queue.is_empty()
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        let level = self.level;
        let share = self.share(waiting.live);
        if share.queue.is_empty() {
            share.turn.rejoin(level);
        }
        share.queue.push_back(waiting);
    }

    /// Takes the product whose turn it is; what is not finished comes back by [`resume`](Self::resume).
    pub(crate) fn take(&mut self) -> Option<Waiting> {
        let live = match (self.live.queue.is_empty(), self.late.queue.is_empty()) {
            (false, false) => self.live.turn.level() <= self.late.turn.level(),
            (_, late_is_empty) => late_is_empty,
        };
        let share = self.share(live);
        let level = share.turn.level();
        let waiting = share.queue.pop_front()?;
        self.level = self.level.max(level);
        Some(waiting)
    }

    /// Puts an unfinished product back to the front of its queue.
    pub(crate) fn resume(&mut self, waiting: Waiting) {
        self.share(waiting.live).queue.push_front(waiting);
    }

    /// Counts a slice for the lane that was served and for the line.
    pub(crate) fn charge(&mut self, live: bool, bytes: usize, cost: u64) {
        self.share(live).turn.charge(bytes, if live { 1 } else { LATE_COST });
        self.turn.charge(bytes, cost);
    }

    /// Takes out, in order, every product that was not begun and whose ticket is `unwanted`.
    pub(crate) fn withdraw(&mut self, unwanted: &mut impl FnMut(u32) -> bool) -> Vec<Waiting> {
        let mut gone = Vec::new();
        for share in [&mut self.live, &mut self.late] {
            let (out, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut share.queue)
                .into_iter()
                .partition(|waiting| waiting.sent == 0 && unwanted(waiting.ticket));
            share.queue = kept.into();
            gone.extend(out);
        }
        gone
    }

    fn share(&mut self, live: bool) -> &mut Share {
        if live { &mut self.live } else { &mut self.late }
    }
}

/// A late byte counts as this many live ones: while live products wait, the late ones of the class get a ninth.
const LATE_COST: u64 = 8;
