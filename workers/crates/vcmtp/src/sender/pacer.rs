use downburst_model::Micros;

use super::trains::Train;

/// Two token buckets in Ethernet-frame bits.
///
/// The first holds the rate: over any stretch of time `t` at most `rate * t + burst_bytes` leaves, whatever
/// the driver does, so a policer with that much buffer drops nothing. It also is the amount that a driver
/// that woke late may make up. The second keeps that from leaving as one lump: it fills at twice the rate and
/// holds [`CREST_BYTES`] or two short trains, if that is more. When a bucket runs dry the pacer stays shut until
/// a train is due, so that a busy leg wakes its driver about a thousand times a second and not once per
/// datagram; for large products without urgency, a few hundred times (`trains.rs`).
#[derive(Debug)]
pub(crate) struct Pacer {
    rate_bps: u64,
    burst_bytes: u64,
    frame_overhead_bytes: u64,
    largest_frame_bytes: u64,
    rate_bucket: Bucket,
    crest_bucket: Bucket,
    filled: Option<Micros>,
    is_dry: bool,
}

/// A bucket of tokens in millionths of a bit: a rate in bits per second times microseconds.
#[derive(Debug, Default)]
struct Bucket {
    tokens: u128,
}

impl Pacer {
    /// `frame_overhead_bytes`: the overhead of a datagram on the wire beside its payload.
    pub(crate) fn new(
        rate_bps: u64,
        burst_bytes: u64,
        largest_datagram_bytes: usize,
        frame_overhead_bytes: u64,
    ) -> Self {
        let largest_frame_bytes = frame_overhead_bytes.saturating_add(largest_datagram_bytes as u64);
        Self {
            rate_bps,
            burst_bytes: burst_bytes.max(largest_frame_bytes),
            frame_overhead_bytes,
            largest_frame_bytes,
            rate_bucket: Bucket::default(),
            crest_bucket: Bucket::default(),
            filled: None,
            is_dry: false,
        }
    }

    /// Lets the buckets fill up to `now`; they begin full.
    pub(crate) fn fill(&mut self, now: Micros) {
        let crest_bytes = self.crest_bytes();
        let Some(filled) = self.filled.replace(now.max(self.filled.unwrap_or_default())) else {
            self.rate_bucket.tokens = millionths_of_a_bit(self.burst_bytes);
            self.crest_bucket.tokens = millionths_of_a_bit(crest_bytes);
            return;
        };
        let (rate, elapsed) = (u128::from(self.rate_bps), now.since(filled));
        self.rate_bucket.fill(rate, elapsed, self.burst_bytes);
        self.crest_bucket.fill(rate * 2, elapsed, crest_bytes);
    }

    /// True if a datagram of any size may leave now, as of [`fill`](Self::fill). Otherwise the pacer is dry until
    /// this train is due.
    pub(crate) fn is_open(&mut self, train: Train) -> bool {
        let wanted_bytes = if self.is_dry { self.train_bytes(train) } else { self.largest_frame_bytes };
        let least = millionths_of_a_bit(wanted_bytes);
        self.is_dry = self.rate_bucket.tokens < least || self.crest_bucket.tokens < least;
        !self.is_dry
    }

    /// The time to the next train, if the present one has room for one datagram of any size only.
    pub(crate) fn last_before(&self, train: Train) -> Option<Micros> {
        let two_frames = millionths_of_a_bit(self.largest_frame_bytes.saturating_mul(2));
        let is_last = self.rate_bucket.tokens.min(self.crest_bucket.tokens) < two_frames;
        (is_last && !self.is_dry).then(|| self.wait(train))
    }

    /// Leaves the rest of the tokens to the next train.
    pub(crate) fn end_train(&mut self) {
        self.is_dry = true;
    }

