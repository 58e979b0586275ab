//! What limited a connection: the share of the time for each reason.
use downburst_model::Micros;
use serde::Serialize;

use crate::sample::Sample;
use crate::variable::Variable;

/// A reason why a connection was not faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing was to be sent.
    Application,
    /// The peer's window, which is small and steady.
    ReceiveWindow,
    /// The peer's window, which closes: the peer does not read.
    Receiver,
    /// The send buffer of this host.
    SendBuffer,
    /// Loss, and the regrowth after it.
    NetworkLoss,
    /// The congestion window: the path itself.
    CongestionWindow,
    /// The rate that the connection is bound to.
    Pacing,
}

/// The part of the time for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The reason.
    pub limit: Limit,
    /// 0 to 1; all shares together are 1.
    pub share: f64,
}

/// What limited a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The reason with the largest share.
    pub leading: Limit,
    /// Of all reasons, the largest first.
    pub shares: Vec<Share>,
    /// The time that was judged.
    pub seconds: f64,
    /// Names the leading reason, its share and what would help.
    pub sentence: String,
}

/// Judges a connection's samples, oldest first; `None`: there are no two to compare. Its sentence calls the other end
/// `peer`.
pub fn verdict(samples: &[Sample], peer: &str) -> Option<Verdict> {
    let mut judge = Judge::default();
    for pair in samples.windows(2) {
        if let [before, now] = pair {
            judge.look(before, now);
        }
    }
    judge.verdict(peer)
}

/// The time between two samples; `None` where they can't be compared: the node was away, a clock was set, or another
/// connection has the same addresses.
pub(crate) fn interval(before: &Sample, now: &Sample) -> Option<u64> {
    let length = u64::try_from(now.at.0.checked_sub(before.at.0)?).ok()?;
    (length > 0 && length <= GAP.0 && now.follows(before)).then_some(length)
}

/// The times so far, and what the past tells of the present.
#[derive(Default)]
struct Judge {
    micros: [u64; LIMITS.len()],
    widest_window: u64,
    /// The congestion window has not regrown since a loss.
    regrows: bool,
}

impl Judge {
    fn look(&mut self, before: &Sample, now: &Sample) {
        let Some(length) = interval(before, now) else { return };
        let busy = busy(before, now, length);
        let by_window = now.since(before, Variable::RwndLimited).unwrap_or(0).min(busy);
        let by_buffer = now.since(before, Variable::SndbufLimited).unwrap_or(0).min(busy - by_window);
        let window = self.window(before, now, busy);
        let path = match self.path(before, now) {
            Limit::NetworkLoss => Limit::NetworkLoss,
            // A paced sender spreads what the window admits.
            _ if congestion_window_is_wider(now)
                && (window == Limit::Receiver || fills_the_window_each_round_trip(now)) =>
            {
                window
            }
            other => other,
        };
        self.add(Limit::Application, length - busy);
        self.add(window, by_window);
        self.add(Limit::SendBuffer, by_buffer);
        self.add(path, busy - by_window - by_buffer);
    }

    fn add(&mut self, limit: Limit, micros: u64) {
        if let Some(sum) = self.micros.get_mut(limit as usize) {
            *sum = sum.saturating_add(micros);
        }
    }

    /// The reason for time that the peer's window limited: a window that falls to a quarter of what it was, or below a
    /// segment, or that is mostly filled by unread bytes, belongs to a peer that does not read.
    fn window(&mut self, before: &Sample, now: &Sample, busy: u64) -> Limit {
        let (was, is) = (before.get(Variable::SndWnd), now.get(Variable::SndWnd));
        let Some(least) = was.into_iter().chain(is).min() else { return Limit::ReceiveWindow };
        self.widest_window = self.widest_window.max(was.unwrap_or(0));
        let is_unread = bytes_on_the_path(before, now, busy)
            .is_some_and(|bytes| bytes < u128::from(self.widest_window) * MOSTLY.0 / MOSTLY.1);
        self.widest_window = self.widest_window.max(is.unwrap_or(0));
        let segment = now.get(Variable::SndMss).unwrap_or(0);
        if is_unread || least <= self.widest_window / 4 || least < segment {
            Limit::Receiver
        } else {
            Limit::ReceiveWindow
        }
    }

    /// What limits a connection that neither buffer limits.
    fn path(&mut self, before: &Sample, now: &Sample) -> Limit {
        let (segments, threshold) = (now.get(Variable::SndCwnd), now.get(Variable::SndSsthresh));
        if loses(before, now) {
            self.regrows = true;
        } else if segments.zip(threshold).is_none_or(|(segments, threshold)| segments >= threshold) {
            self.regrows = false;
        }
        if self.regrows {
            Limit::NetworkLoss
        } else if reaches_its_bound(now) {
            Limit::Pacing
        } else {
            Limit::CongestionWindow
        }
    }

