//! What the session reports, for the log file.
use downburst_session::SiteEvent;

/// `address` is the hub's, as people call it.
pub(super) fn log(event: SiteEvent, address: &str) {
    match event {
        SiteEvent::Welcome { site, hub, stand_by } => {
            tracing::info!(site = site.as_str(), hub, address, stand_by, "connected");
        }
        SiteEvent::Subscriptions(items) => {
            for item in items {
                tracing::info!(
                    feed = item.feed.as_str(),
                    pattern = item.pattern,
                    not = item.not_pattern,
                    "subscribed"
                );
            }
        }
        SiteEvent::Clock(clock) => {
            tracing::debug!(offset_us = clock.offset_us, bound_us = clock.bound_us, "clock compared");
        }
        SiteEvent::StreamAttached(stream) => {
            tracing::info!(stream = stream.0, "a data connection is up");
        }
        SiteEvent::StreamEnded { stream, reason } => {
            tracing::info!(stream = stream.0, reason, "a data connection ended");
        }
        event => log_of_legs_and_products(event, address),
    }
}

fn log_of_legs_and_products(event: SiteEvent, address: &str) {
    match event {
        SiteEvent::LegJoined { leg, feed } => {
            tracing::info!(leg = leg.0, feed = feed.as_str(), "a multicast leg is received")
        }
        SiteEvent::LegLeft { leg, reason } => {
            tracing::info!(leg = leg.0, reason, "a multicast leg ended")
        }
        SiteEvent::RepairChannel { leg, open: true } => {
            tracing::info!(leg = leg.0, "lost packets of the leg are asked for and repaired by UDP");
        }
        SiteEvent::RepairChannel { leg, open: false } => {
            tracing::warn!(
                leg = leg.0,
                "the hub answers no UDP any more; lost packets of the leg are repaired by the session"
            );
        }
        SiteEvent::Lost { key, reason } => {
            tracing::error!(
                feed = key.feed.as_str(),
                sequence = key.sequence.0,
                reason,
                "a product is lost here"
            );
        }
        SiteEvent::Violation(sentence) => tracing::error!("the hub broke the protocol: {sentence}"),
        SiteEvent::Dead => tracing::warn!(hub = address, "the hub sent nothing in time; reconnecting"),
        // What follows from the others is logged where it is done.
        _ => {}
    }
}
