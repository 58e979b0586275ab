//! The number of a session's data connections and the classes of each, decided from measurements.
//!
//! The first connection is enough for a site that keeps up on it. If products wait although the site reads, and the
//! path is long, the rate is limited by window and loss, not by the line: more connections are opened, and kept if
//! they raise the rate. `docs/adr` gives the reasons.
use downburst_model::{Class, Micros};
use downburst_session::{Classes, DATA_STREAMS};

/// The state of one session's decision.
#[derive(Debug)]
pub struct StreamPolicy {
    setting: Setting,
    decision: Decision,
    trial: Option<Trial>,
    last: Option<Measured>,
    /// The time since which products have waited without a pause.
    waiting_since: Option<Micros>,
    /// The time at which products last waited.
    waited_at: Micros,
    /// The earliest time of the next attempt.
    hold_until: Micros,
    seen: Seen,
}

/// The operator's setting for a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// As many as help, up to a limit.
    Auto {
        /// The limit.
        most: usize,
    },
    /// A fixed number.
    Pinned(usize),
    /// A fixed number, of the site's TCP profile.
    Profiled(usize),
}

/// The present decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The number of data connections.
    pub count: usize,
    /// A sentence for people.
    pub reason: String,
}

/// Measurements of a session at one time; counts start with the session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// The time of the measurement.
    pub at: Micros,
    /// The smallest round trip of the path; `None`: not known yet.
    pub round_trip: Option<Micros>,
    /// The number of bytes that the sockets accepted.
    pub sent_bytes: u64,
    /// The size of the products in the queue.
    pub waiting_bytes: usize,
    /// Their classes.
    pub waiting_classes: Classes,
    /// The rate limit of the site on the wire, by its access and the hour; `None`: no limit.
    pub bound_bps: Option<u64>,
}

/// A trial of more connections.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: usize,
    rate_before_bps: u64,
    began: Micros,
    /// The time and the bytes sent after the connections had time to grow.
    settled: Option<(Micros, u64)>,
}

/// The times at which a product of each class last waited.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    observation: Option<Micros>,
    others: Option<Micros>,
}

impl StreamPolicy {
    /// Starts with the number that an earlier session of the site learnt.
    pub fn new(setting: Setting, learnt: usize) -> Self {
        let decision = match setting {
            Setting::Auto { most } if learnt.min(most) > 0 => Decision {
                count: learnt.min(most),
                reason: "as many as helped in the site's last session".to_owned(),
            },
            Setting::Auto { .. } => keeps_up(),
            Setting::Pinned(count) => Decision { count, reason: "the operator set the number".to_owned() },
            Setting::Profiled(count) => {
                Decision { count, reason: "the site's TCP profile sets the number".to_owned() }
            }
        };
        Self {
            setting,
            decision,
            trial: None,
            last: None,
            waiting_since: None,
            waited_at: Micros(0),
            hold_until: Micros(0),
            seen: Seen::default(),
        }
    }

    /// The present decision, with its reason.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The number for the start of the site's next session: the result of an unfinished attempt is not kept.
    pub fn learnt(&self) -> usize {
        match self.setting {
            Setting::Auto { .. } => self.trial.map_or(self.decision.count, |trial| trial.before),
            Setting::Pinned(_) | Setting::Profiled(_) => 0,
        }
    }

    /// Applies a changed setting of the operator.
    pub fn set(&mut self, setting: Setting) {
        if self.setting != setting {
            *self = Self::new(setting, 0);
        }
    }

    /// The classes of each data connection. If observations and others both wait, observations have one for
    /// themselves: they take the first free one, and that one is never full of grids.
    pub fn plan(&self, now: Micros) -> Vec<Classes> {
        let shared = Classes::all().without(Classes::of(Class::Warning));
        let mut plan = vec![shared; self.decision.count];
        let lately = |at: Option<Micros>| at.is_some_and(|at| now.since(at) < LATELY);
        if plan.len() > 1
            && lately(self.seen.observation)
            && lately(self.seen.others)
            && let Some(first) = plan.first_mut()
        {
            *first = Classes::of(Class::Observation);
        }
        plan
    }

    /// The time of the next look; none while nothing waits and no data connection is open.
    pub fn due(&self, waits: bool) -> Option<Micros> {
        let last = self.last.map_or(Micros(0), |last| last.at);
        match self.setting {
            _ if waits => Some(last.plus(INTERVAL)),
            Setting::Auto { .. } if self.decision.count > 0 => Some(last.plus(IDLE_INTERVAL)),
            _ => None,
        }
    }

