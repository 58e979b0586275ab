use downburst_model::Micros;

/// A token bucket in Ethernet-frame bits.
///
/// After a pause at most the configured burst leaves at once. While the leg has work, the bucket may fill for [`SLACK`] (or to the
/// burst, if that is more), so that a driver that wakes a millisecond late still reaches the rate: over any stretch of time
/// `t` at most `rate * t + depth` leaves, `depth` being the larger of the two. When the bucket runs dry it stays shut until a
/// train is due, so that a busy leg wakes its driver about a thousand times a second and not once per datagram.
#[derive(Debug)]
pub(crate) struct Pacer {
    rate_bps: u64,
    burst_bytes: u64,
    largest_frame_bytes: u64,
    /// In millionths of a bit: a rate in bits per second times microseconds.
    tokens: u128,
    filled: Option<Micros>,
    shut_until: Option<Micros>,
}

impl Pacer {
    pub(crate) fn new(rate_bps: u64, burst_bytes: u64, largest_datagram_bytes: usize) -> Self {
        let largest_frame_bytes = frame_bytes(largest_datagram_bytes);
        Self {
            rate_bps,
            burst_bytes: burst_bytes.max(largest_frame_bytes),
            largest_frame_bytes,
            tokens: 0,
            filled: None,
            shut_until: None,
        }
    }

    /// Lets the bucket fill up to `now`. `busy`: the leg had work all the time since the last call.
    pub(crate) fn fill(&mut self, now: Micros, busy: bool) {
        let Some(filled) = self.filled else {
            self.filled = Some(now);
            self.tokens = millionths_of_a_bit(self.burst_bytes);
            return;
        };
        let elapsed = u128::from(now.since(filled).0);
        self.filled = Some(now.max(filled));
        self.tokens = self.tokens.saturating_add(u128::from(self.rate_bps) * elapsed).min(self.depth(busy));
    }

    /// True if a datagram of any size may leave. Otherwise the bucket shuts until a train is due.
    pub(crate) fn is_open(&mut self, now: Micros) -> bool {
        if self.shut_until.is_some_and(|until| now < until) {
            return false;
        }
        let open = self.tokens >= millionths_of_a_bit(self.largest_frame_bytes);
        self.shut_until = (!open).then(|| self.next_train(now));
        open
    }

    /// Takes a datagram's frame out.
    pub(crate) fn spend(&mut self, datagram_bytes: usize) {
        self.tokens = self.tokens.saturating_sub(millionths_of_a_bit(frame_bytes(datagram_bytes)));
    }

    pub(crate) fn change_rate(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps;
        self.shut_until = None;
    }

    /// When a datagram may leave: `None` if it may at once.
    pub(crate) fn shut_until(&self) -> Option<Micros> {
        self.shut_until
    }

    fn depth(&self, busy: bool) -> u128 {
        let burst = millionths_of_a_bit(self.burst_bytes);
        if busy { burst.max(u128::from(self.rate_bps) * u128::from(SLACK.0)) } else { burst }
    }

    fn next_train(&self, now: Micros) -> Micros {
        let train = (u128::from(self.rate_bps) * u128::from(TRAIN.0))
            .min(millionths_of_a_bit(self.burst_bytes))
            .max(millionths_of_a_bit(self.largest_frame_bytes));
        let wait = train.saturating_sub(self.tokens).checked_div(u128::from(self.rate_bps));
        let wait = wait.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(u64::MAX);
        now.plus(Micros(wait.saturating_add(1)))
    }
}

/// What a UDP payload takes on an Ethernet: header 14, IPv4 20, UDP 8, trailer 4.
pub(crate) fn frame_bytes(datagram_bytes: usize) -> u64 {
    datagram_bytes as u64 + 46
}

fn millionths_of_a_bit(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000
}

/// How long a busy leg may fall behind its rate and still make it up: a train and a millisecond of timer slack.
const SLACK: Micros = Micros(2_000);

