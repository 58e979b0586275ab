//! The bounds of a site's messages (for a hub's, see `from_hub`): values that no correct site sends end its
//! session with a violation that names them, before they are used. The bounds are those of
//! [`downburst_model::bounds`].
use std::net::IpAddr;

use downburst_model::bounds::{CLOCK_MAX, CLOCK_MIN, INTEGER_MAX, OFFSET_MAX_US, ORIGIN_MAX, ORIGIN_MIN};
use downburst_model::{RangeSet, WallMicros};

pub(crate) use from_hub::{check_frame, check_product};

use crate::frame::Message;
use crate::{
    ActionFailed, ClockOffset, Frontier, Hello, LegJoined, LegLeft, LinkedSpace, Nak, Receipt, Receipts,
    RelayLegOpen,
};

/// The kinds that no admitted site sends, as a pattern: a match that lists its own kinds and these has all.
macro_rules! sent_by_hub {
    () => {
        Message::Welcome(_)
            | Message::Refused(_)
            | Message::Subscriptions(_)
            | Message::FeedStart(_)
            | Message::ProductBegin(_)
            | Message::Covered(_)
            | Message::Expired(_)
            | Message::LegJoin(_)
            | Message::LegLeave(_)
            | Message::PacketsGone(_)
            | Message::ClockReply(_)
            | Message::ResentBegin(_)
            | Message::Handling(_)
            | Message::NextKey(_)
            | Message::CircuitOffer(_)
            | Message::CircuitEnd(_)
            | Message::CircuitProbe(_)
            | Message::PathProbe(_)
            | Message::CircuitSet(_)
            | Message::Mark(_)
            | Message::OpenStream(_)
            | Message::Attach(_)
            | Message::Attached(_)
            | Message::CredentialWanted(_)
            | Message::CredentialKept(_)
            | Message::Nodes(_)
            | Message::RelayLeg(_)
            | Message::RelayLegEnd(_)
            | Message::Ways(_)
    };
}

/// The kinds about siblings that only a hub sends, likewise.
macro_rules! of_siblings {
    () => {
        Message::SiblingTerms(_)
            | Message::SiblingGrant(_)
            | Message::SiblingWithdrawn(_)
            | Message::Referral(_)
    };
}

/// The kinds that no hub sends, likewise.
macro_rules! sent_by_site {
    () => {
        Message::Hello(_)
            | Message::LegJoined(_)
            | Message::LegLeft(_)
            | Message::Nak(_)
            | Message::Want(_)
            | Message::Filed(_)
            | Message::ClockRequest(_)
            | Message::Frontier(_)
            | Message::ResentEnded(_)
            | Message::ResentFailed(_)
            | Message::Late(_)
            | Message::KeyTaken(_)
            | Message::CircuitState(_)
            | Message::CircuitHeard(_)
            | Message::CircuitProbed(_)
            | Message::PathProbed(_)
            | Message::Forged(_)
            | Message::Marked(_)
            | Message::Attach(_)
            | Message::Taken(_)
            | Message::HeartbeatOut(_)
            | Message::CredentialOffered(_)
            | Message::CredentialShown(_)
            | Message::RelayLegOpen(_)
            | Message::RelayLegFailed(_)
            | Message::RelayReport(_)
            | Message::SiteClock(_)
            | Message::HostReading(_)
            | Message::SiblingPort(_)
            | Message::ReferralEnded(_)
    };
}

mod circuits;
mod clocks;
mod from_hub;
mod probes;
mod readings;
mod relays;
mod siblings;

/// Checks a message of an admitted site; the error is a sentence that names the value.
///
/// Every kind is listed here, so that a new one gets its bounds. Texts are truncated where they are stored, and
/// kinds that only a hub sends are not valid from a site.
pub(crate) fn check(message: &Message) -> Result<(), String> {
    match message {
        Message::Hello(hello) => check_hello(hello),
        Message::Frontier(frontier) => check_frontier(frontier),
        Message::Filed(filed) => filed.items.iter().try_for_each(check_receipt),
        Message::LegJoined(joined) => check_leg_joined(joined),
        Message::LegLeft(left) => check_leg_left(left),
        Message::Nak(nak) => check_nak(nak),
        Message::Want(want) => ranges("sequences", "a want", &want.sequences),
        Message::HeartbeatOut(out) => {
            number("sequence", "a heartbeat", out.key.sequence.0)?;
            clock("at", "a heartbeat", out.at)
        }
        Message::Late(late) => number("products", "late products", late.products),
        Message::ResentEnded(ended) => {
            number("sequence", "a resent product", ended.key.sequence.0)?;
            number("size", "a resent product", ended.size)
        }
        Message::ResentFailed(failed) => ranges("sequences", "resent products", &failed.sequences),
        Message::RelayReport(report) => relays::check_report(report),
        Message::SiteClock(clock) => clocks::check_site_clock(clock),
        Message::HostReading(reading) => readings::check_host_reading(reading),
        Message::ReferralEnded(ended) => ranges("missing", "a referral", &ended.missing),
        Message::Taken(taken) => number("transfers", "taken transfers", taken.transfers),
        Message::RelayLegOpen(open) => check_relay_leg(open),
        Message::CircuitProbed(probed) => circuits::check_probed(probed),
        Message::PathProbed(probed) => probes::check_said(probed),
        // Echoed unchanged, for the site's own arithmetic.
        Message::ClockRequest(_) => Ok(()),
        // Numbers of the hub's own offers, which are looked up, or texts, which are truncated.
        Message::KeyTaken(_)
        | Message::Forged(_)
        | Message::Marked(_)
        | Message::StreamEnded(_)
        | Message::CircuitState(_)
        | Message::CircuitHeard(_)
        | Message::CredentialOffered(_)
        | Message::CredentialShown(_)
        | Message::SiblingPort(_)
        | Message::RelayLegFailed(_) => Ok(()),
        of_siblings!() | sent_by_hub!() => Ok(()),
    }
}

