//! The bounds of messages about repair between sites. A hub sends them.
use super::{check_product, number, ranges};
use crate::frame::Message;
use crate::{MOST_REFERRED, MOST_WITHDRAWN, Referral, SiblingTerms, SiblingWithdrawn};

/// Checks a message about siblings; others pass.
pub(super) fn check(message: &Message) -> Result<(), String> {
    match message {
        Message::Referral(referral) => check_referral(referral),
        Message::SiblingGrant(grant) => ranges("sequences", "a sibling's grant", &grant.sequences),
        Message::SiblingTerms(terms) => check_terms(terms),
        Message::SiblingWithdrawn(withdrawn) => check_withdrawn(withdrawn),
        _ => Ok(()),
    }
}

/// Checks a referral: at least one product, of one feed and epoch, by rising numbers.
fn check_referral(referral: &Referral) -> Result<(), String> {
    if referral.items.is_empty() || referral.items.len() > MOST_REFERRED {
        let many = referral.items.len();
        return Err(format!("a referral has {many} products; it has 1 to {MOST_REFERRED}"));
    }
    if referral.address.len() > ADDRESS_BYTES {
        return Err(format!("`address` of a referral is longer than {ADDRESS_BYTES} bytes"));
    }
    for item in &referral.items {
        check_product(&item.info)?;
        number("previous", "a referred product", item.previous.0)?;
        number("to", "a referred product", item.to.map_or(0, |to| to.0))?;
    }
    let rises = referral.items.is_sorted_by(|one, next| {
        let (one, next) = (&one.info.key, &next.info.key);
        one.feed == next.feed && one.epoch == next.epoch && one.sequence < next.sequence
    });
    if rises {
        Ok(())
    } else {
        Err("the products of a referral are not of one feed in their order".to_owned())
    }
}

/// Checks the terms of a site.
fn check_terms(terms: &SiblingTerms) -> Result<(), String> {
    number("upload_bytes_per_second", "the terms of siblings", terms.upload_bytes_per_second)?;
    number("upload_bytes_per_day", "the terms of siblings", terms.upload_bytes_per_day)
}

/// Checks the number of withdrawn tickets.
fn check_withdrawn(withdrawn: &SiblingWithdrawn) -> Result<(), String> {
    let many = withdrawn.tickets.len();
    if many <= MOST_WITHDRAWN {
        return Ok(());
    }
    Err(format!("{many} grants are withdrawn together; {MOST_WITHDRAWN} are the most"))
}

/// A name of DNS with its port.
const ADDRESS_BYTES: usize = 261;
