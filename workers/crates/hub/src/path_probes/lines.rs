//! The lines of probes of paths.
use downburst_model::{Micros, SiteName};
use downburst_probe::{Control, SHORTEST_STEP, Step, check_packet, check_record, check_sweep, frame_bytes};
use downburst_session::{LONGEST_PROBE_STEP, ProbeTcp};
use serde::{Deserialize, Serialize};

use super::stacks::{TrialEndedLine, TrialLine, check_control, check_trials};
use crate::circuits::Direction;

/// A probe of the path between this node and a site. Rates are bits per second of Ethernet frames.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PathProbeLine {
    /// Its name, never given twice.
    pub probe: String,
    /// The site.
    pub site: SiteName,
    /// The kind of measurement.
    pub kind: PathProbeKind,
    /// From this node to the site, or from there.
    pub direction: Direction,
    /// The UDP payload of each packet, or the bytes of each record over TCP.
    #[serde(default = "default_packet_bytes")]
    pub packet_bytes: u64,
    /// The steps, in their order; none of `stacks`.
    #[serde(default)]
    pub steps: Vec<ProbeStepLine>,
    /// By UDP or TCP; `stacks` are always by TCP.
    #[serde(default)]
    pub transport: ProbeTransport,
    /// The congestion control of a probe over TCP; `None`: the default of the sender's kernel.
    #[serde(default)]
    pub congestion: Option<String>,
    /// The limit of all flows of one direction of `stacks`.
    #[serde(default)]
    pub rate_bps: u64,
    /// The trials of `stacks`, in their order.
    #[serde(default)]
    pub trials: Vec<TrialLine>,
    /// Whether each second is reported.
    #[serde(default)]
    pub seconds: bool,
    /// The relay that takes the part of this node, where the site's session comes by it.
    #[serde(default)]
    pub relay: Option<SiteName>,
}

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathProbeKind {
    /// A sweep of rates, for the highest that the path carries.
    Knee,
    /// One constant rate.
    Cbr,
    /// One constant rate for hours or days.
    Soak,
    /// Greedy TCP flows beside each other.
    Stacks,
}

/// The protocol of a probe's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeTransport {
    /// Datagrams.
    #[default]
    Udp,
    /// Records within a connection.
    Tcp,
}

/// An asked step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ProbeStepLine {
    /// Its rate.
    pub rate_bps: u64,
    /// Its length in time.
    pub duration_ms: u64,
}

impl PathProbeLine {
    /// Checks everything that can be checked without the site; the error is one sentence.
    ///
    /// # Errors
    /// A name, a size or a step is out of its bounds.
    pub fn check(&self) -> Result<(), String> {
        self.check_name()?;
        if self.relay.is_some() && self.tcp().is_some() {
            return Err("a probe from a relay is by UDP; leave out `relay` or the transport".to_owned());
        }
        if self.kind == PathProbeKind::Stacks {
            check_rate("`rate_bps`", self.rate_bps)?;
            return check_trials(&self.trials);
        }
        self.check_transport()?;
        self.steps.iter().try_for_each(|step| check_rate("`rate_bps` of a step", step.rate_bps))?;
        match self.kind {
            PathProbeKind::Knee => check_sweep(&self.asked(), self.packet_bytes),
            PathProbeKind::Cbr | PathProbeKind::Soak | PathProbeKind::Stacks => self.check_only_step(),
        }
    }

    /// The asked steps.
    pub fn asked(&self) -> Vec<Step> {
        let step = |step: &ProbeStepLine| Step {
            rate_bps: step.rate_bps,
            duration: Micros::from_millis(step.duration_ms),
        };
        self.steps.iter().map(step).collect()
    }

    /// The highest asked rate.
    pub fn most_bps(&self) -> u64 {
        match self.kind {
            PathProbeKind::Stacks => self.rate_bps,
            _ => self.steps.iter().map(|step| step.rate_bps).max().unwrap_or(0),
        }
    }

    /// Whether its packets go by TCP; with the asked congestion control of its records.
    pub fn tcp(&self) -> Option<ProbeTcp> {
        let trials = self.kind == PathProbeKind::Stacks;
        let control = self.congestion.as_deref().and_then(Control::parse).filter(|_| !trials);
        (trials || self.transport == ProbeTransport::Tcp).then_some(ProbeTcp { trials, control })
    }

