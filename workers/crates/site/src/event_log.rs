//! Events of the session in the log of the site's process.
use downburst_session::SiteEvent;

/// Logs an event; `address` is the hub's configured address.
pub fn log_event(event: SiteEvent, address: &str) {
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
            let (offset_us, bound_us, drift_ppb) = (clock.offset_us, clock.bound_us, clock.drift_ppb);
            tracing::debug!(offset_us, bound_us, drift_ppb, "clock compared");
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
        // The consequences of the others are logged where they are carried out.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::mpsc::{Sender, channel};

    use downburst_model::{Epoch, FeedName, LegId, ProductKey, Sequence};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Passes on the level and the text of each event.
    struct Lines(Sender<(Level, String)>);

    struct Words(String);

    impl Visit for Words {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            let _ = write!(self.0, "{}={value:?} ", field.name());
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut words = Words(String::new());
            event.record(&mut words);
            self.0.send((*event.metadata().level(), words.0)).unwrap();
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    fn logged(event: SiteEvent) -> Vec<(Level, String)> {
        let (sender, lines) = channel();
        tracing::subscriber::with_default(Lines(sender), || log_event(event, "hub:1"));
        lines.into_iter().collect()
    }

    #[test]
    fn what_needs_a_person_is_louder_than_what_happens_every_day() {
        let leg = LegId(3);
        let feed = FeedName::parse("F").unwrap();
        let key = ProductKey { feed: feed.clone(), epoch: Epoch(1), sequence: Sequence(5) };
        for (event, level, says) in [
            (SiteEvent::LegJoined { leg, feed }, Level::INFO, "a multicast leg is received"),
            (SiteEvent::RepairChannel { leg, open: true }, Level::INFO, "repaired by UDP"),
            (SiteEvent::RepairChannel { leg, open: false }, Level::WARN, "repaired by the session"),
            (SiteEvent::Dead, Level::WARN, "hub:1"),
            (SiteEvent::Lost { key, reason: "gone".to_owned() }, Level::ERROR, "a product is lost here"),
            (SiteEvent::Violation("no".to_owned()), Level::ERROR, "the hub broke the protocol: no"),
        ] {
            let lines = logged(event);
            assert_eq!(lines.len(), 1);
            assert!(lines[0].0 == level && lines[0].1.contains(says), "{lines:?}");
        }
    }
}
