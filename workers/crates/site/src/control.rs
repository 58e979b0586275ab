//! Operators' requests to a running site, and its answers.
use std::fmt::Display;

use downburst_model::Micros;
use downburst_session::HostReading;
use serde::{Deserialize, Serialize};

use crate::group_reading::HostReadings;
use crate::hubs::{HubStatus, Hubs};

/// An operator's request to a running site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum SiteRequest {
    /// Report all hubs, and the one that serves.
    Status,
    /// Prefer this hub until the site restarts.
    Prefer {
        /// Its address or name.
        hub: String,
    },
}

/// The site's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteAnswer {
    /// All hubs, in the configured order.
    pub hubs: Vec<HubStatus>,
    /// The files for local software; `None`: the site writes none.
    #[serde(default)]
    pub files: Option<FilesStatus>,
    /// The groups that the site reads, or has read since it started.
    #[serde(default)]
    pub groups: Vec<GroupStatus>,
    /// The reason of a refusal: one sentence.
    pub error: Option<String>,
}

/// The way in which files for local software get the bytes of large products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesStatus {
    /// As configured: `clone`, `link` or `copy`.
    pub asked: String,
    /// As the file systems allow it.
    pub used: String,
    /// The reason for the difference.
    pub reason: Option<String>,
    /// Bytes that left the site's log and stay on the disk, because their files still exist.
    pub linked_bytes: u64,
}

/// How this host reads the group of a feed; see [`HostReading`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// The feed.
    pub feed: String,
    /// The leg.
    pub leg: u32,
    /// Datagrams that the kernel dropped for want of room.
    pub dropped: u64,
    /// The requested receive buffer.
    pub asked_bytes: u64,
    /// The granted one.
    pub granted_bytes: u64,
    /// The needed one.
    pub needed_bytes: u64,
    /// `net.core.rmem_max`.
    pub limit_bytes: Option<u64>,
    /// The requested real-time priority.
    pub priority: Option<u8>,
    /// `normal`, `real-time`, `lost` or `refused`.
    pub standing: String,
    /// The number of times that a reading thread lost its priority.
    pub demotions: u64,
}

impl GroupStatus {
    /// The groups of these readings.
    pub fn all(readings: &HostReadings) -> Vec<Self> {
        let groups = readings.all().iter().map(|(feed, reading)| {
            let HostReading { leg, dropped, buffer, priority, standing, demotions, .. } = *reading;
            Self {
                feed: feed.as_str().to_owned(),
                leg: leg.0,
                dropped,
                asked_bytes: buffer.asked_bytes,
                granted_bytes: buffer.granted_bytes,
                needed_bytes: buffer.needed_bytes,
                limit_bytes: buffer.limit_bytes,
                priority,
                standing: standing.word().to_owned(),
                demotions,
            }
        });
        groups.collect()
    }
}

impl SiteAnswer {
    /// The answer to a request that was refused.
    pub fn refusal(sentence: String) -> Self {
        Self { hubs: Vec::new(), files: None, groups: Vec::new(), error: Some(sentence) }
    }

    /// The answer to a line that is not a request.
    pub fn unreadable(error: &impl Display) -> Self {
        Self::refusal(format!("the request can't be read: {error}"))
    }

    /// The hubs, or the reason of a refusal.
    ///
    /// # Errors
    ///
    /// The reason: one sentence.
    pub fn done(self) -> Result<Self, String> {
        self.error.clone().map_or(Ok(self), Err)
    }
}

impl Hubs {
    /// Carries out an operator's request.
    pub fn answer(&mut self, now: Micros, request: &SiteRequest) -> SiteAnswer {
        let done = match request {
            SiteRequest::Status => Ok(()),
            SiteRequest::Prefer { hub } => self.prefer(now, hub),
        };
        match done {
            Ok(()) => SiteAnswer { hubs: self.status(now), files: None, groups: Vec::new(), error: None },
            Err(sentence) => SiteAnswer::refusal(sentence),
        }
    }
}

#[cfg(test)]
mod tests {
    use downburst_session::Nodes;

    use super::*;
    use crate::hubs::GivenHub;

    fn hubs() -> Hubs {
        let given = ["a:1", "b:1"].map(|address| GivenHub {
            address: address.to_owned(),
            nodes: Nodes { version: 0, items: Vec::new() },
        });
        Hubs::new(given.into(), Micros::from_secs(300), Micros(0))
    }

    #[test]
    fn the_status_names_all_hubs_and_a_preference_changes_it() {
        let mut hubs = hubs();
        let preferred = |answer: SiteAnswer| {
            answer.hubs.into_iter().map(|hub| (hub.address, hub.preferred)).collect::<Vec<_>>()
        };
        let named = |a, b| [("a:1".to_owned(), a), ("b:1".to_owned(), b)];
        let status = hubs.answer(Micros(0), &SiteRequest::Status);
        assert_eq!(preferred(status.done().unwrap()), named(true, false));
        let prefer = SiteRequest::Prefer { hub: "b:1".to_owned() };
        assert_eq!(preferred(hubs.answer(Micros(0), &prefer)), named(false, true));
    }

    #[test]
    fn who_asks_for_another_hub_is_told_which_there_are() {
        let refused = hubs().answer(Micros(0), &SiteRequest::Prefer { hub: "c:1".to_owned() });
        let sentence = refused.done().unwrap_err();
        assert!(sentence.contains("a:1") && sentence.contains("b:1"), "{sentence}");
        assert_eq!(SiteAnswer::unreadable(&"no").done(), Err("the request can't be read: no".to_owned()));
    }
}