/// How much rate is collected before a busy leg sends on.
const TRAIN: Micros = Micros(1_000);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sends all the bucket lets out; the driver comes `lateness` after each deadline. Returns (time, frame bytes).
    fn run(pacer: &mut Pacer, until: Micros, lateness: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let (mut now, mut out, mut wakes) = (Micros(0), Vec::new(), 0);
        while now < until {
            pacer.fill(now, true);
            while pacer.is_open(now) {
                pacer.spend(1_452);
                out.push((now.0, frame_bytes(1_452)));
            }
            wakes += 1;
            now = pacer.shut_until().unwrap().plus(Micros(lateness(wakes)));
        }
        out
    }

    fn bits(sent: &[(u64, u64)]) -> u64 {
        sent.iter().map(|(_, bytes)| bytes * 8).sum()
    }

    #[test]
    fn a_driver_a_millisecond_late_reaches_the_rate_within_one_percent() {
        for rate in [1_000_000, 20_000_000, 100_000_000, 600_000_000, 1_000_000_000] {
            let sent = run(&mut Pacer::new(rate, 64 << 10, 1_452), Micros::from_secs(10), |_| 1_000);
            let asked = rate * 10;
            let got = bits(&sent);
            assert!(got <= asked + asked / 100 + (64 << 13), "{rate}: {got}");
            assert!(got >= asked - asked / 100, "{rate}: {got}");
        }
    }

    #[test]
    fn a_busy_leg_wakes_its_driver_a_thousand_times_a_second() {
        let wakes = std::cell::Cell::new(0);
        run(&mut Pacer::new(500_000_000, 128 << 10, 1_452), Micros::from_secs(1), |count| {
            wakes.set(count);
            0
        });
        assert!((900..1_200).contains(&wakes.get()), "{}", wakes.get());
    }

    #[test]
    fn after_a_pause_only_the_burst_leaves_at_once() {
        let mut pacer = Pacer::new(1_000_000_000, 30_000, 1_452);
        pacer.fill(Micros(0), false);
        pacer.fill(Micros::from_secs(60), false);
        let mut sent = 0;
        while pacer.is_open(Micros::from_secs(60)) {
            pacer.spend(1_452);
            sent += frame_bytes(1_452);
        }
        assert!(sent <= 30_000 && sent > 27_000, "{sent}");
    }

    #[test]
    fn rate_zero_is_a_stop_and_a_rate_goes_on() {
        let mut pacer = Pacer::new(0, 1_500, 1_452);
        pacer.fill(Micros(0), true);
        assert!(pacer.is_open(Micros(0)));
        pacer.spend(1_452);
        pacer.fill(Micros::from_secs(9), true);
        assert!(!pacer.is_open(Micros::from_secs(9)));
        assert_eq!(pacer.shut_until(), Some(Micros(u64::MAX)));
        pacer.change_rate(1_000_000);
        assert!(!pacer.is_open(Micros::from_secs(9)));
        let again = pacer.shut_until().unwrap();
        pacer.fill(again, true);
        assert!(pacer.is_open(again));
    }

    proptest! {
        #[test]
        fn no_stretch_of_time_exceeds_rate_and_depth(
            rate in 100_000u64..2_000_000_000,
            burst in 2_000u64..200_000,
            late in prop::collection::vec(0u64..5_000, 1..50),
        ) {
            let until = Micros(300_000.min(40_000_000_000_000 / rate));
            let sent = run(&mut Pacer::new(rate, burst, 1_452), until, |wake| late[wake as usize % late.len()]);
            let depth = burst.max(rate / 8 / 500);
            // The largest of (bytes sent up to the end) - (rate up to the end) minus the same at the start bounds every stretch.
            let (mut total, mut lowest, mut worst) = (0i128, i128::MAX, i128::MIN);
            for (time, bytes) in sent {
                let allowed = i128::from(rate) * i128::from(time) / 8_000_000;
                lowest = lowest.min(total - allowed);
                total += i128::from(bytes);
                worst = worst.max(total - allowed - lowest);
            }
            prop_assert!(worst <= i128::from(depth) + 1, "{worst} over {depth}");
        }
    }
}