    fn verdict(self, peer: &str) -> Option<Verdict> {
        let whole: u64 = self.micros.iter().sum();
        if whole == 0 {
            return None;
        }
        let share =
            |(limit, micros): (&Limit, u64)| Share { limit: *limit, share: micros as f64 / whole as f64 };
        let mut shares: Vec<Share> = LIMITS.iter().zip(self.micros).map(share).collect();
        shares.sort_by(|one, other| other.share.total_cmp(&one.share));
        let leading = shares.first()?;
        Some(Verdict {
            leading: leading.limit,
            seconds: whole as f64 / 1e6,
            sentence: leading.limit.sentence(leading.share, peer),
            shares,
        })
    }
}

impl Limit {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive-window",
            Self::Receiver => "receiver",
            Self::SendBuffer => "send-buffer",
            Self::NetworkLoss => "network-loss",
            Self::CongestionWindow => "congestion-window",
            Self::Pacing => "pacing",
        }
    }

    fn sentence(self, share: f64, peer: &str) -> String {
        format!("In {:.0} % of the time {}.", share * 100.0, self.fact_and_remedy(peer))
    }

    fn fact_and_remedy(self, peer: &str) -> String {
        match self {
            Self::Application => "nothing waited to be sent; a faster path would not help".to_owned(),
            Self::ReceiveWindow => format!(
                "the {peer}'s receive window limited the sender; raise net.ipv4.tcp_rmem at the {peer}, or use more \
                 data connections"
            ),
            Self::Receiver => format!(
                "the {peer} did not read what had arrived, and its receive window closed; look at the {peer}'s disk \
                 and processor"
            ),
            Self::SendBuffer => {
                "the send buffer of this host limited the sender; raise net.ipv4.tcp_wmem at this \
                                 host"
                    .to_owned()
            }
            Self::NetworkLoss => {
                "the network lost packets, and the sender slowed down and sent them again; find \
                                  the lossy link, or use bbr or multicast"
                    .to_owned()
            }
            Self::CongestionWindow => {
                "the path took no more: the congestion window limited the sender; more data \
                                       connections or a circuit may help"
                    .to_owned()
            }
            Self::Pacing => format!(
                "the connection reached the rate that it is bound to; raise the {peer}'s or circuit's rate"
            ),
        }
    }
}

/// The busy part of an interval. Kernels before 4.10 do not measure it: there, what waits or moved is a sign of it.
fn busy(before: &Sample, now: &Sample, length: u64) -> u64 {
    let sign = || {
        let moved = now.since(before, Variable::BytesAcked).unwrap_or(0) > 0;
        if moved || now.waits() { length } else { 0 }
    };
    now.since(before, Variable::BusyTime).unwrap_or_else(sign).min(length)
}

fn loses(before: &Sample, now: &Sample) -> bool {
    let sent_again = |it| now.since(before, it).unwrap_or(0) > 0;
    sent_again(Variable::TotalRetrans)
        || sent_again(Variable::BytesRetrans)
        || now.get(Variable::CaState).is_some_and(|state| state >= RECOVERY)
}

/// The mean bytes between both ends by Little's law: the rate of acknowledgements while the connection was busy, times
/// the smoothed round trip. A peer's window holds these and what the peer has not read. `None`: nothing came back, as
/// in an outage, or the kernel does not say.
fn bytes_on_the_path(before: &Sample, now: &Sample, busy: u64) -> Option<u128> {
    let acknowledged = now.since(before, Variable::BytesAcked).filter(|bytes| *bytes > 0)?;
    let round_trip = before.get(Variable::Rtt)?.max(now.get(Variable::Rtt)?);
    (busy > 0).then(|| u128::from(acknowledged) * u128::from(round_trip) / u128::from(busy))
}

/// True if bytes wait although the congestion window admits more than the peer's.
fn congestion_window_is_wider(sample: &Sample) -> bool {
    let congestion = sample.get(Variable::SndCwnd).zip(sample.get(Variable::SndMss));
    congestion.zip(sample.get(Variable::SndWnd)).is_some_and(|((segments, segment), window)| {
        segments.saturating_mul(segment) > window
            && sample.get(Variable::NotsentBytes).is_some_and(|bytes| bytes > 0)
    })
}

/// True if what is delivered in the least round trip nearly fills the peer's window: a paced sender (BBR) takes its
/// estimate of the path from such a window, and spreads it over the round trip, so that the kernel counts it as
/// window-limited for a part of the time only.
fn fills_the_window_each_round_trip(sample: &Sample) -> bool {
    let window = sample.get(Variable::SndWnd).filter(|window| *window > 0);
    let delivered = sample.get(Variable::DeliveryRate).zip(sample.get(Variable::MinRtt));
    window.zip(delivered).is_some_and(|(window, (rate, round_trip))| {
        rate.saturating_mul(round_trip) / 1_000_000 >= window / 10 * 8
    })
}