    fn check_transport(&self) -> Result<(), String> {
        match (self.transport, self.kind) {
            (ProbeTransport::Tcp, PathProbeKind::Knee) => {
                Err("a sweep is by UDP: TCP finds its own rate; use `cbr`, `soak` or `stacks`".to_owned())
            }
            (ProbeTransport::Tcp, _) => {
                self.congestion.iter().try_for_each(|name| check_control(name))?;
                check_record(self.packet_bytes)
            }
            (ProbeTransport::Udp, _) if self.congestion.is_some() => {
                Err("`congestion` is of a probe over TCP; add \"transport\": \"tcp\"".to_owned())
            }
            (ProbeTransport::Udp, _) => check_packet(self.packet_bytes),
        }
    }

    fn check_name(&self) -> Result<(), String> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=64).contains(&self.probe.len()) && self.probe.bytes().all(is_word) {
            return Ok(());
        }
        Err("`probe` is no name; it has 1 to 64 of the characters a to z, 0 to 9 and -".to_owned())
    }

    fn check_only_step(&self) -> Result<(), String> {
        let [step] = self.asked()[..] else {
            return Err(format!("a probe at one rate has one step, not {}", self.steps.len()));
        };
        if step.rate_bps < frame_bytes(self.packet_bytes, true) * 8 {
            return Err(format!(
                "a step of {} b/s has less than one packet a second; raise its rate",
                step.rate_bps
            ));
        }
        if (SHORTEST_STEP..=LONGEST_PROBE_STEP).contains(&step.duration) {
            return Ok(());
        }
        let (shortest_ms, longest_ms) = (SHORTEST_STEP.0 / 1_000, LONGEST_PROBE_STEP.0 / 1_000);
        Err(format!("`duration_ms` is {}; it is {shortest_ms} to {longest_ms}", step.duration.0 / 1_000))
    }
}

fn check_rate(field: &str, rate_bps: u64) -> Result<(), String> {
    if (1..=RATE_BPS_MAX).contains(&rate_bps) {
        return Ok(());
    }
    Err(format!("{field} is {rate_bps}; it is 1 to {RATE_BPS_MAX}"))
}

/// One second of a probe.
#[derive(Debug, Serialize)]
pub struct ProbeSecondLine {
    /// The probe.
    pub probe: String,
    /// The second, from 0.
    pub second: u64,
    /// The packets whose numbers went by.
    pub sent: u64,
    /// Those that arrived.
    pub received: u64,
    /// Those that the path lost.
    pub lost: u64,
    /// Those that the receiver's own host dropped.
    pub receiver_dropped: u64,
    /// Those that arrived after a later one.
    pub reordered: u64,
    /// Further arrivals of a packet.
    pub duplicated: u64,
    /// The bytes of frames that arrived.
    pub bytes: u64,
    /// One-way delays by clocks that agree; `None`: the offset of the clocks is not known.
    pub delay_us: Option<DelayLine>,
    /// The interarrival jitter.
    pub jitter_us: Option<u64>,
    /// The greatest error of the delays.
    pub delay_bound_us: Option<u64>,
}

/// The end of a probe, with its result.
#[derive(Debug, Serialize)]
pub struct ProbeEndedLine {
    /// The probe.
    pub probe: String,
    /// `done`, `stopped` or `failed`.
    pub outcome: &'static str,
    /// One sentence, unless it is done.
    pub reason: Option<String>,
    /// The greatest lateness of the sender behind its own schedule.
    pub sender_lag_us: u64,
    /// The steps that were run, in their order.
    pub steps: Vec<super::StepLine>,
    /// The highest rate that the path carries without loss.
    pub knee_bps: Option<u64>,
    /// One sentence, if it is not known or a lower limit.
    pub knee_reason: Option<String>,
    /// The runs of lost packets; by TCP, those of records that came late.
    pub losses: u64,
    /// The congestion control that the sender's kernel used; `None` by UDP, and of `stacks`.
    pub congestion: Option<String>,
    /// The segments that the sender's kernel repeated; `None` by UDP, and of `stacks`.
    pub retransmits: Option<u64>,
    /// The trials that were run; `None` of other kinds.
    pub trials: Option<Vec<TrialEndedLine>>,
    /// The delay after each of the first losses; `None` of a sweep and of `stacks`.
    pub excess: Option<Vec<ExcessLine>>,
    /// The greatest error of the delays.
    pub delay_bound_us: Option<u64>,
}

/// Delays in microseconds. Negative ones show that a clock is wrong by more than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DelayLine {
    /// The least.
    pub min: i64,
    /// The median.
    pub median: i64,
    /// The 99th percentile.
    pub p99: i64,
    /// The greatest.
    pub max: i64,
}

