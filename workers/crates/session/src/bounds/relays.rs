//! The bounds of messages about relays, from both sides.
use downburst_model::bounds::OFFSET_MAX_US;

use super::number;
use crate::{
    MOST_CHAINS, MOST_LEGS_TOLD, MOST_TUNNELS_TOLD, RelayReport, RelayedLeg, Segment, TunnelFacts, Ways,
    relay_chain,
};

/// Checks the ways of a hub.
pub(super) fn check_ways(ways: &Ways) -> Result<(), String> {
    at_most("chains", "ways", ways.chains.len(), MOST_CHAINS)?;
    ways.chains.iter().try_for_each(|given| {
        relay_chain(given).map(drop).map_err(|sentence| format!("one of the `chains`: {sentence}"))
    })
}

/// Checks the report of a relay.
pub(super) fn check_report(report: &RelayReport) -> Result<(), String> {
    at_most("tunnels", WHAT, report.tunnels.len(), MOST_TUNNELS_TOLD)?;
    at_most("legs", WHAT, report.legs.len(), MOST_LEGS_TOLD)?;
    number("refused", WHAT, report.refused)?;
    report.tunnels.iter().try_for_each(check_tunnel)?;
    report.legs.iter().try_for_each(check_leg)
}

fn check_tunnel(facts: &TunnelFacts) -> Result<(), String> {
    let texts = [("site_side", &facts.site_side), ("hub_side", &facts.hub_side), ("target", &facts.target)];
    texts.into_iter().try_for_each(|(field, text)| at_most(field, WHAT, text.len(), TEXT_BYTES))?;
    number("seconds", WHAT, facts.seconds)?;
    number("bytes_from_hub", WHAT, facts.bytes_from_hub)?;
    number("bytes_from_site", WHAT, facts.bytes_from_site)?;
    number("rate_from_hub_bps", WHAT, facts.rate_from_hub_bps)?;
    [&facts.near, &facts.onward].into_iter().try_for_each(check_segment)
}

fn check_segment(segment: &Segment) -> Result<(), String> {
    let Segment { round_trip_us, loss_ppm, congestion, rate_bps } = segment;
    at_most("congestion", WHAT, congestion.len(), NAME_BYTES)?;
    number("rate_bps", WHAT, *rate_bps)?;
    match (round_trip_us, loss_ppm) {
        (Some(us), _) if *us > OFFSET_MAX_US => {
            Err(format!("`round_trip_us` of {WHAT} is {us}; the longest time is {OFFSET_MAX_US} µs"))
        }
        (_, Some(ppm)) if *ppm > 1_000_000 => {
            Err(format!("`loss_ppm` of {WHAT} is {ppm}; all segments are 1000000"))
        }
        _ => Ok(()),
    }
}

fn check_leg(leg: &RelayedLeg) -> Result<(), String> {
    number("datagrams", WHAT, leg.datagrams)?;
    number("bytes", WHAT, leg.bytes)?;
    number("dropped", WHAT, leg.dropped)
}

fn at_most(field: &str, what: &str, length: usize, most: usize) -> Result<(), String> {
    if length <= most {
        return Ok(());
    }
    Err(format!("`{field}` of {what} has the length {length}; {most} is the most"))
}

const WHAT: &str = "a relay's report";

/// A name of DNS with its port.
const TEXT_BYTES: usize = 261;

/// As the kernel has them.
const NAME_BYTES: usize = 16;
