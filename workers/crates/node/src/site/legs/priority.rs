//! A thread that is scheduled before others, and gives up its priority if it does not pause.
use std::time::{Duration, Instant};

use downburst_model::Micros;
use downburst_site::{PriorityChange, PriorityWatch};
use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// The real-time priority (`SCHED_RR`) of the current thread, under a [`PriorityWatch`]. The kernel's own limit
/// (`sched_rt_runtime_us`, 95 %) is the last safeguard.
pub(super) struct Urgent {
    priority: Option<u8>,
    started: Instant,
    watch: PriorityWatch,
}

impl Urgent {
    /// Raises the thread, if a priority is set; without the capability a message is logged and the thread
    /// stays unchanged.
    pub(super) fn begin(priority: Option<u8>) -> Self {
        let watch = PriorityWatch::new(Micros(0));
        let mut urgent = Self { priority, started: Instant::now(), watch };
        urgent.raise();
        urgent
    }

    /// Notes how long the thread waited for work; zero if it had work already.
    pub(super) fn waited(&mut self, length: Duration) {
        if self.priority.is_none() {
            return;
        }
        match self.watch.waited(micros(length), micros(self.started.elapsed())) {
            Some(PriorityChange::Raise) => self.raise(),
            Some(PriorityChange::Demote) => demote(),
            None => {}
        }
    }

    fn raise(&mut self) {
        let Some(priority) = self.priority else { return };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        match set(priority, policy) {
            Ok(()) => self.watch.raised(),
            Err(error) => {
                self.priority = None;
                tracing::warn!(
                    "groups are read at normal priority, because real-time priority {priority} was refused \
                     ({error}); give the receiver CAP_SYS_NICE, or LimitRTPRIO={priority} in its unit"
                );
            }
        }
    }
}

fn demote() {
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    match set(NICE_ZERO, policy) {
        Ok(()) => tracing::warn!(
            "a thread that reads a group ran for {} ms without pause and lost its real-time priority until it \
             pauses again",
            PriorityWatch::LONGEST_RUN.0 / 1_000
        ),
        Err(error) => tracing::error!("a thread could not be demoted: {error}"),
    }
}

fn micros(length: Duration) -> Micros {
    Micros(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
}

fn set(priority: u8, policy: ThreadSchedulePolicy) -> Result<(), String> {
    let value = ThreadPriorityValue::try_from(priority).map_err(|error| error.to_string())?;
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), policy)
        .map_err(|error| error.to_string())
}

/// Niceness 0 on the library's scale of 0 to 99, which represents niceness 19 to -20.
const NICE_ZERO: u8 = 47;

#[cfg(test)]
mod tests {
    use thread_priority::unix::thread_schedule_policy;

    use super::*;

    const LONGEST_RUN: Duration = Duration::from_micros(PriorityWatch::LONGEST_RUN.0);
    const REST: Duration = Duration::from_micros(PriorityWatch::REST.0);

    fn is_real_time() -> bool {
        matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_)))
    }

    fn niceness() -> String {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned()
    }

    #[test]
    fn a_thread_without_pause_is_demoted_and_gets_its_priority_back() {
        std::thread::spawn(|| {
            let mut urgent = Urgent::begin(Some(10));
            if !urgent.watch.is_raised() {
                assert!(!is_real_time() && urgent.priority.is_none(), "refused once, not asked again");
                return;
            }
            assert!(is_real_time());
            urgent.waited(Duration::ZERO);
            assert!(is_real_time(), "not yet");
            urgent.started -= LONGEST_RUN + Duration::from_millis(1);
            urgent.waited(Duration::ZERO);
            assert!(!is_real_time());
            assert_eq!(niceness(), "0");
            urgent.waited(REST / 2);
            assert!(!is_real_time());
            urgent.waited(REST / 2);
            assert!(is_real_time());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn nothing_is_done_where_nothing_was_asked() {
        let mut urgent = Urgent::begin(None);
        urgent.started -= LONGEST_RUN * 2;
        urgent.waited(Duration::ZERO);
        assert!(!urgent.watch.is_raised() && !is_real_time());
    }
}
