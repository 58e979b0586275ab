//! The rate of a session's looks at its logs.
use downburst_model::Micros;

/// The interval at which a session looks at the logs: after each append if appends are few, and once for several of
/// them if they are many. A look costs the same for one product as for twenty.
#[derive(Debug, Default)]
pub struct LookPace {
    /// The time at which the allowance is full again.
    full_at: Micros,
}

impl LookPace {
    /// Takes a look if one is allowed now; otherwise returns the time of the next one.
    pub fn look(&mut self, now: Micros) -> Result<(), Micros> {
        let full_at = self.full_at.max(now).plus(LOOK_INTERVAL);
        let allowed_at = Micros(full_at.0.saturating_sub(LOOKS_AT_ONCE * LOOK_INTERVAL.0));
        if allowed_at > now {
            return Err(allowed_at);
        }
        self.full_at = full_at;
        Ok(())
    }
}

/// The shortest time between looks in a long series: a timer can keep it, and it is small compared with any path.
const LOOK_INTERVAL: Micros = Micros::from_millis(1);

/// The number of looks that are free after a silence: products that arrive in twos or threes are not held back.
const LOOKS_AT_ONCE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_free_at_a_low_rate_and_one_a_millisecond_at_a_high_one() {
        let mut pace = LookPace::default();
        assert!((0..100).all(|tick| pace.look(Micros::from_millis(10 * tick)).is_ok()));
        let (mut now, mut looks) = (Micros::from_secs(10), 0);
        while now < Micros::from_secs(11) {
            now = match pace.look(now) {
                Ok(()) => {
                    looks += 1;
                    now.plus(Micros(20))
                }
                Err(at) => at,
            };
        }
        assert!((1_000..=1_000 + LOOKS_AT_ONCE).contains(&looks), "{looks}");
        assert!(pace.look(Micros::from_secs(20)).is_ok());
    }
}
