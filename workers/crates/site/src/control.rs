//! Operators' requests to a running site, and its answers.
use std::fmt::Display;

use downburst_model::Micros;
use serde::{Deserialize, Serialize};

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

impl SiteAnswer {
    /// The answer to a request that was refused.
    pub fn refusal(sentence: String) -> Self {
        Self { hubs: Vec::new(), files: None, error: Some(sentence) }
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
            Ok(()) => SiteAnswer { hubs: self.status(now), files: None, error: None },
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