    /// Takes a datagram's frame out.
    pub(crate) fn spend(&mut self, datagram_bytes: usize) {
        let bytes = self.frame_overhead_bytes.saturating_add(datagram_bytes as u64);
        self.rate_bucket.spend(bytes);
        self.crest_bucket.spend(bytes);
    }

    pub(crate) fn change_rate(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps;
    }

    /// The time until which no datagram of this train may leave; `None` if one may leave now.
    pub(crate) fn shut_until(&self, train: Train) -> Option<Micros> {
        let wait = self.wait(train);
        (self.is_dry && wait > Micros(0)).then(|| self.filled.unwrap_or_default().plus(wait))
    }

    fn wait(&self, train: Train) -> Micros {
        let (bytes, rate) = (self.train_bytes(train), u128::from(self.rate_bps));
        Micros(self.rate_bucket.wait(bytes, rate).max(self.crest_bucket.wait(bytes, rate * 2)))
    }

    /// The bytes that may leave in one lump after a stall or a pause.
    fn crest_bytes(&self) -> u64 {
        CREST_BYTES.max(self.short_train_bytes().saturating_mul(2)).min(self.burst_bytes)
    }

    fn train_bytes(&self, train: Train) -> u64 {
        let short = self.short_train_bytes();
        match train {
            Train::Short => short,
            Train::Long { left_bytes } => self.long_train_bytes().min(self.frames_of(left_bytes)).max(short),
        }
    }

    /// Half the burst at most: the other half is for the driver's lateness.
    fn short_train_bytes(&self) -> u64 {
        bytes_in(SHORT_TRAIN, self.rate_bps).min(self.burst_bytes / 2).max(self.largest_frame_bytes)
    }

    /// As above, and no more than leaves in one lump after a pause, or than a call of the kernel sends.
    fn long_train_bytes(&self) -> u64 {
        let one_call = self.largest_frame_bytes.saturating_mul(DATAGRAMS_OF_A_CALL);
        let most = (self.burst_bytes / 2).min(self.crest_bytes()).min(one_call);
        bytes_in(LONG_TRAIN, self.rate_bps).min(most)
    }

    /// The frames of so many bytes of a product, with a twelfth for headers, a frame that is not full, and a proof.
    fn frames_of(&self, product_bytes: u64) -> u64 {
        let others = self.largest_frame_bytes.saturating_mul(2);
        product_bytes.saturating_add(product_bytes / 12).saturating_add(others)
    }
}

impl Bucket {
    fn fill(&mut self, rate_bps: u128, elapsed: Micros, depth_bytes: u64) {
        let more = rate_bps.saturating_mul(u128::from(elapsed.0));
        self.tokens = self.tokens.saturating_add(more).min(millionths_of_a_bit(depth_bytes));
    }

    fn spend(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(millionths_of_a_bit(bytes));
    }

    /// Microseconds until the bucket holds this number of bytes; unlimited at rate zero.
    fn wait(&self, bytes: u64, rate_bps: u128) -> u64 {
        let lacking = millionths_of_a_bit(bytes).saturating_sub(self.tokens);
        let wait =
            if lacking == 0 { 0 } else { lacking.checked_div(rate_bps).map_or(u128::MAX, |wait| wait + 1) };
        u64::try_from(wait).unwrap_or(u64::MAX)
    }
}

/// The burst of a leg for which no policer is known: 10 ms of the rate, and 64 KiB at least. A driver on a
/// busy machine may be late by this time and still reach the rate; over a second it is one percent.
pub(crate) fn default_burst_bytes(rate_bps: u64) -> u64 {
    (rate_bps / 800).max(CREST_BYTES)
}

/// The time between two long trains of a leg with this rate and the burst of [`default_burst_bytes`].
pub fn long_train_time(rate_bps: u64) -> Micros {
    let most = (default_burst_bytes(rate_bps) / 2).min(CREST_BYTES);
    let bytes = bytes_in(LONG_TRAIN, rate_bps).min(most);
    let time = bytes.saturating_mul(8_000_000).checked_div(rate_bps).unwrap_or(LONG_TRAIN.0);
    Micros(time).max(SHORT_TRAIN)
}

