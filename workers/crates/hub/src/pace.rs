//! The rate limit of a site, from its operator's settings: its access and the hours of the day.
use downburst_model::WallMicros;

use crate::sites::SiteLine;

/// The rate limit at a time, in bits per second; `None`: limited by the path alone.
pub fn pace_bps(line: &SiteLine, at: WallMicros) -> Option<u64> {
    let hour = at.0.div_euclid(HOUR_US).rem_euclid(24);
    let ceilings = &line.ceiling_bps_by_hour;
    let place = usize::try_from(hour).unwrap_or(0).checked_rem(ceilings.len());
    let ceiling = place.and_then(|place| ceilings.get(place)).copied();
    line.access_rate_bps.into_iter().chain(ceiling).filter(|limit| *limit > 0).min()
}

/// The hour of a limit's validity.
pub fn hour(at: WallMicros) -> i64 {
    at.0.div_euclid(HOUR_US)
}

const HOUR_US: i64 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_of_access_and_ceiling_counts() {
        let site = |access: Option<u64>, ceilings: Vec<u64>| -> SiteLine {
            serde_json::from_value(serde_json::json!({
                "site": "a", "credentials": [], "subscriptions": [], "active": true,
                "access_rate_bps": access, "ceiling_bps_by_hour": ceilings,
            }))
            .unwrap()
        };
        let at = |hour: i64| WallMicros(20_000 * 24 * HOUR_US + hour * HOUR_US + 5);
        assert_eq!(pace_bps(&site(None, vec![]), at(3)), None);
        assert_eq!(pace_bps(&site(Some(9), vec![]), at(3)), Some(9));
        let by_hour: Vec<u64> = (0..24).map(|hour| if hour < 12 { 5 } else { 0 }).collect();
        assert_eq!(pace_bps(&site(Some(9), by_hour.clone()), at(3)), Some(5));
        assert_eq!(pace_bps(&site(Some(9), by_hour.clone()), at(13)), Some(9), "0 is no ceiling");
        assert_eq!(pace_bps(&site(None, by_hour), at(13)), None);
    }
}
