//! A measurement of a circuit from one of its ends, beside the traffic that it carries.
use std::net::IpAddr;
use std::time::{Duration, Instant};

use downburst_hub::circuits::Train;
use downburst_session::CircuitProbed;

use super::endpoint::{Endpoint, LONGEST_TRAIN, Reach};
use super::keeper::Keeper;
use super::rate::{RateOrder, RateProbe};

/// The result of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) reach: Reach,
    /// The train, and the rate of other traffic during it.
    pub(crate) rate: Option<(RateProbe, u64)>,
}

/// Sends five packets to an end, and then a train if there is one.
pub(crate) async fn measure(
    endpoint: &Endpoint,
    keeper: &Keeper,
    lease: u32,
    end: IpAddr,
    train: Option<Train>,
) -> Measured {
    let reach = endpoint.reach(end).await;
    let Some(train) = train else { return Measured { reach, rate: None } };
    let order = rate_order(train);
    let (began, before) = (Instant::now(), carried(keeper, lease).await);
    let rate = endpoint.rate(end, order).await;
    let rate = rate.unwrap_or_else(|| RateProbe::unanswered(order));
    let (took, after) = (began.elapsed(), carried(keeper, lease).await);
    let others_bps = rate.others_bps(train.carried(before, after), took, train.out);
    Measured { reach, rate: Some((rate, others_bps)) }
}

impl Measured {
    /// The measurement of another node; `None`: it has no such end.
    pub(crate) fn told(probed: CircuitProbed, train: Option<Train>) -> Option<Self> {
        let rate = probed.rate.zip(train).map(|(rate, train)| {
            let others_bps = rate.others_bps;
            (RateProbe::told(rate, train.frame_bytes), others_bps)
        });
        Some(Self { reach: probed.reach?.into(), rate })
    }

    /// The measurement for another node.
    pub(crate) fn said(self, lease: u32, run: u32) -> CircuitProbed {
        let rate = self.rate.map(|(rate, others_bps)| rate.said(others_bps));
        CircuitProbed { lease, run, reach: Some(self.reach.into()), rate }
    }
}

/// Bytes of frames over a circuit since its creation, out and in.
async fn carried(keeper: &Keeper, lease: u32) -> (u64, u64) {
    keeper.carried().await.get(&lease).copied().unwrap_or_default()
}

fn rate_order(Train { rate_bps, duration_ms, out, frame_bytes }: Train) -> RateOrder {
    RateOrder { rate_bps, duration: Duration::from_millis(duration_ms).min(LONGEST_TRAIN), out, frame_bytes }
}
