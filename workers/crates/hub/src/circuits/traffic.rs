//! The traffic of circuits between two reports.
use std::collections::BTreeMap;

use downburst_model::SiteName;

use super::lines::CircuitTraffic;

/// The counters of each circuit at the last report: bytes of frames out and in since its creation.
#[derive(Debug, Default)]
pub struct CarriedBytes(BTreeMap<u32, (u64, u64)>);

impl CarriedBytes {
    /// The traffic of each circuit since the last call. `only_site` is the other end of a circuit that has one.
    pub fn since_last(
        &mut self,
        carried: BTreeMap<u32, (u64, u64)>,
        only_site: impl Fn(u32) -> Option<SiteName>,
    ) -> Vec<CircuitTraffic> {
        let news = carried.iter().map(|(lease, (out, into))| {
            let (told_out, told_in) = self.0.get(lease).copied().unwrap_or((0, 0));
            let (out_bytes, in_bytes) = (since(*out, told_out), since(*into, told_in));
            CircuitTraffic { lease: *lease, site: only_site(*lease), out_bytes, in_bytes }
        });
        let news = news.collect();
        self.0 = carried;
        news
    }
}

/// A recreated circuit counts from its creation.
fn since(now: u64, told: u64) -> u64 {
    now.checked_sub(told).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_has_the_bytes_since_the_last_one() {
        let mut counters = CarriedBytes::default();
        let mut told = |carried: &[(u32, (u64, u64))]| -> Vec<(u32, u64, u64)> {
            let news = counters.since_last(carried.iter().copied().collect(), |lease| {
                (lease == 17).then(|| SiteName::parse("oslo").unwrap())
            });
            assert!(news.iter().all(|it| it.site.is_some() == (it.lease == 17)));
            news.into_iter().map(|it| (it.lease, it.out_bytes, it.in_bytes)).collect()
        };
        assert_eq!(told(&[(17, (100, 10))]), [(17, 100, 10)]);
        assert_eq!(told(&[(17, (150, 10)), (18, (5, 5))]), [(17, 50, 0), (18, 5, 5)]);
        assert_eq!(told(&[(17, (30, 12))]), [(17, 30, 2)], "its counter began anew");
        assert_eq!(told(&[(18, (5, 5))]), [(18, 5, 5)], "it was away");
    }
}
