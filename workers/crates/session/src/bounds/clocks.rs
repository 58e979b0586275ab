//! Bounds of the state of a site's clock.
use super::number;
use crate::{CLOCK_DAEMON_BYTES, SiteClock};

/// Checks the state of a site's clock.
pub(super) fn check_site_clock(clock: &SiteClock) -> Result<(), String> {
    number("error_us", WHAT, clock.error_us)?;
    number("estimated_error_us", WHAT, clock.estimated_error_us)?;
    match &clock.daemon {
        Some(name) if !is_daemon(name) => Err(format!("`daemon` of {WHAT} is no name of a program")),
        _ => Ok(()),
    }
}

fn is_daemon(name: &str) -> bool {
    let is_part = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (1..=CLOCK_DAEMON_BYTES).contains(&name.len()) && name.bytes().all(is_part)
}

const WHAT: &str = "a site's clock";
