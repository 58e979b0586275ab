//! How a thread reads a multicast group: when it gathers datagrams, when it finds the group silent, and when it loses
//! its priority.
use downburst_model::Micros;
use downburst_session::{LegJoin, Reception};

/// What a thread does around its reads of a group.
#[derive(Debug)]
pub struct GroupReading {
    heard_at: Micros,
    gathers: bool,
}

/// What a read of a group brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRead {
    /// Datagrams, for the session.
    Datagrams,
    /// Nothing, for so long that the session is to know.
    Deaf,
    /// Nothing yet.
    Nothing,
}

impl GroupReading {
    /// Reads from now on.
    pub fn new(now: Micros) -> Self {
        Self { heard_at: now, gathers: false }
    }

    /// How long the thread pauses before the next read; `None`: not at all.
    ///
    /// After a few datagrams the next ones stay in the socket's buffer for this time: a datagram that wakes the
    /// thread, and then the session's, costs more than all the work on it. A busy sender sends once in a
    /// millisecond, too.
    pub fn pause(&self) -> Option<Micros> {
        self.gathers.then_some(GATHERING)
    }

    /// A read brought so many datagrams.
    pub fn read(&mut self, datagrams: usize, now: Micros) -> GroupRead {
        self.gathers = datagrams > 0 && datagrams < WORTH_WAKING;
        if datagrams == 0 && now.since(self.heard_at) < DEAF_AFTER {
            return GroupRead::Nothing;
        }
        self.heard_at = now;
        if datagrams > 0 { GroupRead::Datagrams } else { GroupRead::Deaf }
    }
}

/// How a host reads a group: a socket with a receive buffer of so many bytes, of which `needed_bytes` suffice at the
/// leg's rate.
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

/// When a thread with a real-time priority has to give it up.
///
/// A real-time thread that never waits would take a processor from everything else on the host. So a thread
/// that did not pause for [`LONGEST_RUN`](Self::LONGEST_RUN) is demoted, and gets its priority back once it paused for
/// as long as [`REST`](Self::REST) in sum.
#[derive(Debug)]
pub struct PriorityWatch {
    is_raised: bool,
    /// When it last waited.
    paused_at: Micros,
    /// How long it waited since it was demoted.
    rested: Micros,
}

/// What becomes of a thread's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityChange {
    /// The thread is to be served before others.
    Raise,
    /// The thread is to be like all others.
    Demote,
}

impl PriorityWatch {
    /// Half of a socket's buffer at full rate: who has more to do than that is not helped by priority.
    pub const LONGEST_RUN: Micros = Micros::from_millis(500);

    /// See [`PriorityWatch`].
    pub const REST: Micros = Micros::from_secs(2);

    /// The thread is like all others.
    pub fn new(now: Micros) -> Self {
        Self { is_raised: false, paused_at: now, rested: Micros(0) }
    }

    /// True if the thread is served before others.
    pub fn is_raised(&self) -> bool {
        self.is_raised
    }

    /// The thread was raised.
    pub fn raised(&mut self) {
        self.is_raised = true;
    }

    /// The thread waited so long for work, zero if it had work at once; what follows of that.
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

/// So many at once are not few: at such a rate the buffer fills, and waking costs little of each.
const WORTH_WAKING: usize = 32;

/// Four heads of an idle leg; said again as long as it lasts.
const DEAF_AFTER: Micros = Micros::from_secs(1);

/// A call that took less found its datagrams waiting.
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
