//! Compares the sequences of a log with those that the agent and the sites remember: a log restored from a backup has
//! lost some. The agent reports its memory before the log takes a product. Sites report theirs in their hello, in
//! case the agent was restored as well.
use std::fmt::Display;

use downburst_model::{FeedName, Sequence, SiteName};
use downburst_session::FeedPosition;

/// The message that a log ends before sequences that the agent remembers.
pub fn went_back(feed: &FeedName, head: Sequence, last: Sequence, above: Sequence) -> String {
    format!(
        "the log of feed {feed} ends at number {head}, but had given numbers up to {last}: it was replaced by \
         an older copy, or lost its end; the next product gets a number above {above}; products in between must \
         be sent again by their sources",
        head = head.0,
        last = last.0,
        above = above.0,
    )
}

/// The highest sequence that a site may have of a copy of a shared log, which may lag behind the sequences of another
/// node.
pub fn highest_of_copy(head: Sequence) -> Sequence {
    Sequence(head.0.saturating_add(BELIEVED_JUMP))
}

/// A site's position beyond the sequences that a log assigned: none up to [`last`](Self::last) is assigned from here
/// on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondLog {
    /// The last sequence of the position.
    pub last: Sequence,
    told: String,
    advice: String,
}

/// Compares a position with a log that ends at `head` and assigned sequences up to `given`; `None`: it assigned all of
/// the position.
///
/// # Errors
///
/// The log can't have assigned that many sequences: the position is not accepted.
pub fn beyond_log(
    site: Option<&SiteName>,
    position: &FeedPosition,
    head: Sequence,
    given: Sequence,
) -> Result<Option<BeyondLog>, String> {
    let (feed, last) = (&position.feed, position.settled.last());
    let Some(last) = last.filter(|last| *last > given.0) else { return Ok(None) };
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
    Ok(Some(BeyondLog { last: Sequence(last), told, advice: advice(feed, site, head) }))
}

impl BeyondLog {
    /// The message to the operator, after the log reserved the sequences or failed at it.
    pub fn sentence<E: Display>(&self, reserved: Result<(), E>) -> String {
        let (told, last, advice) = (&self.told, self.last.0, &self.advice);
        let done = match reserved {
            Ok(()) => format!("The next product gets a number above {last}"),
            Err(error) => format!("Numbers above {last} can't be reserved: {error}"),
        };
        format!("{told} {done}; {advice}")
    }
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

#[cfg(test)]
mod tests {
    use downburst_model::{Epoch, RangeSet, WallMicros};

    use super::*;
    use crate::testing::feed;

    fn checked(last: Option<u64>) -> Result<Option<BeyondLog>, String> {
        let mut settled = RangeSet::default();
        if let Some(last) = last {
            settled.insert(1, last);
        }
        let (epoch, newest_stored) = (Epoch(7), WallMicros(0));
        let position = FeedPosition { feed: feed("NGRID"), epoch, settled, newest_stored };
        let oslo = SiteName::parse("oslo").unwrap();
        beyond_log(Some(&oslo), &position, Sequence(90), Sequence(100))
    }

    #[test]
    fn a_position_that_the_log_assigned_is_no_news() {
        assert_eq!(checked(None), Ok(None));
        assert_eq!(checked(Some(100)), Ok(None));
    }

    #[test]
    fn a_position_beyond_the_log_reserves_its_sequences() {
        let beyond = checked(Some(101)).unwrap().unwrap();
        assert_eq!(beyond.last, Sequence(101));
        let sentence = beyond.sentence(Ok::<(), String>(()));
        assert!(sentence.starts_with("site oslo has numbers up to 101 of feed NGRID, but"), "{sentence}");
        assert!(
            sentence.contains("gave none above 100: was it restored from a backup? The next"),
            "{sentence}"
        );
        assert!(sentence.contains("number above 101; products ingested"), "{sentence}");
        assert!(
            sentence.contains("up to number 90") && sentence.contains("--site oslo --feed NGRID"),
            "{sentence}"
        );
        assert!(beyond.sentence(Err("full")).contains("Numbers above 101 can't be reserved: full; products"));
    }

    #[test]
    fn an_impossible_position_changes_nothing() {
        assert!(checked(Some(100 + BELIEVED_JUMP)).is_ok());
        let refused = checked(Some(101 + BELIEVED_JUMP)).unwrap_err();
        assert!(refused.ends_with("nothing was changed; check the site"), "{refused}");
        assert_eq!(highest_of_copy(Sequence(u64::MAX)), Sequence(u64::MAX));
        assert_eq!(highest_of_copy(Sequence(5)).0, 5 + BELIEVED_JUMP);
    }

    #[test]
    fn a_log_that_went_back_is_told_with_its_numbers() {
        let sentence = went_back(&feed("NGRID"), Sequence(3), Sequence(8), Sequence(9));
        assert!(sentence.contains("ends at number 3, but had given numbers up to 8"), "{sentence}");
        assert!(sentence.contains("a number above 9;"), "{sentence}");
    }
}
