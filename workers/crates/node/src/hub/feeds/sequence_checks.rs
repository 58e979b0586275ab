//! Compares the sequences of a log with those that the agent and the sites remember: a log restored from a backup has
//! lost some. The agent reports its memory before the log takes a product. Sites report theirs in their hello, in
//! case the agent was restored as well.
use std::collections::BTreeMap;
use std::sync::Arc;

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
        let (feed, head) = (&line.feed, log.head());
        let sentence = format!(
            "the log of feed {feed} ends at number {head}, but had given numbers up to {last}: it was replaced by \
             an older copy, or lost its end; the next product gets a number above {above}; products in between must \
             be sent again by their sources",
            head = head.0,
            last = last.0,
            above = above.0,
        );
        hub.fault(sentence, Some(feed));
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
        Some(_) => Sequence(open.log.head().0.saturating_add(BELIEVED_JUMP)),
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
    let (Some(last), given) = (position.settled.last(), open.log.given_to()) else { return Ok(None) };
    if last <= given.0 {
        return Ok(None);
    }
    let (feed, head) = (&position.feed, open.log.head());
    let who = site.map_or_else(|| "a site".to_owned(), |site| format!("site {site}"));
    let told = format!(
        "{who} has numbers up to {last} of feed {feed}, but this log gave none above {given}: was it restored from \
         a backup?",
        given = given.0
    );
    if last - given.0 > BELIEVED_JUMP {
        return Err(format!(
            "{told} This log can't have given that many; nothing was changed; check the site"
        ));
    }
    let done = match open.log.skip_to(Sequence(last)) {
        Ok(()) => format!("The next product gets a number above {last}"),
        Err(error) => format!("Numbers above {last} can't be reserved: {error}"),
    };
    hub.fault(format!("{told} {done}; {}", advice(feed, site, head)), Some(feed));
    Ok(Some(Sequence(last)))
}

fn advice(feed: &FeedName, site: Option<&SiteName>, head: Sequence) -> String {
    format!(
        "products ingested between the restoration and now, up to number {}, may be missing there: `downburst \
         resend --site {} --feed {feed} --from 2h`",
        head.0,
        site.map_or("SITE", SiteName::as_str)
    )
}

/// A site that claims more is wrong or lies: two products a second for some decades of an outage.
const BELIEVED_JUMP: u64 = 1_000_000_000;
