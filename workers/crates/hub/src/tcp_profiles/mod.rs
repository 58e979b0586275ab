//! TCP profiles: options of the connections to sites by destination prefix, set by the operator or learnt.
//!
//! A changed profile runs on some connections first. They are compared with the others in the same window, and the
//! change is taken back if throughput falls. `docs/adr/0054-tcp-profiles.md` gives the reasons.
mod knobs;
mod learner;
mod lines;
mod machine;
mod meter;
mod prefix;
mod round;
mod run;
#[cfg(test)]
mod tests;
mod trial;

pub use knobs::Knobs;
pub use lines::{
    Mode, ProfileLine, ProfileNews, ProfileState, SessionProfile, TrialLine, TrialStep, check_profiles,
};
pub use machine::{ConnectionSetting, Looked, TcpProfiles};
pub use meter::{ConnectionLook, SessionLook};
pub use prefix::Prefix;