    /// Takes measurements; the decision may change.
    pub fn measure(&mut self, measured: Measured) {
        self.see(&measured);
        let last = self.last.replace(measured);
        let Setting::Auto { most } = self.setting else {
            return;
        };
        if measured.waiting_bytes < WAITING_BYTES {
            self.waiting_since = None;
            self.trial = None;
            return self.rest(measured.at);
        }
        self.waited_at = measured.at;
        let since = *self.waiting_since.get_or_insert(measured.at);
        match self.trial {
            Some(trial) => self.judge(trial, &measured),
            None => {
                let began = last.filter(|last| last.at >= since && measured.at > last.at);
                if let Some(last) = began.filter(|_| measured.at >= self.hold_until) {
                    self.grow(most, &last, &measured);
                }
            }
        }
    }

    fn see(&mut self, measured: &Measured) {
        let observation = Classes::of(Class::Observation);
        if measured.waiting_classes.has(Class::Observation) {
            self.seen.observation = Some(measured.at);
        }
        let others = measured.waiting_classes.without(observation.with(Class::Warning));
        if others != Classes::NONE {
            self.seen.others = Some(measured.at);
        }
    }

    /// Tries more connections if the path may carry more.
    fn grow(&mut self, most: usize, last: &Measured, measured: &Measured) {
        if let Some(bound_bps) = measured.bound_bps.filter(|bound_bps| fills(last, measured, *bound_bps)) {
            self.decision.reason = format!(
                "{}, nearly all of the {:.1} Mb/s that the site's bound allows, so more would bring no more",
                bring(self.decision.count, rate_bps(last, measured)),
                bound_bps as f64 / 1e6,
            );
            return;
        }
        let Some(round_trip) = measured.round_trip.filter(|round_trip| *round_trip >= FAR) else {
            return;
        };
        let count = match self.decision.count {
            0 => (round_trip.0 / FAR.0).clamp(2, 4) as usize,
            count => count.saturating_mul(2),
        };
        let count = count.min(most);
        if count <= self.decision.count {
            return;
        }
        let rate_before_bps = rate_bps(last, measured);
        let reason = format!(
            "{} wait while {} at {} ms round trip",
            kilobytes(measured.waiting_bytes as u64),
            bring(self.decision.count, rate_before_bps),
            round_trip.0 / 1_000,
        );
        self.trial =
            Some(Trial { before: self.decision.count, rate_before_bps, began: measured.at, settled: None });
        self.decision = Decision { count, reason };
    }

    /// Keeps the new connections if they raise the rate.
    fn judge(&mut self, mut trial: Trial, measured: &Measured) {
        let Some((since, sent)) = trial.settled else {
            if measured.at.since(trial.began) >= SETTLE {
                trial.settled = Some((measured.at, measured.sent_bytes));
            }
            self.trial = Some(trial);
            return;
        };
        if measured.at.since(since) < SETTLE {
            return;
        }
        let settled = Measured { at: since, sent_bytes: sent, ..Measured::default() };
        let rate = rate_bps(&settled, measured);
        self.trial = None;
        if rate >= trial.rate_before_bps.saturating_add(trial.rate_before_bps / 8) {
            self.decision.reason = format!(
                "{}, where {}",
                bring(self.decision.count, rate),
                bring(trial.before, trial.rate_before_bps)
            );
            return;
        }
        let tried = self.decision.count;
        self.decision = Decision {
            count: trial.before,
            reason: format!(
                "{}, and {tried} data connections brought no more",
                bring(trial.before, trial.rate_before_bps)
            ),
        };
        self.hold_until = measured.at.plus(HOLD);
    }

    /// Closes connections that were not needed for long.
    fn rest(&mut self, now: Micros) {
        if self.decision.count > 0 && now.since(self.waited_at) >= UNUSED {
            self.decision.count /= 2;
            self.waited_at = now;
            self.decision.reason = "no product waited for ten minutes".to_owned();
            if self.decision.count == 0 {
                self.decision = keeps_up();
            }
        }
    }
}

