//! Messages to the operator about an unreadable log.
use downburst_log::LogError;
use downburst_model::FeedName;

use crate::hub::Hub;

pub(in crate::hub) fn say_unreadable(hub: &Hub, feed: &FeedName, error: &LogError) {
    hub.fault(unreadable(feed, error), Some(feed));
}

/// The message that sites wait for a feed, with advice.
pub(in crate::hub) fn unreadable(feed: &FeedName, error: &LogError) -> String {
    let advice = match error {
        LogError::Remote { .. } | LogError::Store { .. } => {
            "sites wait for products that only the brokers have; check the brokers"
        }
        _ => "sites wait for it; check the disk; `downburst log verify` lists the damage",
    };
    format!("the log of feed {feed} can't be read: {error}; {advice}")
}
