//! Events: lines to the agent that answer no job.
use std::collections::BTreeSet;
use std::path::PathBuf;

use downburst_model::{FeedName, LegId, Sequence, SiteName, WallMicros};
use downburst_session::{Reception, ResendEnd};
use serde::Serialize;

use crate::backlog::SiteBacklog;
use crate::catch_ups::CatchUpReport;
use crate::circuits::CircuitTraffic;
use crate::figures::{FeedTraffic, LegTraffic, SessionTraffic, SilenceSign};
use crate::path_probes::{ProbeEndedLine, ProbeSecondLine};
use crate::relays::RelayLine;
use crate::session::{LegReport, Report};
use crate::siblings::SavedLine;
use crate::tcp_profiles::TrialLine;

/// A report to the agent that answers no job.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A site presents a token.
    Enrol {
        /// The number of the request; the agent's answer carries it.
        ask: u64,
        /// The digest of the token.
        secret_sha256: String,
        /// The digest of the credential.
        credential_sha256: String,
        /// The address of the other end.
        peer: String,
    },
    /// A site offers a replacement for the credential that it presents.
    CredentialOffered {
        /// The number of the request; the agent's answer carries it.
        ask: u64,
        /// The site.
        site: SiteName,
        /// The digest of the credential.
        credential_sha256: String,
        /// The digest of the replacement.
        offered_sha256: String,
        /// The address of the other end.
        peer: String,
    },
    /// A site presents a credential that replaced another.
    CredentialTaken {
        /// The site.
        site: SiteName,
        /// The digest of the credential.
        credential_sha256: String,
    },
    /// The state of a session changed.
    Session {
        /// The site.
        site: Option<SiteName>,
        /// The new state, as one word.
        state: &'static str,
        /// The address of the other end.
        peer: String,
        /// The reason, for people.
        reason: Option<String>,
        /// The site's program and version.
        software: Option<String>,
        /// True if another hub serves the site.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stand_by: bool,
        /// True if its node can change its credential within the session.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        renews: bool,
    },
    /// A site sent an impossible value: its session ends, or only the value is ignored.
    Violation {
        /// The site.
        site: SiteName,
        /// One sentence.
        sentence: String,
    },
    /// A site joined or left a leg.
    Leg {
        /// The feed.
        feed: FeedName,
        /// The leg.
        leg: LegId,
        /// The site.
        site: SiteName,
        /// The new state, as one word.
        state: &'static str,
        /// The sequence after which the leg's coverage begins or ends.
        after: Option<Sequence>,
        /// The reason, for people.
        reason: Option<String>,
        /// The reception of the group by the site's host.
        #[serde(skip_serializing_if = "Option::is_none")]
        reception: Option<ReceptionLine>,
    },
    /// A stream to sites that catch up together began or ended.
    CatchUp(CatchUpReport),
    /// The state of the connection to an upstream changed.
    Upstream {
        /// The upstream's name or address.
        upstream: String,
        /// The new state, as one word.
        state: &'static str,
        /// The name of the hub there.
        hub: Option<String>,
        /// The reason, for people.
        reason: Option<String>,
    },
    /// The state of the connection to an upstream LDM changed.
    LdmSource {
        /// The source that requests from it.
        source: String,
        /// The upstream's name or address.
        upstream: String,
        /// The new state, as one word.
        state: &'static str,
        /// The way in which it was requested.
        mode: &'static str,
        /// The reason, for people.
        reason: Option<String>,
    },
    /// A connection of an LDM to this hub began, ended or was refused.
    LdmPeer {
        /// The address of the other end.
        peer: String,
        /// The site.
        site: Option<SiteName>,
        /// The new state, as one word.
        state: &'static str,
        /// The kind of the connection.
        what: &'static str,
        /// The reason, for people.
        reason: Option<String>,
    },
    /// An LDM sent an impossible value: its connection ended.
    LdmViolation {
        /// The address of the other end.
        peer: String,
        /// The source that requests from it.
        source: Option<String>,
        /// The site to which it belongs.
        site: Option<SiteName>,
        /// One sentence.
        sentence: String,
    },
    /// An rtstats line arrived: the latency of products at a host outside Downburst.
    Rtstats {
        /// The line as it came.
        line: String,
    },
    /// A site has received all products of a resend.
    Resend {
        /// The site.
        site: SiteName,
        /// The number of the resend.
        resend: u64,
        /// The number of its products.
        products: u64,
        /// Their bytes.
        bytes: u64,
        /// The number of those that were gone.
        expired: u64,
    },
    /// A log was repaired at its opening.
    Recovered {
        /// The feed.
        feed: FeedName,
        /// One sentence.
        sentence: String,
        /// True if nothing was cut or lost.
        whole: bool,
    },
    /// Damage was found in a feed's log.
    Damaged {
        /// The feed.
        feed: FeedName,
        /// One sentence.
        sentence: String,
    },
    /// A problem for the operator.
    Fault {
        /// One sentence.
        sentence: String,
        /// The feed.
        feed: Option<FeedName>,
        /// The site.
        site: Option<SiteName>,
    },
    /// A product arrived after a silence of a watched feed, or as its first one.
    Stirred {
        /// The feed.
        feed: FeedName,
        /// The stamp of the product.
        arrived_us: WallMicros,
    },
    /// No product of a watched feed has arrived for its hold time.
    Silent {
        /// The feed.
        feed: FeedName,
        /// The stamp of the last product.
        since_us: WallMicros,
        /// The moment at which the hold time had passed.
        until_us: WallMicros,
    },
    /// The state of an end of a circuit changed.
    Circuit {
        /// The lease of the circuit.
        lease: u32,
        /// The site.
        site: Option<SiteName>,
        /// The new state, as one word.
        state: &'static str,
        /// The step that failed.
        step: Option<String>,
        /// The hop at which it failed.
        hop: Option<String>,
        /// One sentence.
        sentence: Option<String>,
        /// The remedy, for people.
        remedy: Option<String>,
    },
    /// A second of a probe of a path.
    ProbeSecond(ProbeSecondLine),
    /// A probe of a path ended.
    ProbeEnded(Box<ProbeEndedLine>),
    /// A relay's tunnels and legs.
    Relay(RelayLine),
    /// Products that siblings gave to sites since the last such event: the hub did not have to send them.
    Siblings {
        /// By site and feed.
        saved: Vec<SavedLine>,
    },
    /// A step of a TCP profile's trial.
    TcpTrial(TrialLine),
    /// The traffic of the last second.
    Traffic(Traffic),
    /// The backlogs of sites, connected or not: those that changed, and a few others.
    Backlog {
        /// The sites.
        sites: Vec<SiteBacklog>,
    },
    /// A batch of sketches is ready.
    Batch {
        /// The batch's name.
        batch: String,
        /// Its file.
        path: PathBuf,
    },
}