impl Setting {
    /// A site's setting: its own number, if the operator set one, else that of its TCP profile, within the hub's
    /// limit.
    pub fn of(pinned: Option<usize>, profiled: Option<usize>, most: usize) -> Self {
        let most = most.min(DATA_STREAMS);
        match (pinned, profiled) {
            (Some(count), _) => Self::Pinned(count.min(most)),
            (None, Some(count)) => Self::Profiled(count.min(most)),
            (None, None) => Self::Auto { most },
        }
    }
}

fn keeps_up() -> Decision {
    Decision { count: 0, reason: "one connection keeps up".to_owned() }
}

fn bring(count: usize, rate_bps: u64) -> String {
    let rate = rate_bps as f64 / 1e6;
    match count {
        0 => format!("the first connection alone brought {rate:.1} Mb/s"),
        count => format!("{count} data connections brought {rate:.1} Mb/s"),
    }
}

fn kilobytes(bytes: u64) -> String {
    format!("{} kB", bytes / 1_000)
}

/// True if products wait because of the limit: headers are a sixteenth, and the tolerance covers a second that was
/// cut a little short.
fn fills(last: &Measured, measured: &Measured, bound_bps: u64) -> bool {
    let rate_bps = rate_bps(last, measured);
    rate_bps.saturating_add(rate_bps / 16) >= bound_bps / 10 * 9
}

fn rate_bps(from: &Measured, to: &Measured) -> u64 {
    let bits = to.sent_bytes.saturating_sub(from.sent_bytes).saturating_mul(8);
    bits.saturating_mul(1_000_000).checked_div(to.at.since(from.at).0).unwrap_or(0)
}

/// A path with a shorter round trip recovers from a loss before it is noticed.
const FAR: Micros = Micros::from_millis(10);

/// A connection has up to this much in transit at any time.
const WAITING_BYTES: usize = 128 << 10;

/// The interval between looks at a session in which products wait, and at one in which none do.
const INTERVAL: Micros = Micros::from_secs(1);
const IDLE_INTERVAL: Micros = Micros::from_secs(60);

/// The time that connections need to grow, and then to be judged: many round trips of the longest path on earth.
const SETTLE: Micros = Micros::from_secs(3);

/// The time after which an attempt without success is repeated.
const HOLD: Micros = Micros::from_secs(300);

/// Connections that were not needed for this time are halved in number.
const UNUSED: Micros = Micros::from_secs(600);

