//! Measurements of a circuit: what is asked for, and the answers.
use downburst_model::SiteName;
use serde::Serialize;

use super::lease::Lease;
use super::lines::{Direction, ProbeKind, ProbeLine};
use crate::jobs::Failure;

/// The work of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOrder {
    /// Whether the other end answers.
    Reach,
    /// The rate at which a train arrives.
    Rate(Train),
}

/// A train of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Ethernet-frame bits per second, on the circuit's port.
    pub rate_bps: u64,
    /// Its length in time.
    pub duration_ms: u64,
    /// From the hub to the other end.
    pub out: bool,
    /// The size of one packet on the port.
    pub frame_bytes: u32,
}

/// The answer to a probe.
#[derive(Debug, Serialize)]
pub struct ProbeAnswer<P> {
    /// The measurement.
    pub probe: P,
}

/// The measurement of the reach; `R` is the driver's.
#[derive(Debug, Serialize)]
pub struct ReachAnswer<R> {
    #[serde(flatten)]
    reach: R,
    kind: ProbeKind,
    site: SiteName,
}

/// The measurement of the rate; `R` is the driver's, and `T` its measurement of the round trip.
#[derive(Debug, Serialize)]
pub struct RateAnswer<R, T> {
    #[serde(flatten)]
    rate: R,
    kind: ProbeKind,
    site: SiteName,
    direction: Direction,
    round_trip_us: T,
    others_bps: u64,
}

/// The surroundings of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainMeasured<T> {
    /// The round trip before it.
    pub round_trip_us: T,
    /// The rate of other traffic beside it.
    pub others_bps: u64,
}

impl ProbeLine {
    /// The refusal if the circuit has no end up at the site.
    pub fn not_up(&self) -> Failure {
        let Self { lease, site, .. } = self;
        Failure::new("not-up", format!("lease {lease} is not up at {site}; bring it up first"))
    }

    /// The work.
    ///
    /// # Errors
    ///
    /// A probe of the rate has none.
    pub fn order(&self, lease: &Lease) -> Result<ProbeOrder, Failure> {
        if self.kind == ProbeKind::Reach {
            return Ok(ProbeOrder::Reach);
        }
        if self.rate_bps == 0 || self.duration_ms == 0 {
            return Err(Failure::bad_request("a probe of a rate needs rate_bps and duration_ms"));
        }
        Ok(ProbeOrder::Rate(Train {
            rate_bps: self.rate_bps,
            duration_ms: self.duration_ms,
            out: self.direction != Some(Direction::In),
            frame_bytes: lease.probe_frame_bytes(),
        }))
    }

    /// The answer to a probe of the reach.
    pub fn reach_answer<R: Serialize>(self, reach: R) -> ProbeAnswer<ReachAnswer<R>> {
        ProbeAnswer { probe: ReachAnswer { reach, kind: ProbeKind::Reach, site: self.site } }
    }

    /// The answer to a probe of the rate.
    pub fn rate_answer<R: Serialize, T: Serialize>(
        self,
        train: Train,
        rate: R,
        TrainMeasured { round_trip_us, others_bps }: TrainMeasured<T>,
    ) -> ProbeAnswer<RateAnswer<R, T>> {
        let direction = if train.out { Direction::Out } else { Direction::In };
        let (kind, site) = (ProbeKind::Rate, self.site);
        ProbeAnswer { probe: RateAnswer { rate, kind, site, direction, round_trip_us, others_bps } }
    }
}

impl Train {
    /// The bytes that the circuit carried in the train's direction, from its counters of bytes out and in.
    pub fn carried(&self, before: (u64, u64), after: (u64, u64)) -> u64 {
        if self.out { after.0.saturating_sub(before.0) } else { after.1.saturating_sub(before.1) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::held::tests::held;
    use super::*;

    fn line(fields: &[(&str, Value)]) -> ProbeLine {
        let mut line =
            json!({"lease": 17, "site": "oslo", "kind": "rate", "rate_bps": 5_000, "duration_ms": 200});
        for (name, value) in fields {
            line[*name] = value.clone();
        }
        serde_json::from_value(line).unwrap()
    }

    fn train(fields: &[(&str, Value)]) -> Train {
        match line(fields).order(&held(true).lease) {
            Ok(ProbeOrder::Rate(train)) => train,
            other => panic!("no train: {other:?}"),
        }
    }

    #[test]
    fn a_train_goes_out_unless_the_line_wants_the_other_way() {
        let out = train(&[]);
        assert_eq!(out, Train { rate_bps: 5_000, duration_ms: 200, out: true, frame_bytes: 1_464 });
        let into = train(&[("direction", json!("in"))]);
        assert!(!into.out && train(&[("direction", json!("out"))]).out);
        let carried = [out, into].map(|train| train.carried((10, 20), (15, 50)));
        assert_eq!(carried, [5, 30]);
        assert_eq!(out.carried((10, 20), (0, 0)), 0, "the circuit was recreated");
    }

    #[test]
    fn a_rate_needs_a_rate_and_a_time() {
        let lease = held(true).lease;
        for field in ["rate_bps", "duration_ms"] {
            assert!(line(&[(field, json!(0))]).order(&lease).is_err(), "{field}");
        }
        let reach = line(&[("kind", json!("reach")), ("rate_bps", json!(0))]);
        assert_eq!(reach.order(&lease), Ok(ProbeOrder::Reach));
        assert_eq!(reach.not_up().error, "lease 17 is not up at oslo; bring it up first");
    }

    #[test]
    fn answers_have_the_measurement_and_its_surroundings() {
        let measured = json!({"sent": 5});
        assert_eq!(
            serde_json::to_value(line(&[]).reach_answer(&measured)).unwrap(),
            json!({"probe": {"sent": 5, "kind": "reach", "site": "oslo"}})
        );
        let surroundings = TrainMeasured { round_trip_us: Some(9), others_bps: 8 };
        let into = train(&[("direction", json!("in"))]);
        assert_eq!(
            serde_json::to_value(line(&[]).rate_answer(into, &measured, surroundings)).unwrap(),
            json!({"probe": {
                "sent": 5, "kind": "rate", "site": "oslo", "direction": "in", "round_trip_us": 9, "others_bps": 8,
            }})
        );
    }
}
