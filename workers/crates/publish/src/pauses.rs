use std::time::Duration;

/// The pause before the next connection: 1 s, 2 s, 4 s and at most a minute, of which each site takes another part.
pub(crate) fn pause(failures: u32) -> Duration {
    let longest = Duration::from_secs(1u64.checked_shl(failures).unwrap_or(LONGEST_S).clamp(1, LONGEST_S));
    let mut random = [0; 1];
    // Without randomness, pauses are equal.
    let _ = getrandom::fill(&mut random);
    longest / 2 + longest / 2 * u32::from(random[0]) / 255
}

const LONGEST_S: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        for (failures, seconds) in [(0, 1), (1, 2), (3, 8), (6, 60), (63, 60), (64, 60), (u32::MAX, 60)] {
            let (found, most) = (pause(failures), Duration::from_secs(seconds));
            assert!(found >= most / 2 && found <= most, "{failures}: {found:?}");
        }
    }
}
