//! The state of a site's own clock.
use minicbor::{Decode, Encode};

/// Site to hub, when a session begins and each minute: the kernel's word on the site's wall clock (decision 64).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SiteClock {
    /// True if a daemon keeps the clock in step.
    #[n(0)]
    pub synchronised: bool,
    /// The largest error, microseconds (`maxerror` of adjtimex(2)).
    #[n(1)]
    pub error_us: u64,
    /// The expected error, microseconds (`esterror`).
    #[n(2)]
    pub estimated_error_us: u64,
    /// The program that disciplines the clock, as far as the site sees it: at most [`CLOCK_DAEMON_BYTES`] of `a-z`,
    /// `0-9` and `-`.
    #[n(3)]
    pub daemon: Option<String>,
}

/// The longest name of a clock's daemon, bytes.
pub const CLOCK_DAEMON_BYTES: usize = 32;