impl Event {
    /// The event about a session's report; `None` if the agent does not get it as an event of its own.
    pub fn of_report(site: &SiteName, report: &Report) -> Option<Self> {
        let site = site.clone();
        Some(match report {
            Report::Relay(line) => Self::Relay(line.clone()),
            Report::Leg(report) => Self::of_leg(site, report.clone()),
            Report::Resent(ResendEnd { resend, products, bytes, expired }) => {
                Self::Resend { site, resend: *resend, products: *products, bytes: *bytes, expired: *expired }
            }
            Report::Violation { sentence, .. } => Self::Violation { site, sentence: sentence.clone() },
            Report::Fault { sentence, feed, of_site } => {
                Self::Fault { sentence: sentence.clone(), feed: feed.clone(), site: of_site.then_some(site) }
            }
            _ => return None,
        })
    }

    /// The event about a silence's beginning or end.
    pub fn of_silence(sign: SilenceSign) -> Self {
        match sign {
            SilenceSign::Stirred { feed, arrived } => Self::Stirred { feed, arrived_us: arrived },
            SilenceSign::Silent { feed, since, until } => {
                Self::Silent { feed, since_us: since, until_us: until }
            }
        }
    }

    fn of_leg(site: SiteName, report: LegReport) -> Self {
        let LegReport { feed, leg, state, after, reason, reception } = report;
        Self::Leg { feed, leg, site, state, after, reason, reception: reception.map(ReceptionLine::from) }
    }
}

/// The reception of a group by a site's host.
#[derive(Debug, Serialize)]
pub struct ReceptionLine {
    /// The size of the socket's receive buffer.
    pub buffer_bytes: u64,
    /// Its file.
    pub path: String,
    /// Advice, if the reception can be better.
    pub advice: Option<String>,
}

/// See [`Event::Traffic`].
#[derive(Debug, Default, Serialize)]
pub struct Traffic {
    /// The beginning.
    pub from_us: WallMicros,
    /// The end.
    pub to_us: WallMicros,
    /// Arrivals by feed.
    pub feeds: Vec<FeedTraffic>,
    /// Traffic by leg.
    pub legs: Vec<LegTraffic>,
    /// Bytes of sessions that belong to no leg.
    pub control_bytes: u64,
    /// Sites whose session ended.
    pub gone: BTreeSet<SiteName>,
    /// Sessions that changed, and a few others.
    pub sessions: Vec<SessionTraffic>,
    /// Traffic by circuit and end.
    pub circuits: Vec<CircuitTraffic>,
}

impl From<Reception> for ReceptionLine {
    fn from(reception: Reception) -> Self {
        let Reception { buffer_bytes, path, advice } = reception;
        Self { buffer_bytes, path, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> SiteName {
        SiteName::parse("unl.edu").unwrap()
    }

    #[test]
    fn a_fault_names_the_site_that_it_concerns_and_no_other() {
        let fault = |of_site| Report::Fault { sentence: "it is wrong".to_owned(), feed: None, of_site };
        let named = |of_site| match Event::of_report(&site(), &fault(of_site)) {
            Some(Event::Fault { site, .. }) => site,
            other => panic!("{other:?}"),
        };
        assert_eq!((named(true), named(false)), (Some(site()), None));
    }

    #[test]
    fn a_report_on_a_leg_has_the_reception_of_the_host() {
        let report = LegReport {
            feed: FeedName::parse("NGRID").unwrap(),
            leg: LegId(2),
            state: "joined",
            after: Some(Sequence(7)),
            reason: None,
            reception: Some(Reception { buffer_bytes: 1, path: "one by one".to_owned(), advice: None }),
        };
        let event = serde_json::to_value(Event::of_report(&site(), &Report::Leg(report))).unwrap();
        assert_eq!(
            (&event["event"], &event["after"], &event["reception"]["path"]),
            (&"leg".into(), &7.into(), &"one by one".into())
        );
    }

    #[test]
    fn reports_that_the_agent_gets_in_other_lines_are_no_events() {
        assert!(Event::of_report(&site(), &Report::Connected).is_none());
        assert!(Event::of_report(&site(), &Report::LateSent(5)).is_none());
    }
}
