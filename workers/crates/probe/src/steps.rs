//! The steps of a probe, and what may be asked.
use downburst_model::Micros;

/// A steady rate for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bits per second of Ethernet frames, as the rate of a multicast leg.
    pub rate_bps: u64,
    /// Its length in time.
    pub duration: Micros,
}

impl Step {
    /// The number of packets of a step with frames of this size.
    pub fn packets(&self, frame_bytes: u64) -> u64 {
        let bits = u128::from(self.rate_bps) * u128::from(self.duration.0) / 1_000_000;
        u64::try_from(bits / (u128::from(frame_bytes.max(1)) * 8)).unwrap_or(u64::MAX)
    }
}

/// The bytes of an Ethernet frame around a UDP payload: header 14, IPv4 20 or IPv6 40, UDP 8, trailer 4, as the rates
/// of multicast legs count them.
pub fn frame_bytes(payload_bytes: u64, is_ipv6: bool) -> u64 {
    payload_bytes.saturating_add(if is_ipv6 { 66 } else { 46 })
}

/// Checks the size of a probe's packets; the error is one sentence.
///
/// # Errors
/// It is not within 64 and 1,472 bytes.
pub fn check_packet(packet_bytes: u64) -> Result<(), String> {
    if (SMALLEST_PACKET_BYTES..=LARGEST_PACKET_BYTES).contains(&packet_bytes) {
        return Ok(());
    }
    Err(format!(
        "`packet_bytes` is {packet_bytes}; a probe's packet has {SMALLEST_PACKET_BYTES} to {LARGEST_PACKET_BYTES} bytes"
    ))
}

/// Checks the steps of a sweep; the error is one sentence.
///
/// # Errors
/// They do not ascend, are too many, too short or too long, or have too few packets to tell 0.1 % of loss from none.
pub fn check_sweep(steps: &[Step], packet_bytes: u64) -> Result<(), String> {
    if !(1..=MOST_STEPS).contains(&steps.len()) {
        return Err(format!("a sweep has {} steps; it takes 1 to {MOST_STEPS}", steps.len()));
    }
    if let Some([_, step]) = steps.windows(2).find_map(|pair| match pair {
        [lower, higher] if higher.rate_bps <= lower.rate_bps => Some([lower, higher]),
        _ => None,
    }) {
        return Err(format!(
            "the step of {} b/s does not exceed the one before; sort the steps by rate",
            step.rate_bps
        ));
    }
    steps.iter().try_for_each(|step| check_sweep_step(step, packet_bytes))
}

fn check_sweep_step(step: &Step, packet_bytes: u64) -> Result<(), String> {
    if !(SHORTEST_STEP..=LONGEST_SWEEP_STEP).contains(&step.duration) {
        let millis = step.duration.0 / 1_000;
        return Err(format!("a step of a sweep takes {millis} ms; it takes 100 to 60000 ms"));
    }
    let packets = step.packets(frame_bytes(packet_bytes, true));
    if packets < FEWEST_PACKETS {
        return Err(format!(
            "the step of {} b/s has {packets} packets; fewer than {FEWEST_PACKETS} do not tell a loss of 0.1 % from \
             none: make it longer or its packets smaller",
            step.rate_bps
        ));
    }
    Ok(())
}

/// The bytes of the smallest packet; the header takes 40.
pub const SMALLEST_PACKET_BYTES: u64 = 64;
/// The bytes of the largest packet, the payload of an Ethernet frame of 1,500 bytes.
pub const LARGEST_PACKET_BYTES: u64 = 1_472;
/// The most steps that can be asked of a sweep.
pub const MOST_STEPS: usize = 64;
/// The shortest step.
pub const SHORTEST_STEP: Micros = Micros::from_millis(100);
/// The longest step of a sweep: one above the knee harms other traffic of the path.
pub const LONGEST_SWEEP_STEP: Micros = Micros::from_secs(60);
const FEWEST_PACKETS: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rate_bps: u64, millis: u64) -> Step {
        Step { rate_bps, duration: Micros::from_millis(millis) }
    }

    #[test]
    fn rates_count_whole_frames() {
        assert_eq!((frame_bytes(1_200, false), frame_bytes(1_200, true)), (1_246, 1_266));
        assert_eq!(step(8_000_000, 500).packets(1_000), 500);
        assert_eq!(step(u64::MAX, u64::MAX / 1_000).packets(0), u64::MAX);
    }

    #[test]
    fn a_sweep_ascends_in_steps_that_can_tell() {
        assert_eq!(check_sweep(&[step(10_000_000, 1_000), step(20_000_000, 1_000)], 1_200), Ok(()));
        let refusal = |steps: &[Step]| check_sweep(steps, 1_200).unwrap_err();
        assert!(refusal(&[]).contains("0 steps"));
        assert!(refusal(&[step(10_000_000, 1_000); 65]).contains("65 steps"));
        assert!(refusal(&[step(10_000_000, 1_000); 2]).contains("does not exceed"));
        assert!(refusal(&[step(10_000_000, 99)]).contains("99 ms"));
        assert!(refusal(&[step(10_000_000, 60_001)]).contains("60001 ms"));
        assert!(refusal(&[step(500_000, 1_000)]).contains("has 49 packets"));
    }

    #[test]
    fn packets_fit_into_a_frame_and_have_room_for_the_header() {
        assert!([64, 1_200, 1_472].map(check_packet).iter().all(Result::is_ok));
        assert!([0, 63, 1_473, u64::MAX].map(check_packet).iter().all(Result::is_err));
    }
}
