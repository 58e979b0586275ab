//! Bounds of a site's report on how its host reads a group.
use super::number;
use crate::{HostReading, MAX_PRIORITY};

/// Checks the report.
pub(super) fn check_host_reading(reading: &HostReading) -> Result<(), String> {
    let HostReading { dropped, buffer, priority, demotions, line, .. } = reading;
    number("dropped", WHAT, *dropped)?;
    number("demotions", WHAT, *demotions)?;
    number("asked_bytes", WHAT, buffer.asked_bytes)?;
    number("granted_bytes", WHAT, buffer.granted_bytes)?;
    number("needed_bytes", WHAT, buffer.needed_bytes)?;
    number("limit_bytes", WHAT, buffer.limit_bytes.unwrap_or(0))?;
    if let Some(line) = line {
        number("arrived_bps", WHAT, line.arrived_bps)?;
        number("offered_bps", WHAT, line.offered_bps)?;
        number("packets", WHAT, line.packets)?;
        number("lost", WHAT, line.lost)?;
        number("windows", WHAT, line.windows)?;
    }
    match priority {
        Some(priority) if !(1..=MAX_PRIORITY).contains(priority) => {
            Err(format!("`priority` of {WHAT} is {priority}; real-time priorities are 1 to {MAX_PRIORITY}"))
        }
        _ => Ok(()),
    }
}

const WHAT: &str = "the reading of a group";
