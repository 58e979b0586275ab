//! The reading of a multicast group by a thread: gathering of datagrams, detection of silence, and loss of priority.
use downburst_model::Micros;
use downburst_session::{LegJoin, Reception};

/// A thread's state between its reads of a group.
#[derive(Debug)]
pub struct GroupReading {
    heard_at: Micros,
    gathers: bool,
}

/// The result of a read of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRead {
    /// Datagrams, for the session.
    Datagrams,
    /// Nothing, for long enough to report to the session.
    Deaf,
    /// Nothing yet.
    Nothing,
}

impl GroupReading {
    /// Begins at this time.
    pub fn new(now: Micros) -> Self {
        Self { heard_at: now, gathers: false }
    }

    /// The pause before the next read; `None`: no pause.
    ///
    /// After a few datagrams the next ones stay in the socket's buffer for this time: waking this thread
    /// and then the session's for one datagram costs more than all the work on it. A busy sender, too,
    /// sends once in a millisecond.
    pub fn pause(&self) -> Option<Micros> {
        self.gathers.then_some(GATHERING)
    }

    /// Notes a read with this number of datagrams.
    pub fn read(&mut self, datagrams: usize, now: Micros) -> GroupRead {
        self.gathers = datagrams > 0 && datagrams < WORTH_WAKING;
        if datagrams == 0 && now.since(self.heard_at) < DEAF_AFTER {
            return GroupRead::Nothing;
        }
        self.heard_at = now;
        if datagrams > 0 { GroupRead::Datagrams } else { GroupRead::Deaf }
    }
}

/// The description of a host's reception of a group, with advice if the receive buffer of `buffer_bytes` is smaller
/// than the `needed_bytes` for the leg's rate.
pub fn reception(join: &LegJoin, buffer_bytes: u64, needed_bytes: u64, path: String) -> Reception {
    let advice = (buffer_bytes < needed_bytes).then(|| {
        format!(
            "the kernel grants {buffer_bytes} bytes to receive the group {}, but at {} Mb/s a busy host needs \
             {needed_bytes}: set net.core.rmem_max={needed_bytes} there, or give the receiver CAP_NET_ADMIN",
            join.group,
            join.rate_bps / 1_000_000
        )
    });
    Reception { buffer_bytes, path, advice }
}

/// Decides when a thread has to give up its real-time priority.
///
/// A real-time thread that never waits would take a processor from everything else on the host. So a thread that did
/// not pause for [`LONGEST_RUN`](Self::LONGEST_RUN) is demoted, and regains its priority after pauses of
/// [`REST`](Self::REST) in sum.
#[derive(Debug)]
pub struct PriorityWatch {
    is_raised: bool,
    /// The time of the last pause.
    paused_at: Micros,
    /// The sum of pauses since the demotion.
    rested: Micros,
}

/// A change of a thread's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityChange {
    /// Give the thread real-time priority.
    Raise,
    /// Give the thread normal priority.
    Demote,
}

impl PriorityWatch {
    /// The time in which half of a socket's buffer fills at full rate: priority does not help with a longer backlog.
    pub const LONGEST_RUN: Micros = Micros::from_millis(500);

    /// See [`PriorityWatch`].
    pub const REST: Micros = Micros::from_secs(2);

    /// Starts with normal priority.
    pub fn new(now: Micros) -> Self {
        Self { is_raised: false, paused_at: now, rested: Micros(0) }
    }

    /// True if the thread has real-time priority.
    pub fn is_raised(&self) -> bool {
        self.is_raised
    }

    /// Notes that the thread was given real-time priority.
    pub fn raised(&mut self) {
        self.is_raised = true;
    }

    /// Notes a wait for work, of length zero if work was there; returns the resulting change.
    pub fn waited(&mut self, length: Micros, now: Micros) -> Option<PriorityChange> {
        if length >= PAUSE {
            self.paused_at = now;
            self.rested = self.rested.plus(length);
            return (!self.is_raised && self.rested >= Self::REST).then_some(PriorityChange::Raise);
        }
        let is_over = self.is_raised && now.since(self.paused_at) > Self::LONGEST_RUN;
        is_over.then(|| {
            (self.is_raised, self.rested) = (false, Micros(0));
            PriorityChange::Demote
        })
    }
}

const GATHERING: Micros = Micros::from_millis(1);

/// From this number on datagrams are not gathered: at such a rate the buffer fills, and the cost of waking is small
/// for each.
const WORTH_WAKING: usize = 32;

/// Four heads of an idle leg; the report is repeated at this interval while the silence lasts.
const DEAF_AFTER: Micros = Micros::from_secs(1);

/// A shorter wait is no pause: its datagrams were already in the buffer.
const PAUSE: Micros = Micros(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_few_datagrams_the_next_ones_are_gathered_and_after_many_they_are_not() {
        let mut reading = GroupReading::new(Micros(0));
        assert_eq!(reading.pause(), None);
        for (datagrams, pause) in [(1, true), (31, true), (32, false), (500, false), (2, true)] {
            assert_eq!(reading.read(datagrams, Micros(0)), GroupRead::Datagrams);
            assert_eq!(reading.pause().is_some(), pause, "{datagrams}");
        }
        assert_eq!((reading.read(0, Micros(0)), reading.pause()), (GroupRead::Nothing, None));
    }

    #[test]
    fn a_silent_group_is_said_every_second() {
        let mut reading = GroupReading::new(Micros(0));
        let reads = [900, 1_000, 1_900, 2_000].map(|ms| reading.read(0, Micros::from_millis(ms)));
        assert_eq!(reads, [GroupRead::Nothing, GroupRead::Deaf, GroupRead::Nothing, GroupRead::Deaf]);
    }

    #[test]
    fn a_thread_without_pause_is_demoted_and_gets_its_priority_back() {
        let (mut watch, ms) = (PriorityWatch::new(Micros(0)), Micros::from_millis);
        watch.raised();
        assert_eq!(watch.waited(Micros(0), ms(500)), None, "not yet");
        assert_eq!(watch.waited(Micros(199), ms(501)), Some(PriorityChange::Demote));
        assert_eq!(watch.waited(Micros(0), ms(1_200)), None, "it is like all others");
        assert_eq!(watch.waited(ms(1_000), ms(2_200)), None);
        assert_eq!(watch.waited(ms(1_000), ms(3_200)), Some(PriorityChange::Raise));
        assert!(!watch.is_raised(), "until that was done");
        watch.raised();
        assert_eq!(watch.waited(Micros(0), ms(3_700)), None, "it paused at 3200");
        assert_eq!(watch.waited(Micros(0), ms(3_701)), Some(PriorityChange::Demote));
    }
}
