//! Messages to the operator about an unreadable log.
use downburst_hub::feeds::unreadable_log;
use downburst_log::LogError;
use downburst_model::FeedName;

use crate::hub::Hub;

pub(in crate::hub) fn say_unreadable(hub: &Hub, feed: &FeedName, error: &LogError) {
    hub.fault(unreadable(feed, error), Some(feed));
}

/// The message that sites wait for a feed, with advice.
pub(in crate::hub) fn unreadable(feed: &FeedName, error: &LogError) -> String {
    let only_at_brokers = matches!(error, LogError::Remote { .. } | LogError::Store { .. });
    unreadable_log(feed, error, only_at_brokers)
}