fn bytes_in(time: Micros, rate_bps: u64) -> u64 {
    rate_bps.saturating_mul(time.0) / 8_000_000
}

fn millionths_of_a_bit(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000
}

/// The overhead of a datagram in an Ethernet frame: header 14, IPv4 20, UDP 8, trailer 4.
pub(crate) const IPV4_FRAME_OVERHEAD_BYTES: u64 = 46;

/// IPv6's header is 20 bytes longer.
pub(crate) const IPV6_FRAME_OVERHEAD_BYTES: u64 = 66;

/// The smallest buffer that a port of a switch or a policer has in practice.
const CREST_BYTES: u64 = 64 << 10;

/// The time for which rate accumulates before a busy leg sends on: what a warning may wait.
const SHORT_TRAIN: Micros = Micros(1_000);

/// The same for large products, of which each takes many times as long. Rarer trains would save no site much.
const LONG_TRAIN: Micros = Micros(8_000);

/// The most datagrams that a driver hands to the kernel in one call.
const DATAGRAMS_OF_A_CALL: u64 = 44;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME_BYTES: u64 = 1_498;
    const LONG: Train = Train::Long { left_bytes: u64::MAX };

    fn pacer(rate_bps: u64, burst_bytes: u64) -> Pacer {
        Pacer::new(rate_bps, burst_bytes, 1_452, IPV4_FRAME_OVERHEAD_BYTES)
    }

    /// Sends all that the buckets allow; the driver comes `lateness` after each deadline. Returns (time,
    /// frame bytes).
    fn run(pacer: &mut Pacer, until: Micros, lateness: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        run_by(pacer, until, lateness, |_| Train::Short)
    }

    /// As above; the trains are those of a leg whose traffic changes.
    fn run_by(
        pacer: &mut Pacer,
        until: Micros,
        lateness: impl Fn(u64) -> u64,
        train: impl Fn(u64) -> Train,
    ) -> Vec<(u64, u64)> {
        let (mut now, mut out, mut wakes) = (Micros(0), Vec::new(), 0);
        while now < until {
            pacer.fill(now);
            while pacer.is_open(train(wakes)) {
                pacer.spend(1_452);
                out.push((now.0, FRAME_BYTES));
            }
            wakes += 1;
            now = pacer.shut_until(train(wakes)).unwrap_or(now).plus(Micros(lateness(wakes)));
        }
        out
    }

    /// The most bytes that any stretch of time carried beyond `rate` times its length.
    fn worst_excess(sent: &[(u64, u64)], rate_bps: u64) -> i128 {
        let (mut total, mut lowest, mut worst) = (0i128, i128::MAX, i128::MIN);
        for (time, bytes) in sent {
            let allowed = i128::from(rate_bps) * i128::from(*time) / 8_000_000;
            lowest = lowest.min(total - allowed);
            total += i128::from(*bytes);
            worst = worst.max(total - allowed - lowest);
        }
        worst
    }

    /// The fewest bytes that any full second carried, of those that begin with a datagram.
    fn poorest_second(sent: &[(u64, u64)], until: Micros) -> u64 {
        let (mut end, mut total, mut poorest) = (0, 0, u64::MAX);
        for (start, (from, bytes)) in
            sent.iter().enumerate().take_while(|(_, (from, _))| from + 1_000_000 <= until.0)
        {
            end = end.max(start);
            while let Some((_, more)) = sent.get(end).filter(|(time, _)| *time <= from + 1_000_000) {
                total += more;
                end += 1;
            }
            poorest = poorest.min(total);
            total -= bytes;
        }
        poorest
    }

    #[test]
    fn every_second_holds_the_rate_within_one_percent_although_the_driver_is_late() {
        for rate in [10_000_000, 100_000_000, 600_000_000, 900_000_000] {
            let until = Micros::from_secs(5);
            // Up to 2 ms late each time, and once in 200 wakes 8 ms: a busy machine.
            let late = |wake: u64| if wake.is_multiple_of(200) { 8_000 } else { wake * 7_919 % 2_000 };
            for train in [Train::Short, LONG] {
                let sent = run_by(&mut pacer(rate, default_burst_bytes(rate)), until, late, |_| train);
                // A second that begins within a train lacks the rest of it.
                let poorest = poorest_second(&sent, until) + bytes_in(long_train_time(rate), rate);
                assert!(poorest >= rate / 8 / 100 * 99, "{rate}: {poorest} bytes in a second");
                let most = default_burst_bytes(rate).max(rate / 800);
                assert!(worst_excess(&sent, rate) <= i128::from(most) + 1);
            }
        }
    }

    #[test]
    fn a_small_burst_is_held_and_a_punctual_driver_reaches_the_rate() {
        for (rate, burst) in [(100_000_000, 20_000), (600_000_000, 64_000), (900_000_000, 64_000)] {
            let until = Micros::from_secs(2);
            let sent = run(&mut pacer(rate, burst), until, |_| 50);
            assert!(worst_excess(&sent, rate) <= i128::from(burst) + 1, "{rate}");
            assert!(poorest_second(&sent, until) >= rate / 8 / 100 * 99, "{rate}");
        }
    }

    #[test]
    fn a_busy_leg_wakes_its_driver_a_thousand_times_a_second() {
        let wakes = std::cell::Cell::new(0);
        run(&mut pacer(500_000_000, 128 << 10), Micros::from_secs(1), |count| {
            wakes.set(count);
            0
        });
        assert!((900..1_200).contains(&wakes.get()), "{}", wakes.get());
    }

    #[test]
    fn a_long_train_follows_the_rate_up_to_a_call_of_the_kernel_and_half_the_burst() {
        for (rate, burst, datagrams, millis) in [
            (10_000_000, 65_536, 6, 7.2),
            (30_000_000, 65_536, 20, 8.0),
            (100_000_000, 125_000, 41, 4.9),
            (100_000_000, 20_000, 6, 0.72),
            (300_000_000, 375_000, 44, 1.7),
            (1_000_000_000, 1_250_000, 83, 1.0),
        ] {
            let sent = run_by(&mut pacer(rate, burst), Micros::from_secs(1), |_| 0, |_| LONG);
            let trains = sent.chunk_by(|(one, _), (other, _)| one == other);
            let largest = trains.clone().skip(1).map(<[_]>::len).max().unwrap();
            assert_eq!(largest, datagrams, "{rate} {burst}");
            let apart = 1_000.0 / trains.count() as f64;
            assert!((apart - millis).abs() < millis / 10.0, "{rate} {burst}: {apart} ms");
        }
    }

    #[test]
    fn the_time_of_long_trains_is_that_of_a_leg_with_the_usual_burst() {
        for rate in [1_000_000, 30_000_000, 100_000_000, 300_000_000, 2_000_000_000] {
            let pacer = pacer(rate, default_burst_bytes(rate));
            let bytes = bytes_in(long_train_time(rate), rate);
            let most = pacer.train_bytes(LONG).max(FRAME_BYTES);
            assert!(bytes.abs_diff(most) <= most / 50 || bytes < FRAME_BYTES, "{rate}: {bytes} of {most}");
        }
        assert_eq!(long_train_time(0), LONG_TRAIN);
    }

    #[test]
    fn what_is_urgent_does_not_wait_for_a_long_train_nor_the_end_of_a_product() {
        let mut pacer = pacer(100_000_000, 125_000);
        run_by(&mut pacer, Micros::from_millis(100), |_| 0, |_| LONG);
        let ran_dry = pacer.filled.unwrap();
        let due = |train| pacer.shut_until(train).unwrap().since(ran_dry).0;
        assert!((900..1_010).contains(&due(Train::Short)), "{}", due(Train::Short));
        let end = due(Train::Long { left_bytes: 27_900 });
        assert!((2_400..2_700).contains(&end), "{end}: twenty datagrams, and two to be sure");
        assert!((4_800..5_010).contains(&due(LONG)), "{}", due(LONG));
        pacer.fill(ran_dry.plus(Micros(1_010)));
        assert!(!pacer.is_open(LONG) && pacer.is_open(Train::Short));
        assert!(pacer.is_open(LONG), "what waits goes with it");
    }

    #[test]
    fn after_a_pause_only_the_burst_leaves_at_once() {
        for (burst, most) in [(30_000, 30_000), (1 << 20, 250_000)] {
            let mut pacer = pacer(1_000_000_000, burst);
            pacer.fill(Micros(0));
            pacer.fill(Micros::from_secs(60));
            let mut sent = 0;
            while pacer.is_open(Train::Short) {
                pacer.spend(1_452);
                sent += FRAME_BYTES;
            }
            assert!(sent <= most && sent > most - 2 * FRAME_BYTES, "{sent} of {burst}");
        }
    }

    #[test]
    fn over_ipv6_a_datagram_costs_twenty_bytes_more() {
        let frames = |overhead| {
            let mut pacer = Pacer::new(80_000_000, 1 << 20, 1_000, overhead);
            let mut now = Micros(0);
            let mut frames = 0u64;
            while now < Micros::from_secs(10) {
                pacer.fill(now);
                while pacer.is_open(Train::Short) {
                    pacer.spend(100);
                    frames += 1;
                }
                now = pacer.shut_until(Train::Short).unwrap();
            }
            frames as f64
        };
        let ratio = frames(IPV4_FRAME_OVERHEAD_BYTES) / frames(IPV6_FRAME_OVERHEAD_BYTES);
        assert!((ratio - 166.0 / 146.0).abs() < 0.001, "{ratio}");
    }

    #[test]
    fn rate_zero_is_a_stop_and_a_rate_goes_on() {
        let mut pacer = pacer(0, 1_500);
        pacer.fill(Micros(0));
        assert!(pacer.is_open(Train::Short));
        pacer.spend(1_452);
        pacer.fill(Micros::from_secs(9));
        assert!(!pacer.is_open(Train::Short));
        assert_eq!(pacer.shut_until(Train::Short), Some(Micros(u64::MAX)));
        pacer.change_rate(1_000_000);
        assert!(!pacer.is_open(Train::Short));
        let again = pacer.shut_until(Train::Short).unwrap();
        pacer.fill(again);
        assert!(pacer.is_open(Train::Short));
    }

    proptest! {
        #[test]
        fn no_stretch_of_time_exceeds_rate_and_burst_nor_twice_the_rate_and_the_crest(
            rate in 100_000u64..2_000_000_000,
            burst in 2_000u64..2_000_000,
            late in prop::collection::vec(0u64..15_000, 1..50),
            trains in prop::collection::vec(
                prop_oneof![
                    Just(Train::Short),
                    Just(LONG),
                    (0u64..200_000).prop_map(|left_bytes| Train::Long { left_bytes }),
                ],
                1..50,
            ),
        ) {
            let until = Micros(300_000.min(40_000_000_000_000 / rate));
            let mut pacer = pacer(rate, burst);
            let train = |wake: u64| trains[wake as usize % trains.len()];
            let sent = run_by(&mut pacer, until, |wake| late[wake as usize % late.len()], train);
            let (excess, crest) = (worst_excess(&sent, rate), worst_excess(&sent, rate * 2));
            prop_assert!(excess <= i128::from(burst) + 1, "{excess} over {burst}");
            prop_assert!(crest <= i128::from(pacer.crest_bytes()) + 1, "{crest} over {}", pacer.crest_bytes());
        }
    }
}
