//! Orders of resends, in the numbers of the feeds' logs.
use downburst_hub::{ResendKind, ResendLine};
use downburst_log::ProductLog as _;
use downburst_model::Lane;
use downburst_session::{ResendLeft, ResendOrder};

use super::feeds::Feed;

/// What a line asks for, in the numbers of its feed's log as they are now.
pub(super) fn order(feed: &Feed, line: &ResendLine, left: Option<ResendLeft>) -> ResendOrder {
    ResendOrder {
        resend: line.resend,
        feed: line.feed.clone(),
        epoch: feed.epoch(),
        after: feed.log.find_time(line.from_us),
        to: feed.log.find_time(line.to_us),
        lane: match line.kind {
            ResendKind::Resend => Lane::Resend,
            ResendKind::Backfill => Lane::Backfill,
        },
        wanted: line.wanted.clone(),
        had: line.had.clone(),
        within: line.within.clone(),
        left,
    }
}