/// The delay after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExcessLine {
    /// Since the first arrival.
    pub at_us: u64,
    /// The packets lost.
    pub lost: u64,
    /// The greatest delay above the least one.
    pub excess_us: u64,
    /// The time until it was below 1 ms; `None`: it has not returned.
    pub recovery_us: Option<u64>,
    /// The highest rate of arrivals after the largest excess; `None` by UDP.
    pub peak_bps: Option<u64>,
    /// The frames that waited at the largest excess; `None` by UDP.
    pub backlog_bytes: Option<u64>,
    /// The recovery time by the formula; `None` by UDP, and where the peak does not exceed the rate.
    pub predicted_us: Option<u64>,
}

const fn default_packet_bytes() -> u64 {
    1_200
}

/// A thousand terabits per second.
const RATE_BPS_MAX: u64 = 1_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(kind: &str, change: impl FnOnce(&mut Value)) -> Result<(), String> {
        let mut line = json!({
            "probe": "p-1", "site": "oslo", "kind": kind, "direction": "out",
            "steps": [{"rate_bps": 10_000_000, "duration_ms": 1_000}],
        });
        change(&mut line);
        serde_json::from_value::<PathProbeLine>(line).unwrap().check()
    }

    #[test]
    fn a_probe_has_a_name_and_steps_within_bounds() {
        for kind in ["knee", "cbr", "soak"] {
            assert_eq!(checked(kind, |_| {}), Ok(()));
            assert!(checked(kind, |line| line["probe"] = json!("")).unwrap_err().contains("`probe`"));
            assert!(checked(kind, |line| line["probe"] = json!("A")).is_err());
            assert!(
                checked(kind, |line| line["packet_bytes"] = json!(63))
                    .unwrap_err()
                    .contains("`packet_bytes`")
            );
            assert!(checked(kind, |line| line["steps"] = json!([])).is_err());
            assert!(checked(kind, |line| line["steps"][0]["rate_bps"] = json!(0)).is_err());
            assert!(checked(kind, |line| line["steps"][0]["duration_ms"] = json!(99)).is_err());
            assert!(checked(kind, |line| line["steps"][0]["duration_ms"] = json!(u64::MAX)).is_err());
        }
    }

    #[test]
    fn only_a_sweep_has_several_steps_and_only_a_soak_is_long() {
        let two = |line: &mut Value| {
            line["steps"] = json!([
                {"rate_bps": 10_000_000, "duration_ms": 1_000}, {"rate_bps": 20_000_000, "duration_ms": 1_000}
            ]);
        };
        assert_eq!(checked("knee", two), Ok(()));
        assert!(checked("cbr", two).unwrap_err().contains("one step, not 2"));
        let slow = |line: &mut Value| line["steps"][0]["rate_bps"] = json!(10_127);
        assert!(checked("cbr", slow).unwrap_err().contains("less than one packet"));
        let day = |line: &mut Value| line["steps"][0]["duration_ms"] = json!(86_400_000);
        assert_eq!((checked("soak", day), checked("knee", day).is_err()), (Ok(()), true));
    }

    #[test]
    fn only_a_constant_rate_goes_by_tcp_with_a_congestion_control() {
        let tcp = |line: &mut Value| line["transport"] = json!("tcp");
        let bbr = |line: &mut Value| {
            tcp(line);
            line["congestion"] = json!("bbr");
        };
        assert_eq!((checked("cbr", tcp), checked("soak", bbr)), (Ok(()), Ok(())));
        assert!(checked("knee", tcp).unwrap_err().contains("by UDP"));
        assert!(checked("cbr", |line| line["congestion"] = json!("bbr")).unwrap_err().contains("over TCP"));
        let unknown = |line: &mut Value| {
            tcp(line);
            line["congestion"] = json!("B");
        };
        assert!(checked("cbr", unknown).unwrap_err().contains("names no congestion control"));
        let large = |line: &mut Value| {
            tcp(line);
            line["packet_bytes"] = json!(1_449);
        };
        assert!(checked("cbr", large).unwrap_err().contains("a record"));
    }

    #[test]
    fn stacks_have_trials_and_a_limit_but_no_steps() {
        let stacks = |change: fn(&mut Value)| {
            checked("stacks", |line| {
                line["steps"].take();
                line.as_object_mut().unwrap().remove("steps");
                line["rate_bps"] = json!(1_000_000);
                line["trials"] = json!([{"flows": ["cubic", "bbr"], "reverse": [], "duration_ms": 500}]);
                change(line);
            })
        };
        assert_eq!(stacks(|_| {}), Ok(()));
        assert!(stacks(|line| line["rate_bps"] = json!(0)).unwrap_err().contains("`rate_bps`"));
        assert!(stacks(|line| line["trials"] = json!([])).unwrap_err().contains("`trials`"));
    }
}
