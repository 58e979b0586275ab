//! The bounds of a hub's messages: a site trusts its hub's products, but not its arithmetic. Values that no
//! correct hub sends end the session with a violation that names them, before they reach a log, a receipt or a
//! file.
use downburst_model::bounds::{CLOCK_MAX, CLOCK_MIN, OFFSET_MAX_US};
use downburst_model::{LDM_ORIGIN_BYTES_MAX, ProductInfo, WallMicros};

use super::{number, origin, ranges};
use crate::frame::{Frame, Message};
use crate::train::Around;
use crate::{CircuitOffer, ClockReply, FeedHandling, ProductBegin, Train};

/// Checks a frame of a hub; the error is a sentence that names the value.
pub(crate) fn check_frame(frame: &Frame) -> Result<(), String> {
    let checked = match frame {
        Frame::Message(message) => check_message(message),
        Frame::Train(train, around) => check_train(train, *around),
        // Bytes of products already begun, and of packets that are checked when they are opened.
        Frame::Slice { .. } | Frame::Repair { .. } | Frame::Receipts(_) | Frame::Datagrams(_) => Ok(()),
    };
    checked.map_err(|sentence| format!("the hub sent an impossible value: {sentence}"))
}

/// Every kind is listed here, so that a new one gets its bounds. Kinds that only a site sends end the session
/// elsewhere.
fn check_message(message: &Message) -> Result<(), String> {
    match message {
        Message::ProductBegin(begin) => check_begin(begin),
        Message::ResentBegin(resent) => {
            number("resend", "a resent product", resent.resend)?;
            check_begin(&resent.begin)
        }
        Message::Subscriptions(told) => {
            told.heads.iter().try_for_each(|head| number("head", "a feed", head.head.0))
        }
        Message::FeedStart(start) => number("after", "a feed", start.after.0),
        Message::Covered(covered) => {
            number("from", "covered numbers", covered.from.0)?;
            number("to", "covered numbers", covered.to.0)
        }
        Message::Expired(expired) => {
            expired.stored.map_or(Ok(()), |at| clock("stored", "expired products", at))?;
            ranges("sequences", "expired products", &expired.sequences)
        }
        Message::LegJoin(join) => number("rate_bps", "a leg", join.rate_bps),
        Message::RelayLeg(leg) => {
            number("rate_bps", "a leg", leg.rate_bps)?;
            number("sites", "a leg", leg.unicast.as_ref().map_or(0, |unicast| unicast.sites))
        }
        Message::PacketsGone(gone) => ranges("packets", "packets that are gone", &gone.packets),
        Message::ClockReply(reply) => check_clock_reply(reply),
        Message::Handling(handling) => handling.items.iter().try_for_each(check_handling),
        Message::CircuitOffer(offer) => check_circuit(offer),
        Message::CircuitProbe(probe) => super::circuits::check_probe(probe),
        Message::PathProbe(probe) => super::probes::check_order(probe),
        Message::CredentialKept(kept) => kept.ends.map_or(Ok(()), |at| clock("ends", "a credential", at)),
        Message::Ways(ways) => super::relays::check_ways(ways),
        of_siblings!() => super::siblings::check(message),
        Message::Nodes(nodes) => number("version", "the nodes of a hub", nodes.version),
        // Names, texts and tickets, which are looked up, matched or shown; numbers of the hub's own offers.
        Message::Welcome(_)
        | Message::Refused(_)
        | Message::LegLeave(_)
        | Message::NextKey(_)
        | Message::CircuitEnd(_)
        | Message::CircuitSet(_)
        | Message::Mark(_)
        | Message::OpenStream(_)
        | Message::StreamEnded(_)
        | Message::Attached(_)
        | Message::CredentialWanted(_)
        | Message::RelayLegEnd(_) => Ok(()),
        sent_by_site!() => Ok(()),
    }
}

/// Checks all products of a train.
fn check_train(train: &Train, around: Around) -> Result<(), String> {
    number("to", "a train", around.to)?;
    train.cars.iter().try_for_each(|car| check_product(&train.info(car)))
}

/// Checks a product's description, which is part of a message, a train or a leg's manifest.
pub(crate) fn check_product(info: &ProductInfo) -> Result<(), String> {
    let what = "a product";
    number("sequence", what, info.key.sequence.0)?;
    number("size", what, info.size)?;
    origin("created", what, info.created)?;
    clock("stored", what, info.stored)?;
    let Some(stamp) = &info.ldm else { return Ok(()) };
    if !stamp.is_from_ldm() {
        return Err(
            "`feed_type` of a product that an LDM brought is 0, which is not an LDM feed type".to_owned()
        );
    }
    let bytes = info.origin.as_str().len();
    if bytes > LDM_ORIGIN_BYTES_MAX {
        return Err(format!(
            "`origin` of a product that an LDM brought has {bytes} bytes; LDM's have at most {LDM_ORIGIN_BYTES_MAX}"
        ));
    }
    Ok(())
}

fn check_begin(begin: &ProductBegin) -> Result<(), String> {
    begin.previous.map_or(Ok(()), |previous| number("previous", "a product", previous.0))?;
    check_product(&begin.info)
}

fn check_clock_reply(reply: &ClockReply) -> Result<(), String> {
    clock("received", "a compared clock", reply.received)?;
    clock("sent", "a compared clock", reply.sent)
}

fn check_handling(handling: &FeedHandling) -> Result<(), String> {
    time("hold_us", handling.hold_us.unwrap_or(0))?;
    time("max_age_us", u64::try_from(handling.max_age_us.unwrap_or(0)).unwrap_or(u64::MAX))?;
    time("deadline_us", handling.deadline_us.unwrap_or(0))
}

fn check_circuit(offer: &CircuitOffer) -> Result<(), String> {
    number("rate_bps", "a circuit", offer.rate_bps)?;
    number("port_rate_bps", "a circuit", offer.port_rate_bps.unwrap_or(0))?;
    for side in offer.transit.iter().flat_map(|transit| [&transit.near, &transit.far]) {
        number("rate_bps", "a side of a circuit", side.rate_bps)?;
    }
    offer.until.map_or(Ok(()), |at| clock("until", "a circuit", at))
}

fn time(field: &str, value_us: u64) -> Result<(), String> {
    if value_us <= OFFSET_MAX_US {
        return Ok(());
    }
    Err(format!("`{field}` of a feed is not within 0 and {OFFSET_MAX_US} µs"))
}

fn clock(field: &str, what: &str, at: WallMicros) -> Result<(), String> {
    if at.is_on_a_clock() {
        return Ok(());
    }
    Err(format!(
        "`{field}` of {what} is the stamp {}; clocks show {} to {}, the years 1970 to 2199: set the clock of the hub",
        at.0, CLOCK_MIN.0, CLOCK_MAX.0
    ))
}