/// Checks the positions in a hello. Called once the site is known, since the violation carries its name.
pub(crate) fn check_hello(hello: &Hello) -> Result<(), String> {
    if hello.feeds.len() > HELLO_FEEDS {
        let many = hello.feeds.len();
        return Err(format!("its hello lists {many} feeds; at most {HELLO_FEEDS} are allowed"));
    }
    hello.feeds.iter().try_for_each(|position| {
        ranges("settled", "a position", &position.settled)?;
        clock("newest_stored", "a position", position.newest_stored)
    })
}

pub(crate) fn check_receipts(receipts: &Receipts) -> Result<(), String> {
    receipts.clock.as_ref().map_or(Ok(()), check_clock)?;
    receipts.items.iter().try_for_each(check_receipt)
}

fn check_receipt(receipt: &Receipt) -> Result<(), String> {
    let what = "a receipt";
    number("sequence", what, receipt.key.sequence.0)?;
    number("size", what, receipt.size)?;
    origin("created", what, receipt.created)?;
    clock("hub_stored", what, receipt.hub_stored)?;
    clock("last_byte", what, receipt.last_byte)?;
    clock("site_stored", what, receipt.site_stored)?;
    receipt.action_done.map_or(Ok(()), |at| clock("action_done", what, at))
}

fn check_clock(offset: &ClockOffset) -> Result<(), String> {
    length("offset_us", offset.offset_us.unsigned_abs())?;
    length("bound_us", offset.bound_us)?;
    length("round_trip_us", offset.round_trip_us)
}

fn check_frontier(frontier: &Frontier) -> Result<(), String> {
    number("settled_to", "a frontier", frontier.settled_to.0)?;
    number("pending", "a frontier", frontier.pending)?;
    if let Some(LinkedSpace { bytes, free_bytes }) = frontier.linked {
        number("bytes", "linked files", bytes)?;
        number("free_bytes", "linked files", free_bytes)?;
    }
    let Some(ActionFailed { sequence, count, others, .. }) = &frontier.action_failed else {
        return Ok(());
    };
    number("sequence", "a failed action", sequence.0)?;
    number("count", "a failed action", *count)?;
    others.iter().try_for_each(|other| number("others", "a failed action", other.0))
}

fn check_leg_joined(joined: &LegJoined) -> Result<(), String> {
    number("after", "a leg", joined.after.0)?;
    joined.reception.as_ref().map_or(Ok(()), |said| number("buffer_bytes", "a leg", said.buffer_bytes))
}

fn check_leg_left(left: &LegLeft) -> Result<(), String> {
    left.known_to.map_or(Ok(()), |known| number("known_to", "a leg", known.0))
}

fn check_relay_leg(open: &RelayLegOpen) -> Result<(), String> {
    number("mtu_bytes", "a relay's leg", open.mtu_bytes.unwrap_or(0))?;
    match open.source.parse::<IpAddr>() {
        Ok(_) => Ok(()),
        Err(_) => Err("`source` of a relay's leg is no IP address".to_owned()),
    }
}

fn check_nak(nak: &Nak) -> Result<(), String> {
    ranges("packets", "a request for packets", &nak.packets)?;
    nak.heard.map_or(Ok(()), |heard| number("heard", "a request for packets", heard))?;
    nak.losses.map_or(Ok(()), |losses| {
        number("missed", "a request for packets", losses.missed)?;
        number("of", "a request for packets", losses.of)
    })
}

fn ranges(field: &str, what: &str, ranges: &RangeSet) -> Result<(), String> {
    ranges.last().map_or(Ok(()), |last| number(field, what, last))
}

fn number(field: &str, what: &str, value: u64) -> Result<(), String> {
    if value <= INTEGER_MAX {
        return Ok(());
    }
    Err(format!("`{field}` of {what} is {value}; the highest number is {INTEGER_MAX}"))
}

fn length(field: &str, value_us: u64) -> Result<(), String> {
    if value_us <= OFFSET_MAX_US {
        return Ok(());
    }
    Err(format!("`{field}` of a compared clock is {value_us} µs; the longest time is {OFFSET_MAX_US} µs"))
}

fn clock(field: &str, what: &str, at: WallMicros) -> Result<(), String> {
    if at.is_on_a_clock() {
        return Ok(());
    }
    Err(format!(
        "`{field}` of {what} is the stamp {}; clocks show {} to {}, the years 1970 to 2199: set the clock of the site",
        at.0, CLOCK_MIN.0, CLOCK_MAX.0
    ))
}

fn origin(field: &str, what: &str, at: WallMicros) -> Result<(), String> {
    if at.has_a_date() {
        return Ok(());
    }
    Err(format!(
        "`{field}` of {what} is the stamp {}; dates go from {} to {}",
        at.0, ORIGIN_MIN.0, ORIGIN_MAX.0
    ))
}

/// The maximum number of feeds in a hello: a hub has some hundreds, and a site keeps the positions of removed ones.
const HELLO_FEEDS: usize = 4_096;

#[cfg(test)]
mod tests;
