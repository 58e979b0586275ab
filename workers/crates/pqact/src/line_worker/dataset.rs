//! The record of the dataset of a line that publishes.
use std::sync::Arc;

use downburst_actions::{Kind, Rule};
use downburst_model::FeedName;
use downburst_wis2::Publisher;

use super::LineWorker;

impl LineWorker {
    /// Has the record announced when it is due, and reports its faults at the first feed of its rule.
    pub(super) fn tend_record(&mut self) {
        let rules = Arc::clone(&self.rules);
        let found = rules.iter().flat_map(|rules| &rules.rules).find_map(record_of);
        let publisher = found.map(|(_, publisher)| publisher);
        self.announcements.keep_record(publisher, self.shared.clock.wall());
        let feed = found.and_then(|(rule, _)| self.first_feed(rule));
        if found.is_some() && feed.is_none() {
            // A site that has just started; news stay until a feed is there.
            return;
        }
        let Some(fault) = self.announcements.record_news() else { return };
        self.end_record_fault();
        if let (Some(sentence), Some(feed), Some((rule, publisher))) = (fault, feed, found) {
            let rule = rule.place.to_string();
            tracing::error!(rule, "{sentence}");
            self.shared.failed.reports.record(&feed, &rule, &publisher.metadata_id, Some(&sentence));
            self.record_fault = Some((feed, rule));
        }
    }

    /// Ends the report of a fault.
    pub(super) fn end_record_fault(&mut self) {
        if let Some((feed, rule)) = self.record_fault.take() {
            self.shared.failed.reports.record(&feed, &rule, "", None);
        }
    }

    fn first_feed(&self, rule: &Rule) -> Option<FeedName> {
        let logs = self.shared.site.logs();
        let mut feeds = logs.into_iter().map(|(feed, _)| feed);
        feeds.find(|feed| rule.feeds.has(feed, self.shared.types_of(feed)))
    }
}

fn record_of(rule: &Rule) -> Option<(&Rule, &Publisher)> {
    rule.actions.iter().find_map(|action| match &action.kind {
        Kind::Publish(publisher) if publisher.record.is_some() => Some((rule, &**publisher)),
        _ => None,
    })
}
