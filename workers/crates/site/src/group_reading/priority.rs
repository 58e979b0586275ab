//! The real-time priority of a thread, which it loses if it does not pause.
use downburst_model::Micros;

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

    /// Notes that the watchdog took the thread's priority, as the thread itself did not come here.
    pub fn taken(&mut self) {
        (self.is_raised, self.rested) = (false, Micros(0));
    }

    /// True if a wait of this length is a pause. A shorter one is none: its datagrams were already in the buffer.
    pub fn is_pause(length: Micros) -> bool {
        length >= PAUSE
    }

    /// Notes a wait for work, of length zero if work was there; returns the resulting change.
    pub fn waited(&mut self, length: Micros, now: Micros) -> Option<PriorityChange> {
        if Self::is_pause(length) {
            self.paused_at = now;
            self.rested = self.rested.plus(length);
            return (!self.is_raised && self.rested >= Self::REST).then_some(PriorityChange::Raise);
        }
        let is_over = self.is_raised && now.since(self.paused_at) > Self::LONGEST_RUN;
        is_over.then(|| {
            self.taken();
            PriorityChange::Demote
        })
    }
}

/// Judges a real-time thread from outside: one that spins where it does not look at its own [`PriorityWatch`].
///
/// A thread that was on a processor for [`LONGEST`](Self::LONGEST) without a pause is to lose its priority. A thread
/// that is blocked uses no processor, and keeps it.
#[derive(Debug, Default)]
pub struct SpinWatch {
    /// The thread's count of pauses at the last look.
    pauses: u64,
    /// The thread's processor time at the first look since its last pause.
    since: Micros,
}

impl SpinWatch {
    /// Longer than the thread's own limit, so that a thread which looks at itself is never judged here.
    pub const LONGEST: Micros = Micros(2 * PriorityWatch::LONGEST_RUN.0);

    /// The time between looks.
    pub const INTERVAL: Micros = Micros::from_millis(250);

    /// Looks at a thread with this count of pauses and this processor time; true: take its priority.
    pub fn look(&mut self, pauses: u64, processor: Micros) -> bool {
        if pauses != std::mem::replace(&mut self.pauses, pauses) {
            self.since = processor;
        }
        processor.since(self.since) > Self::LONGEST
    }

    /// Notes that the priority was taken, or given: the time of the thread begins anew.
    pub fn restart(&mut self, processor: Micros) {
        self.since = processor;
    }
}

/// A shorter wait is no pause: its datagrams were already in the buffer.
const PAUSE: Micros = Micros(200);

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_thread_that_lost_its_priority_to_the_watchdog_rests_as_any_other() {
        let (mut watch, ms) = (PriorityWatch::new(Micros(0)), Micros::from_millis);
        watch.raised();
        watch.taken();
        assert_eq!(watch.waited(Micros(0), ms(5_000)), None, "it is demoted already");
        assert_eq!(watch.waited(ms(1_999), ms(8_000)), None);
        assert_eq!(watch.waited(ms(1), ms(8_100)), Some(PriorityChange::Raise));
    }

    #[test]
    fn a_thread_on_a_processor_for_a_second_without_a_pause_is_found() {
        let (mut watch, ms) = (SpinWatch::default(), Micros::from_millis);
        watch.restart(ms(100));
        assert!(!watch.look(5, ms(350)), "it paused");
        assert!(![600, 850, 1_100, 1_350].map(|processor| watch.look(5, ms(processor))).contains(&true));
        assert!(watch.look(5, ms(1_351)));
        watch.restart(ms(1_400));
        assert!(!watch.look(5, ms(2_400)));
    }

    #[test]
    fn a_blocked_thread_and_one_that_pauses_are_left_alone() {
        let (mut blocked, mut pausing) = (SpinWatch::default(), SpinWatch::default());
        for look in 1..100 {
            assert!(!blocked.look(1, Micros::from_millis(900)), "it uses no processor");
            assert!(!pausing.look(look, Micros::from_millis(look * 250)));
        }
    }
}
