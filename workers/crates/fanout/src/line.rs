use std::collections::VecDeque;

use bytes::Bytes;
use downburst_model::FeedName;

/// The products of one class of which nothing was sent: live ones, and late ones (backfill, resend).
#[derive(Debug, Default)]
pub(crate) struct Line {
    live: VecDeque<Waiting>,
    late: VecDeque<Waiting>,
}

/// A product in the queue, or on a stream.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: u32,
    pub(crate) feed: FeedName,
    pub(crate) live: bool,
    pub(crate) bytes: Bytes,
    pub(crate) sent: usize,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.late.is_empty()
    }

    /// The lane's queue.
    pub(crate) fn lane(&self, live: bool) -> &VecDeque<Waiting> {
        if live { &self.live } else { &self.late }
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.lane_mut(waiting.live).push_back(waiting);
    }

    pub(crate) fn pop(&mut self, live: bool) -> Option<Waiting> {
        self.lane_mut(live).pop_front()
    }

    /// Takes out, in order, every product whose ticket is `unwanted`.
    pub(crate) fn withdraw(&mut self, unwanted: &mut impl FnMut(u32) -> bool) -> Vec<Waiting> {
        let mut gone = Vec::new();
        for queue in [&mut self.live, &mut self.late] {
            let (out, kept): (Vec<_>, Vec<_>) =
                std::mem::take(queue).into_iter().partition(|waiting| unwanted(waiting.ticket));
            *queue = kept.into();
            gone.extend(out);
        }
        gone
    }

    fn lane_mut(&mut self, live: bool) -> &mut VecDeque<Waiting> {
        if live { &mut self.live } else { &mut self.late }
    }
}
