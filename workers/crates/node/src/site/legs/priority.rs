//! A thread that is scheduled before others, and loses its priority if it does not pause.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use downburst_model::Micros;
use downburst_session::PriorityStanding;
use downburst_site::{PriorityChange, PriorityWatch, SpinWatch};
use nix::unistd::{Pid, gettid};
use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadId, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// The real-time priority (`SCHED_RR`) of the current thread.
///
/// Two watches guard the host. The thread itself notes its pauses in a [`PriorityWatch`]. A thread that spins where it
/// does not come by there is found by a watchdog at normal priority ([`SpinWatch`]), which gets its share of a
/// processor from the kernel's own limit (`sched_rt_runtime_us` or the fair server, 95 %).
pub(super) struct Urgent {
    priority: Option<u8>,
    is_refused: bool,
    started: Instant,
    watch: PriorityWatch,
    pulse: Arc<Pulse>,
}

/// Shared with the watchdog.
struct Pulse {
    /// The thread while it runs; its priority is changed under this lock.
    thread: Mutex<Option<ThreadId>>,
    id: Pid,
    is_raised: AtomicBool,
    was_taken: AtomicBool,
    pauses: AtomicU64,
}

impl Urgent {
    /// Raises the thread, if a priority is set; without the capability a message is logged and the thread
    /// stays unchanged.
    pub(super) fn begin(priority: Option<u8>) -> Self {
        let watch = PriorityWatch::new(Micros(0));
        let pulse = Arc::new(Pulse::of_this_thread());
        let mut urgent = Self { priority, is_refused: false, started: Instant::now(), watch, pulse };
        urgent.raise();
        if urgent.watch.is_raised() {
            watch_over(&urgent.pulse);
        }
        urgent
    }

    /// Notes how long the thread waited for work; zero if it had work already.
    pub(super) fn waited(&mut self, length: Duration) {
        if self.priority.is_none() {
            return;
        }
        let length = micros(length);
        if PriorityWatch::is_pause(length) {
            self.pulse.pauses.fetch_add(1, Ordering::Relaxed);
        }
        if self.pulse.was_taken.swap(false, Ordering::Relaxed) {
            self.watch.taken();
        }
        match self.watch.waited(length, micros(self.started.elapsed())) {
            Some(PriorityChange::Raise) => self.raise(),
            Some(PriorityChange::Demote) => self.pulse.demote(PriorityWatch::LONGEST_RUN),
            None => {}
        }
    }

    /// The priority at present.
    pub(super) fn standing(&self) -> PriorityStanding {
        match self.priority {
            None if self.is_refused => PriorityStanding::Refused,
            None => PriorityStanding::Normal,
            Some(_) if self.pulse.is_raised.load(Ordering::Relaxed) => PriorityStanding::RealTime,
            Some(_) => PriorityStanding::Lost,
        }
    }

    fn raise(&mut self) {
        let Some(priority) = self.priority else { return };
        match self.pulse.raise(priority) {
            Ok(()) => self.watch.raised(),
            Err(error) => {
                (self.priority, self.is_refused) = (None, true);
                tracing::warn!(
                    "groups are read at normal priority, because real-time priority {priority} was refused \
                     ({error}); give the receiver CAP_SYS_NICE, or LimitRTPRIO={priority} in its unit"
                );
            }
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        *self.pulse.thread.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Pulse {
    fn of_this_thread() -> Self {
        Self {
            thread: Mutex::new(Some(thread_native_id())),
            id: gettid(),
            is_raised: AtomicBool::new(false),
            was_taken: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
        }
    }

    fn raise(&self, priority: u8) -> Result<(), String> {
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
        self.set(priority, policy)?;
        self.is_raised.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn demote(&self, ran: Micros) {
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
        match self.set(NICE_ZERO, policy) {
            Ok(()) => {
                self.is_raised.store(false, Ordering::Relaxed);
                tracing::warn!(
                    "a thread that reads a group ran for {} ms without pause and lost its real-time priority until \
                     it pauses again",
                    ran.0 / 1_000
                );
            }
            Err(error) => tracing::error!("a thread could not be demoted: {error}"),
        }
    }

    fn set(&self, priority: u8, policy: ThreadSchedulePolicy) -> Result<(), String> {
        let value = ThreadPriorityValue::try_from(priority).map_err(|error| error.to_string())?;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = *thread else { return Ok(()) };
        set_thread_priority_and_policy(thread, ThreadPriority::Crossplatform(value), policy)
            .map_err(|error| error.to_string())
    }

    /// The thread's time on processors; `None`: it ended, or the kernel does not say.
    fn processor(&self) -> Option<Micros> {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.id)).ok()?;
        let nanos: u64 = stat.split_whitespace().next()?.parse().ok()?;
        Some(Micros(nanos / 1_000))
    }
}

/// Starts the watchdog of a thread, which ends soon after it.
fn watch_over(pulse: &Arc<Pulse>) {
    let watched = Arc::downgrade(pulse);
    let name = format!("watch-{}", pulse.id);
    let started = std::thread::Builder::new().name(name).spawn(move || watch(&watched));
    if let Err(error) = started {
        tracing::warn!(%error, "no thread watches over the one that reads a group at real-time priority");
    }
}

fn watch(watched: &Weak<Pulse>) {
    let mut spins = SpinWatch::default();
    while let Some(pulse) = watched.upgrade() {
        let Some(processor) = pulse.processor() else { return };
        if !pulse.is_raised.load(Ordering::Relaxed) {
            spins.restart(processor);
        } else if spins.look(pulse.pauses.load(Ordering::Relaxed), processor) {
            pulse.was_taken.store(true, Ordering::Relaxed);
            pulse.demote(SpinWatch::LONGEST);
        }
        drop(pulse);
        std::thread::sleep(Duration::from_micros(SpinWatch::INTERVAL.0));
    }
}

fn micros(length: Duration) -> Micros {
    Micros(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
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
                assert_eq!(urgent.standing(), PriorityStanding::Refused);
                return;
            }
            assert!(is_real_time());
            urgent.waited(Duration::ZERO);
            assert!(is_real_time(), "not yet");
            assert_eq!(urgent.standing(), PriorityStanding::RealTime);
            urgent.started -= LONGEST_RUN + Duration::from_millis(1);
            urgent.waited(Duration::ZERO);
            assert!(!is_real_time());
            assert_eq!(niceness(), "0");
            assert_eq!(urgent.standing(), PriorityStanding::Lost);
            urgent.waited(REST / 2);
            assert!(!is_real_time());
            urgent.waited(REST / 2);
            assert!(is_real_time());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_spins_and_never_comes_by_is_demoted_by_the_watchdog() {
        std::thread::spawn(|| {
            let mut urgent = Urgent::begin(Some(10));
            if !urgent.watch.is_raised() {
                return;
            }
            let began = Instant::now();
            while is_real_time() && began.elapsed() < LONGEST_RUN * 20 {
                std::hint::spin_loop();
            }
            assert!(!is_real_time(), "it would spin for ever");
            assert_eq!(urgent.standing(), PriorityStanding::Lost);
            urgent.waited(REST);
            assert!(is_real_time(), "it paused for long enough");
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
        assert_eq!(urgent.standing(), PriorityStanding::Normal);
    }
}