/// Classes that waited within this time count as busy together.
const LATELY: Micros = Micros::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: Setting = Setting::Auto { most: 16 };

    /// A path with a rate limit for each connection, and `line_bps` for all; products arrive faster than that.
    #[derive(Debug)]
    struct Bench {
        policy: StreamPolicy,
        now: Micros,
        sent_bytes: u64,
        round_trip_ms: u64,
        each_bps: u64,
        line_bps: u64,
        bound_bps: Option<u64>,
    }

    impl Bench {
        fn new(round_trip_ms: u64, each_bps: u64, line_bps: u64) -> Self {
            let policy = StreamPolicy::new(AUTO, 0);
            Self { policy, now: Micros(0), sent_bytes: 0, round_trip_ms, each_bps, line_bps, bound_bps: None }
        }

        fn run(&mut self, seconds: u64, waiting_bytes: usize, classes: Classes) {
            for _ in 0..seconds {
                let rate = (self.policy.decision.count.max(1) as u64 * self.each_bps).min(self.line_bps);
                self.now = self.now.plus(Micros::from_secs(1));
                self.sent_bytes += rate / 8;
                self.policy.measure(Measured {
                    at: self.now,
                    round_trip: Some(Micros::from_millis(self.round_trip_ms)),
                    sent_bytes: self.sent_bytes,
                    waiting_bytes,
                    waiting_classes: classes,
                    bound_bps: self.bound_bps,
                });
            }
        }

        fn waits(&mut self, seconds: u64) -> usize {
            self.run(seconds, 4 << 20, Classes::of(Class::Grid));
            self.policy.decision.count
        }
    }

    #[test]
    fn a_long_path_gets_as_many_as_bring_more() {
        let mut bench = Bench::new(70, 20_000_000, 100_000_000);
        assert_eq!(bench.waits(1), 0, "one look is no proof that products wait");
        assert_eq!(bench.waits(1), 4);
        assert!(
            bench.policy.decision.reason.contains("brought 20.0 Mb/s at 70 ms"),
            "{:?}",
            bench.policy.decision
        );
        assert_eq!(bench.waits(60), 8, "five fill the line; sixteen bring no more");
        assert!(bench.policy.decision.reason.contains("16 data connections brought no more"));
    }

    #[test]
    fn a_site_that_keeps_up_and_a_near_one_get_none() {
        let mut bench = Bench::new(70, 20_000_000, 100_000_000);
        bench.run(100, 10_000, Classes::all());
        assert_eq!(bench.policy.decision, keeps_up());
        let mut near = Bench::new(4, 20_000_000, 100_000_000);
        assert_eq!(near.waits(100), 0);
    }

    #[test]
    fn a_line_that_one_connection_fills_gets_no_more_and_is_left_alone() {
        let mut bench = Bench::new(70, 100_000_000, 100_000_000);
        let most = (0..60).map(|_| bench.waits(1)).max();
        assert_eq!((most, bench.waits(1)), (Some(4), 0));
        assert_eq!((0..200).map(|_| bench.waits(1)).max(), Some(0), "not tried again for five minutes");
        assert_eq!((0..100).map(|_| bench.waits(1)).max(), Some(4), "then it is");
    }

    #[test]
    fn an_access_that_is_full_gets_no_more_connections_and_one_that_is_not_does() {
        let mut full = Bench::new(70, 18_500_000, 18_500_000);
        full.bound_bps = Some(20_000_000);
        assert_eq!((0..400).map(|_| full.waits(1)).max(), Some(0), "not even tried");
        let reason = &full.policy.decision.reason;
        assert!(reason.contains("18.5 Mb/s, nearly all of the 20.0 Mb/s"), "{reason}");
        let mut roomy = Bench::new(70, 5_000_000, 18_500_000);
        roomy.bound_bps = Some(20_000_000);
        assert_eq!(roomy.waits(2), 4, "the path gives one connection a quarter of it");
        assert_eq!(roomy.waits(60), 4);
        assert!(roomy.policy.decision.reason.contains("4 data connections brought 18.5"), "{roomy:?}");
    }

    #[test]
    fn the_hubs_limit_and_the_operators_number_hold() {
        let mut bench = Bench::new(200, 1_000_000, 100_000_000);
        bench.policy = StreamPolicy::new(Setting::of(None, None, 5), 0);
        assert_eq!((0..200).map(|_| bench.waits(1)).max(), Some(5));
        bench.policy.set(Setting::of(Some(9), Some(3), 16));
        assert_eq!(bench.waits(50), 9);
        bench.policy.set(Setting::of(Some(0), None, 16));
        assert_eq!(bench.waits(50), 0);
        assert_eq!(Setting::of(Some(200), None, 400), Setting::Pinned(16));
        bench.policy.set(Setting::of(None, Some(3), 16));
        assert_eq!((bench.waits(20), bench.policy.learnt()), (3, 0));
        assert_eq!(bench.policy.decision.reason, "the site's TCP profile sets the number");
    }

    #[test]
    fn what_was_learnt_is_used_at_once_and_given_back_when_it_is_not_needed() {
        let mut bench = Bench::new(70, 20_000_000, 100_000_000);
        bench.policy = StreamPolicy::new(AUTO, 4);
        assert_eq!(bench.policy.decision.count, 4);
        bench.run(550, 0, Classes::NONE);
        assert_eq!(bench.policy.decision.count, 4);
        bench.run(60, 0, Classes::NONE);
        assert_eq!(bench.policy.decision.count, 2);
        bench.run(1_300, 0, Classes::NONE);
        assert_eq!(bench.policy.decision, keeps_up());
        assert_eq!((bench.policy.due(false), bench.policy.due(true).is_some()), (None, true));
    }

    #[test]
    fn observations_have_one_for_themselves_where_both_wait() {
        let mut bench = Bench::new(70, 20_000_000, 100_000_000);
        bench.policy = StreamPolicy::new(Setting::Pinned(3), 0);
        let three = Classes::all().without(Classes::of(Class::Warning));
        assert_eq!(bench.policy.plan(bench.now), vec![three; 3]);
        bench.run(1, 1 << 20, Classes::of(Class::Observation).with(Class::Bulk));
        assert_eq!(bench.policy.plan(bench.now), vec![Classes::of(Class::Observation), three, three]);
        assert_eq!(bench.policy.plan(bench.now.plus(Micros::from_secs(61))), vec![three; 3]);
    }
}
