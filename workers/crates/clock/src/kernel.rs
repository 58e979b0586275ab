//! The kernel's own word on its wall clock.
// The one call without a safe binding.
#![allow(unsafe_code)]

/// The kernel's word on its wall clock, as the daemon that disciplines it last said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStanding {
    /// A daemon (chrony, ntpd, ptp4l with phc2sys) keeps the clock in step.
    pub synchronized: bool,
    /// The most that the clock is wrong, microseconds (`maxerror` of adjtimex(2)): grows by 500 us each second without
    /// a daemon, up to 16 s.
    pub error_us: u64,
    /// The error that the daemon expects, microseconds (`esterror`).
    pub estimated_error_us: u64,
}

impl KernelStanding {
    /// Asks the kernel; `None`: it does not say.
    pub fn read() -> Option<Self> {
        // SAFETY: `timex` is a plain record of numbers, for which zeros are a value; modes = 0 only reads.
        let (state, found) = unsafe {
            let mut found: libc::timex = std::mem::zeroed();
            (libc::adjtimex(&raw mut found), found)
        };
        let synchronized = state != libc::TIME_ERROR && found.status & libc::STA_UNSYNC == 0;
        (state >= 0).then(|| Self {
            synchronized,
            error_us: u64::try_from(found.maxerror).unwrap_or(u64::MAX),
            estimated_error_us: u64::try_from(found.esterror).unwrap_or(u64::MAX),
        })
    }
}
