//! A hub: its sessions with sites, its multicast legs, and the assignment of sites and feeds to them.
//!
//! [`Session`] is one session with a site: it makes all decisions that the session's protocol leaves open.
//!
//! [`Leg`] is one multicast leg: it reads products from the feed's log, paces sealed datagrams, answers requests,
//! rotates keys, and adapts its rate to the losses of its sites.
//!
//! [`feeds`], [`circuits`], [`upstreams`], [`queries`] and [`jobs`] hold the decisions of the hub's other parts, and
//! the agent's lines about them.
//!
//! Nothing here has a socket, a file, a thread or a clock: time, bytes, randomness and storage are arguments. The
//! `node` crate drives these machines with TLS streams, groups and the product log.
#![forbid(unsafe_code)]

mod backlog;
mod batches;
mod catch_ups;
pub mod circuits;
mod clock_standing;
mod connections;
mod events;
pub mod feeds;
mod figures;
mod first_bytes;
mod flood;
pub mod jobs;
mod known_sites;
mod late_share;
mod leg;
mod look_pace;
mod pace;
mod path_facts;
pub mod path_probes;
mod plans;
mod proof;
pub mod queries;
mod registry;
mod relays;
mod resends_left;
mod session;
mod siblings;
mod site_config;
mod sites;
mod sketch;
mod stream_policy;
mod tcp_profiles;
#[cfg(test)]
mod testing;
mod text;
pub mod upstreams;

pub use backlog::{
    BacklogFacts, Backlogs, CountedLog, Counts, FeedBacklog, Look, LookedBack, Position, Positions,
    SiteBacklog, resend_order, site_backlog,
};
pub use batches::{BatchFile, Batches, Noted, is_batch_name};
pub use catch_ups::{
    CatchUpFacts, CatchUpLine, CatchUpReport, CatchUpStep, CatchUps, Progress, Returned, StreamStart,
    catch_up_bps,
};
pub use clock_standing::{ClockStanding, Reference};
pub use connections::{
    AdmissionLimits, DataLink, DataLinks, OUT_LIMIT_BYTES, Outbound, Outgoing, PendingConnections, Taken,
};
pub use events::{Event, ReceptionLine, Traffic};
pub use feeds::{AwaitedHeartbeats, Rechecks};
pub use figures::{
    Arrivals, FailedAction, FeedHead, FeedTraffic, HostReadingLine, LegCounts, LegState, LegTraffic,
    LineReadingLine, LinkedFiles, SessionFeed, SessionTraffic, SilenceLine, SilenceSign, Silences,
    SiteClockLine, TrafficReports, Transfer, Transfers, UnicastLegs, all_sessions, check_silences,
    session_news, sites_by_leg,
};
pub use first_bytes::FirstBytes;
pub use flood::{Flood, Sight};
pub use known_sites::{CredentialChange, CredentialStep, Sites};
pub use late_share::LateShare;
pub use leg::{
    ChannelTable, CurrentKeys, Leg, LegDraws, LegFirstBytes, LegFront, LegInput, LegInterface, LegOffer,
    LegOutput, LegSession, LegSessions, LegSettings, LegStart, LegTrial, LegTrials, LogRange, ProofSecrets,
    SiteLoss,
};
pub use look_pace::LookPace;
pub use pace::{hour, pace_bps};
pub use path_facts::PathFacts;
pub use plans::{
    CarrierLine, FanOut, LegLine, LegStep, LossLine, PlanLine, Plans, RelayStanding, RelayStep, RelayedLegs,
    RunningLeg,
};
pub use proof::{KeptProduct, ProofFault, Proven, ProvenLog, read_back};
pub use registry::{
    AgentAsks, DueCredential, Newcomer, Notice, Registered, SessionHandle, SessionLink, SessionRegistry,
};
pub use relays::{RelayLine, RelayedLegLine, SegmentLine, TunnelLine};
pub use resends_left::ResendsLeft;
pub use session::{
    CredentialAnswer, FeedStanding, FeedWatch, HostStatus, HubFacts, IdentityOutput, KernelOutput, LegReport,
    NotedReceipt, ProductView, ReadFault, ReadRequest, Report, ResendRead, Session, SessionAccount,
    SessionInput, SessionOutput, SessionSettings, SessionStatus, SessionView, SiblingOutput, StatusChange,
    StreamStatus, TOO_SLOW_REST, WaitingBytes, WatchedFeeds, Way, live_waits,
};
pub use siblings::{Giver, SavedLine, SiblingAddress, Siblings, Withdrawal, may_give};
pub use site_config::{handling, nodes, subscriptions, ways};
pub use sites::{
    CredentialLine, KeptLdmLine, LimitLine, NodeLine, PositionLine, ResendKind, ResendLine, RightsLine,
    SiblingsLine, SiteLine, SubscriptionLine,
};
pub use stream_policy::{Decision, Measured, Setting, StreamPolicy};
pub use tcp_profiles::{
    ConnectionLook, ConnectionSetting, Knobs, Looked, Mode, Prefix, ProfileLine, ProfileNews, ProfileState,
    SessionLook, SessionProfile, TcpProfiles, TrialLine, TrialStep, check_profiles,
};
pub use text::{is_sha256, shown};
