//! Compares the sequences of a log with those that the agent and the sites remember.
use std::collections::BTreeMap;
use std::sync::Arc;

use downburst_hub::feeds::{beyond_log, highest_of_copy, went_back};
use downburst_log::{FeedLog, LogError, ProductLog as _};
use downburst_model::{Epoch, FeedName, Sequence, SiteName};
use downburst_session::{FeedPosition, Hello, Proof};

use crate::hub::Hub;
use crate::hub::feeds::Feed;
use crate::lines::FeedLine;

/// Compares a log with the agent's memory of it. Sequences that the log may have assigned before it was restored are
/// never assigned again.
pub(in crate::hub) fn go_on_above_what_is_remembered(
    hub: &Hub,
    line: &FeedLine,
    log: &FeedLog,
) -> Result<(), LogError> {
    let Some(last) = line.given(log.epoch()) else { return Ok(()) };
    if let Some(above) = log.go_on_above(last)? {
        hub.fault(went_back(&line.feed, log.head(), last, above), Some(&line.feed));
    }
    Ok(())
}

/// Checks the positions in a hello. Sequences that this log never assigned are not assigned from here on. The copy of
/// a shared log assigns none, and may lag behind the products that another node sent. Returns the accepted positions
/// beyond the log's head; the error names a position that can't be accepted.
pub(in crate::hub) fn check(hub: &Hub, hello: &Hello) -> Result<BTreeMap<FeedName, Sequence>, String> {
    let site = match &hello.proof {
        Proof::Credential { site, .. } => Some(site),
        Proof::Token { .. } => None,
    };
    let mut believed = BTreeMap::new();
    for position in &hello.feeds {
        if let Some(last) = check_position(hub, site, position)? {
            believed.insert(position.feed.clone(), last);
        }
    }
    Ok(believed)
}

/// The highest sequence in the log of `epoch` that a site may have; `None` if there is no such log here. The
/// copy of a shared log may lag behind the sequences of another node.
pub(in crate::hub) fn highest(hub: &Hub, feed: &FeedName, epoch: Epoch) -> Option<Sequence> {
    let open = hub.feeds.find(feed).filter(|open| open.log.epoch() == epoch)?;
    Some(match open.shared {
        None => open.log.given_to(),
        Some(_) => highest_of_copy(open.log.head()),
    })
}

fn check_position(
    hub: &Hub,
    site: Option<&SiteName>,
    position: &FeedPosition,
) -> Result<Option<Sequence>, String> {
    let is_ours = |open: &Arc<Feed>| open.log.epoch() == position.epoch && open.shared.is_none();
    let Some(open) = hub.feeds.find(&position.feed).filter(is_ours) else {
        return Ok(None);
    };
    let beyond = beyond_log(site, position, open.log.head(), open.log.given_to())?;
    Ok(beyond.map(|beyond| {
        let reserved = open.log.skip_to(beyond.last);
        hub.fault(beyond.sentence(reserved), Some(&position.feed));
        beyond.last
    }))
}
