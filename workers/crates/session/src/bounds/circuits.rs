//! The bounds of measurements of circuits between two sites.
use super::number;
use crate::{CircuitProbe, CircuitProbed, CircuitRate};

/// Checks an order to measure a circuit, before it becomes packets.
pub(super) fn check_probe(probe: &CircuitProbe) -> Result<(), String> {
    let Some(train) = &probe.train else { return Ok(()) };
    number("rate_bps", "a train", train.rate_bps)?;
    within("duration_ms", train.duration_ms, 1, LONGEST_TRAIN_MS)?;
    within("frame_bytes", train.frame_bytes, SMALLEST_FRAME_BYTES, LARGEST_FRAME_BYTES)
}

/// Checks the result of a measurement.
pub(super) fn check_probed(probed: &CircuitProbed) -> Result<(), String> {
    if let Some(reach) = &probed.reach {
        within("received", reach.received, 0, reach.sent)?;
        let (least, median, greatest) = reach.round_trip_us.unwrap_or_default();
        numbers("round_trip_us", &[least, median, greatest])?;
    }
    probed.rate.as_ref().map_or(Ok(()), check_rate)
}

fn check_rate(rate: &CircuitRate) -> Result<(), String> {
    let bins = [rate.bins_bps.len(), rate.sent_bins_bps.len(), rate.lost_ppm_by_bin.len()];
    if let Some(many) = bins.into_iter().find(|bins| *bins > MOST_BINS) {
        return Err(format!("a train has {many} bins; the longest has {MOST_BINS}"));
    }
    let (median, p95, most) = rate.delay_rise_us;
    numbers("delay_rise_us", &[median, p95, most])?;
    numbers("bins_bps", &rate.bins_bps)?;
    numbers("sent_bins_bps", &rate.sent_bins_bps)?;
    numbers("rate", &[rate.offered_bps, rate.received_bps, rate.others_bps])?;
    within("received", rate.received, 0, rate.sent)?;
    within("burst", rate.burst.1, 0, rate.burst.0)?;
    rate.lost_ppm_by_bin.iter().try_for_each(|lost| within("lost_ppm_by_bin", *lost, 0, MILLION))
}

fn numbers(field: &str, values: &[u64]) -> Result<(), String> {
    values.iter().try_for_each(|value| number(field, "a train", *value))
}

fn within(field: &str, value: u32, least: u32, most: u32) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("`{field}` of a train is {value}, not within {least} and {most}"))
}

const LONGEST_TRAIN_MS: u32 = 2_000;
/// A probe with its secret, and the largest Ethernet frame with its tunnel.
const SMALLEST_FRAME_BYTES: u32 = 128;
const LARGEST_FRAME_BYTES: u32 = 16_384;
/// Twice the longest train, in bins of 50 ms.
const MOST_BINS: usize = 80;
const MILLION: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CircuitReach, CircuitTrain};

    fn probe(change: impl FnOnce(&mut CircuitTrain)) -> Result<(), String> {
        let mut train = CircuitTrain { rate_bps: 1, duration_ms: 600, out: true, frame_bytes: 1_464 };
        change(&mut train);
        check_probe(&CircuitProbe { lease: 1, run: 1, train: Some(train) })
    }

    fn rate(change: impl FnOnce(&mut CircuitRate)) -> Result<(), String> {
        let mut rate = CircuitRate { sent: 9, received: 9, bins_bps: vec![5; 80], ..CircuitRate::default() };
        change(&mut rate);
        check_probed(&CircuitProbed { lease: 1, run: 1, reach: None, rate: Some(rate) })
    }

    #[test]
    fn an_order_is_a_short_train_of_frames() {
        assert_eq!(probe(|_| {}), Ok(()));
        assert_eq!(check_probe(&CircuitProbe { lease: 1, run: 1, train: None }), Ok(()));
        assert!(probe(|train| train.rate_bps = u64::MAX).unwrap_err().contains("`rate_bps` of a train"));
        assert!(probe(|train| train.duration_ms = 2_001).unwrap_err().contains("not within 1 and 2000"));
        assert!(probe(|train| train.duration_ms = 0).is_err());
        assert!(probe(|train| train.frame_bytes = 0).is_err());
        assert!(probe(|train| train.frame_bytes = 16_385).is_err());
    }

    #[test]
    fn a_result_has_no_more_arrivals_than_departures_and_few_bins() {
        assert_eq!(rate(|_| {}), Ok(()));
        assert!(rate(|rate| rate.received = 10).unwrap_err().contains("`received` of a train is 10"));
        assert!(rate(|rate| rate.burst = (64, 65)).is_err());
        assert!(rate(|rate| rate.bins_bps.push(0)).unwrap_err().contains("81 bins"));
        assert!(rate(|rate| rate.sent_bins_bps = vec![u64::MAX]).is_err());
        assert!(rate(|rate| rate.lost_ppm_by_bin = vec![1_000_001]).is_err());
        assert!(rate(|rate| rate.others_bps = u64::MAX).is_err());
        assert!(rate(|rate| rate.delay_rise_us.2 = u64::MAX).is_err());
    }

    #[test]
    fn replies_are_no_more_than_requests() {
        let reach = |received, greatest| {
            let round_trip_us = Some((1, 1, greatest));
            let reach = Some(CircuitReach { sent: 5, received, round_trip_us });
            check_probed(&CircuitProbed { lease: 1, run: 1, reach, rate: None })
        };
        assert_eq!(reach(5, 9), Ok(()));
        assert!(reach(6, 9).is_err() && reach(5, u64::MAX).is_err());
        assert_eq!(check_probed(&CircuitProbed { lease: 1, run: 1, reach: None, rate: None }), Ok(()));
    }
}
