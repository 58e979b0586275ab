//! A thread that is served before others, and gives that up when it does not pause.
use std::time::{Duration, Instant};

use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// The present thread's real-time priority (`SCHED_RR`), with a watchdog.
///
/// A real-time thread that never waits would take a processor from everything else on the host. So a thread
/// that did not pause for [`LONGEST_RUN`] is demoted, and gets its priority back once it paused for as long
/// as [`REST`] in sum. The kernel's own limit (`sched_rt_runtime_us`, 95 %) stands behind it.
pub(super) struct Urgent {
    priority: Option<u8>,
    raised: bool,
    /// When it last waited.
    paused: Instant,
    /// How long it waited since it was demoted.
    rested: Duration,
}

impl Urgent {
    /// Raises the thread, if a priority is set; without the capability a message is logged and the thread
    /// stays unchanged.
    pub(super) fn begin(priority: Option<u8>) -> Self {
        let mut urgent = Self { priority, raised: false, paused: Instant::now(), rested: Duration::ZERO };
        urgent.raise();
        urgent
    }

    /// The thread waited so long for work; zero if it had work at once.
    pub(super) fn waited(&mut self, length: Duration) {
        if self.priority.is_none() {
            return;
        }
        if length >= PAUSE {
            self.paused = Instant::now();
            self.rested += length;
            if !self.raised && self.rested >= REST {
                self.raise();
            }
        } else if self.raised && self.paused.elapsed() > LONGEST_RUN {
            self.demote();
        }
    }

    fn raise(&mut self) {
        let Some(priority) = self.priority else { return };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        match set(priority, policy) {
            Ok(()) => self.raised = true,
            Err(error) => {
                self.priority = None;
                tracing::warn!(
                    "groups are read at normal priority, because real-time priority {priority} was refused \
                     ({error}); give the receiver CAP_SYS_NICE, or LimitRTPRIO={priority} in its unit"
                );
            }
        }
    }

    fn demote(&mut self) {
        (self.raised, self.rested) = (false, Duration::ZERO);
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
        match set(NICE_ZERO, policy) {
            Ok(()) => tracing::warn!(
                "a thread that reads a group ran for {} ms without pause and lost its real-time priority until it \
                 pauses again",
                LONGEST_RUN.as_millis()
            ),
            Err(error) => tracing::error!("a thread could not be demoted: {error}"),
        }
    }
}

fn set(priority: u8, policy: ThreadSchedulePolicy) -> Result<(), String> {
    let value = ThreadPriorityValue::try_from(priority).map_err(|error| error.to_string())?;
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), policy)
        .map_err(|error| error.to_string())
}

/// Half of a socket's buffer at full rate: who has more to do than that is not helped by priority.
const LONGEST_RUN: Duration = Duration::from_millis(500);

/// A call that took less found its datagrams waiting.
const PAUSE: Duration = Duration::from_micros(200);

/// On the scale of 0 to 99 on which the library places niceness 19 to -20.
const NICE_ZERO: u8 = 47;

const REST: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use thread_priority::unix::thread_schedule_policy;

    use super::*;

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
            if !urgent.raised {
                assert!(!is_real_time() && urgent.priority.is_none(), "refused once, not asked again");
                return;
            }
            assert!(is_real_time());
            urgent.waited(Duration::ZERO);
            assert!(is_real_time(), "not yet");
            urgent.paused -= LONGEST_RUN + Duration::from_millis(1);
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
        urgent.paused -= LONGEST_RUN * 2;
        urgent.waited(Duration::ZERO);
        assert!(!urgent.raised && !is_real_time());
    }
}
