//! Traffic figures for the agent: counts since the last report, and the state of sessions.
mod accounts;
mod lines;
mod reports;
mod silences;
mod traffic;
mod transfers;

pub use accounts::{UnicastLegs, all_sessions, session_news, sites_by_leg};
pub use lines::{
    FailedAction, FeedTraffic, HostReadingLine, LegTraffic, LineReadingLine, LinkedFiles, SessionFeed,
    SessionTraffic, SiteClockLine, Transfer,
};
pub use reports::TrafficReports;
pub use silences::{SilenceLine, SilenceSign, Silences, check_silences};
pub use traffic::{Arrivals, FeedHead, LegCounts, LegState};
pub use transfers::Transfers;