/// True if acknowledgements arrive at nine tenths of the bound or faster.
fn reaches_its_bound(sample: &Sample) -> bool {
    let (bound, rate) = (sample.get(Variable::MaxPacingRate), sample.get(Variable::DeliveryRate));
    bound.zip(rate).is_some_and(|(bound, rate)| bound > 0 && rate >= bound / 10 * 9)
}

/// In the order of [`Limit`].
const LIMITS: [Limit; 7] = [
    Limit::Application,
    Limit::ReceiveWindow,
    Limit::Receiver,
    Limit::SendBuffer,
    Limit::NetworkLoss,
    Limit::CongestionWindow,
    Limit::Pacing,
];

/// Of a window that no unread bytes fill, 84 to 101 % were on the path; at a disk of a third of the path's rate, 23 to
/// 50 %.
const MOSTLY: (u128, u128) = (2, 3);

/// `TCP_CA_Recovery`; above it is only `TCP_CA_Loss`.
const RECOVERY: u64 = 3;

/// A connection without news is recorded each second. A longer pause is one of the node.
pub(crate) const GAP: Micros = Micros::from_secs(5);

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;
    use proptest::prelude::*;

    use super::*;

    /// Ten looks, 100 ms apart, in each of which the counters grow by these figures.
    fn trace(grows: &[(Variable, u64)], stands: &[(Variable, u64)]) -> Vec<Sample> {
        let look = |index: u64| {
            let mut sample = Sample::empty(WallMicros(index as i64 * 100_000));
            grows.iter().for_each(|(variable, by)| sample.set(*variable, by * index));
            stands.iter().for_each(|(variable, value)| sample.set(*variable, *value));
            sample
        };
        (0..10).map(look).collect()
    }

    fn leading(samples: &[Sample]) -> (Limit, f64) {
        let verdict = verdict(samples, "site").unwrap();
        let whole: f64 = verdict.shares.iter().map(|share| share.share).sum();
        assert!((whole - 1.0).abs() < 1e-9 && verdict.shares.len() == LIMITS.len());
        assert!(verdict.sentence.contains(&format!("{:.0} %", verdict.shares[0].share * 100.0)));
        (verdict.leading, (verdict.shares[0].share * 100.0).round())
    }

    const BUSY: (Variable, u64) = (Variable::BusyTime, 90_000);

    #[test]
    fn each_limit_is_named() {
        assert_eq!(leading(&trace(&[(Variable::BusyTime, 20_000)], &[])), (Limit::Application, 80.0));
        let window = [BUSY, (Variable::RwndLimited, 70_000)];
        assert_eq!(leading(&trace(&window, &[(Variable::SndWnd, 4_000)])), (Limit::ReceiveWindow, 70.0));
        assert_eq!(leading(&trace(&window, &[])), (Limit::ReceiveWindow, 70.0));
        assert_eq!(
            leading(&trace(&[BUSY, (Variable::SndbufLimited, 80_000)], &[])),
            (Limit::SendBuffer, 80.0)
        );
        assert_eq!(leading(&trace(&[BUSY, (Variable::TotalRetrans, 1)], &[])), (Limit::NetworkLoss, 90.0));
        assert_eq!(leading(&trace(&[BUSY], &[(Variable::CaState, 4)])), (Limit::NetworkLoss, 90.0));
        assert_eq!(leading(&trace(&[BUSY], &[])), (Limit::CongestionWindow, 90.0));
        let bound = [(Variable::MaxPacingRate, 1_000), (Variable::DeliveryRate, 905)];
        assert_eq!(leading(&trace(&[BUSY], &bound)), (Limit::Pacing, 90.0));
        let below = [(Variable::MaxPacingRate, 1_000), (Variable::DeliveryRate, 805)];
        assert_eq!(leading(&trace(&[BUSY], &below)), (Limit::CongestionWindow, 90.0));
    }

    #[test]
    fn a_paced_sender_that_fills_the_window_in_each_round_trip_is_limited_by_it() {
        // 16,000 bytes in 30 ms, as BBR sends them.
        let paced = |window, cwnd, rate, waits| {
            let stands = [
                (Variable::SndWnd, window),
                (Variable::SndCwnd, cwnd),
                (Variable::SndMss, 1_448),
                (Variable::MinRtt, 30_000),
                (Variable::DeliveryRate, rate),
                (Variable::NotsentBytes, waits),
            ];
            leading(&trace(&[BUSY, (Variable::RwndLimited, 40_000)], &stands)).0
        };
        assert_eq!(paced(16_000, 22, 500_000, 9), Limit::ReceiveWindow);
        assert_eq!(paced(16_000, 22, 300_000, 9), Limit::CongestionWindow, "half of the window moves");
        assert_eq!(
            paced(16_000, 9, 500_000, 9),
            Limit::CongestionWindow,
            "the congestion window is narrower"
        );
        assert_eq!(paced(16_000, 22, 500_000, 0), Limit::CongestionWindow, "nothing waits");
    }

    #[test]
    fn a_window_that_closes_is_the_receivers() {
        let mut samples = trace(&[BUSY, (Variable::RwndLimited, 90_000)], &[(Variable::SndMss, 1_448)]);
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.set(Variable::SndWnd, [64_000, 40_000, 9_000, 0, 0, 0, 0, 0, 0, 0][index]);
        }
        assert_eq!(leading(&samples), (Limit::Receiver, 80.0));
        // One that grows from a small one is not: it was never wider.
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.set(Variable::SndWnd, 10_000 << index);
        }
        assert_eq!(leading(&samples), (Limit::ReceiveWindow, 90.0));
    }

    #[test]
    fn a_window_that_is_filled_by_unread_bytes_is_the_receivers() {
        // 180,000 bytes in each busy 90 ms: 100,000 in a round trip of 50 ms.
        let reading = |window, acknowledged, loss| {
            let grows = [
                BUSY,
                (Variable::RwndLimited, 50_000),
                (Variable::BytesAcked, acknowledged),
                (Variable::TotalRetrans, loss),
            ];
            let stands = [
                (Variable::SndWnd, window),
                (Variable::Rtt, 50_000),
                (Variable::SndCwnd, 300),
                (Variable::SndMss, 1_448),
                (Variable::NotsentBytes, 9),
            ];
            leading(&trace(&grows, &stands))
        };
        assert_eq!(reading(190_000, 180_000, 0), (Limit::Receiver, 90.0), "the sender's pauses are its too");
        assert_eq!(reading(110_000, 180_000, 0), (Limit::ReceiveWindow, 50.0), "the path holds the window");
        assert_eq!(reading(190_000, 0, 0), (Limit::ReceiveWindow, 50.0), "an outage is not a slow reader");
        assert_eq!(
            reading(900_000, 180_000, 0),
            (Limit::Receiver, 50.0),
            "the congestion window is narrower"
        );
        assert_eq!(reading(190_000, 180_000, 1).0, Limit::Receiver, "loss has the rest of the time");
    }

    #[test]
    fn the_regrowth_after_a_loss_belongs_to_it() {
        let mut samples = trace(&[BUSY], &[(Variable::SndSsthresh, 20)]);
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.set(Variable::TotalRetrans, u64::from(index >= 3));
            sample.set(Variable::SndCwnd, if index < 3 { 40 } else { 1 << (index - 3) });
        }
        let shares = verdict(&samples, "site").unwrap().shares;
        let of = |limit| shares.iter().find(|share| share.limit == limit).unwrap().share;
        // From the third look on, until the window is 32 at the eighth.
        assert!((of(Limit::NetworkLoss) - 5.0 * 0.9 / 9.0).abs() < 1e-9, "{shares:?}");
        assert!((of(Limit::CongestionWindow) - 4.0 * 0.9 / 9.0).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn a_kernel_that_does_not_measure_is_read_by_what_waits() {
        assert_eq!(leading(&trace(&[], &[(Variable::Unacked, 3)])), (Limit::CongestionWindow, 100.0));
        assert_eq!(leading(&trace(&[], &[(Variable::Unacked, 0)])), (Limit::Application, 100.0));
    }

    #[test]
    fn samples_that_can_not_be_compared_are_left_out() {
        assert_eq!(verdict(&[], "site"), None);
        let mut samples = trace(&[BUSY], &[]);
        samples.reverse();
        assert_eq!(verdict(&samples, "site"), None, "a clock that was set back");
        let mut apart = trace(&[BUSY], &[]);
        apart.truncate(2);
        apart[1].at = WallMicros(6_000_000);
        assert_eq!(verdict(&apart, "site"), None, "the node was away");
    }

    proptest! {
        #[test]
        fn shares_are_whole_whatever_the_kernel_says(
            infos in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 240)), 0..12),
        ) {
            let mut at = 0;
            let read = |(later, info): &(u32, Vec<u8>)| {
                at += i64::from(later % 7_000_000);
                Sample::read(WallMicros(at), info)
            };
            let samples: Vec<Sample> = infos.iter().map(read).collect();
            if let Some(verdict) = verdict(&samples, "site") {
                let whole: f64 = verdict.shares.iter().map(|share| share.share).sum();
                prop_assert!((whole - 1.0).abs() < 1e-9);
                prop_assert!(verdict.shares.iter().all(|it| (0.0..=1.0).contains(&it.share)));
                prop_assert_eq!(verdict.leading, verdict.shares[0].limit);
            }
        }
    }
}
