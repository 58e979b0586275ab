use std::collections::{BTreeMap, VecDeque};

use downburst_model::{Class, Content, FeedName};

use crate::carried::{Carried, PathId};

/// The unsent products of one class, by the path assigned to them.
#[derive(Debug, Default)]
pub(crate) struct ClassQueue {
    paths: BTreeMap<PathId, Lanes>,
}

/// Live products, and late ones (backfill, resend).
#[derive(Debug, Default)]
struct Lanes {
    live: VecDeque<Waiting>,
    late: VecDeque<Waiting>,
}

/// A product in the queue, or on a stream.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: u32,
    pub(crate) feed: FeedName,
    pub(crate) live: bool,
    pub(crate) bytes: Content,
    pub(crate) sent: usize,
}

impl ClassQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.values().all(Lanes::is_empty)
    }

    /// True if a product of the lane waits on a path for which `carried` has the class.
    pub(crate) fn waits(&self, class: Class, carried: &Carried, live: bool) -> bool {
        let mut lanes = self.paths.iter().filter(|(path, _)| carried.has(**path, class));
        lanes.any(|(_, lanes)| !lanes.lane(live).is_empty())
    }

    pub(crate) fn push(&mut self, path: PathId, waiting: Waiting) {
        self.paths.entry(path).or_default().lane_mut(waiting.live).push_back(waiting);
    }

    /// Takes the longest-waiting product of the lane on the paths for which `carried` has the class.
    pub(crate) fn pop(&mut self, class: Class, carried: &Carried, live: bool) -> Option<Waiting> {
        let lanes = self.paths.iter_mut().filter(|(path, _)| carried.has(**path, class));
        let lanes = lanes.map(|(_, lanes)| lanes.lane_mut(live)).filter(|lane| !lane.is_empty());
        // Tickets wrap after four billion; then one product is sent before its turn.
        lanes.min_by_key(|lane| lane.front().map(|waiting| waiting.ticket))?.pop_front()
    }

    /// Removes every product with an `unwanted` ticket, in order.
    pub(crate) fn withdraw(&mut self, unwanted: &mut impl FnMut(u32) -> bool) -> Vec<Waiting> {
        self.take_out(|_, waiting| unwanted(waiting.ticket))
    }

    /// Removes every product that is now assigned to another path, in order.
    pub(crate) fn misplaced(&mut self, path_of: impl Fn(&FeedName) -> PathId) -> Vec<Waiting> {
        let gone = self.take_out(|path, waiting| path_of(&waiting.feed) != path);
        self.paths.retain(|_, lanes| !lanes.is_empty());
        gone
    }

    fn take_out(&mut self, mut which: impl FnMut(PathId, &Waiting) -> bool) -> Vec<Waiting> {
        let mut gone = Vec::new();
        for (path, lanes) in &mut self.paths {
            for queue in [&mut lanes.live, &mut lanes.late] {
                let (out, kept): (Vec<_>, Vec<_>) =
                    std::mem::take(queue).into_iter().partition(|waiting| which(*path, waiting));
                *queue = kept.into();
                gone.extend(out);
            }
        }
        gone
    }
}

impl Lanes {
    fn is_empty(&self) -> bool {
        self.live.is_empty() && self.late.is_empty()
    }

    fn lane(&self, live: bool) -> &VecDeque<Waiting> {
        if live { &self.live } else { &self.late }
    }

    fn lane_mut(&mut self, live: bool) -> &mut VecDeque<Waiting> {
        if live { &mut self.live } else { &mut self.late }
    }
}
