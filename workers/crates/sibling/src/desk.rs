//! The giving role.
use std::collections::BTreeMap;

use downburst_model::{Epoch, FeedName, Micros, Now, RangeSet, SiteName};
use downburst_session::{Fingerprint, SiblingGrant, SiblingTerms, Ticket};

use crate::ceiling::{Ceiling, Spent};
use crate::wire::Refusal;

/// The session from which a grant came; grants end with it.
pub type Owner = u64;

/// The number of a running transfer; none has it again.
pub type TransferId = u64;

/// What siblings may fetch from this site, and how much of it.
///
/// | ticket   | input                        | next    | answer                                |
/// |----------|------------------------------|---------|---------------------------------------|
/// | -        | `grant`                      | granted |                                       |
/// | -        | `redeem`                     | -       | `Wait`: the grant may be on its way   |
/// | granted  | `redeem`, right certificate  | running | `Give`                                |
/// | granted  | `redeem`, another one        | granted | `Refused`                             |
/// | granted  | its time is over             | -       |                                       |
/// | running  | `may_send`                   | running | when the bytes may go                 |
/// | any      | `withdraw`, `left`, terms off | -       | `may_send` is refused                 |
#[derive(Debug)]
pub struct Desk {
    terms: BTreeMap<Owner, SiblingTerms>,
    granted: BTreeMap<Ticket, Granted>,
    running: BTreeMap<TransferId, (Owner, Ticket)>,
    last: TransferId,
    ceiling: Ceiling,
}

#[derive(Debug)]
struct Granted {
    owner: Owner,
    grant: SiblingGrant,
    ends: Micros,
}

/// The answer to a ticket.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Give these products.
    Give(Transfer),
    /// The ticket is not known yet.
    Wait,
    /// Give nothing.
    Refused(Refusal),
}

/// Products to give.
#[derive(Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the transfer.
    pub id: TransferId,
    /// The sibling, for the log.
    pub sibling: SiteName,
    /// The feed.
    pub feed: FeedName,
    /// The epoch of the hub's log.
    pub epoch: Epoch,
    /// The numbers of the products.
    pub sequences: RangeSet,
}

impl Desk {
    /// A desk whose uploads of the day were these.
    pub fn new(spent: Spent) -> Self {
        Self {
            terms: BTreeMap::new(),
            granted: BTreeMap::new(),
            running: BTreeMap::new(),
            last: 0,
            ceiling: Ceiling::resumed(spent),
        }
    }

    /// Takes the terms of a session's hub. Off: all of its grants and transfers end.
    pub fn set_terms(&mut self, owner: Owner, terms: SiblingTerms) {
        self.terms.insert(owner, terms);
        if !terms.on {
            self.left(owner);
        }
    }

    /// The session ended: so do its grants and transfers.
    pub fn left(&mut self, owner: Owner) {
        self.terms.remove(&owner);
        self.granted.retain(|_, granted| granted.owner != owner);
        self.running.retain(|_, (of, _)| *of != owner);
    }

    /// Takes a grant. Beyond [`MOST_GRANTS`] it is ignored: the sibling gets the products from the hub.
    pub fn grant(&mut self, now: Micros, owner: Owner, grant: SiblingGrant) {
        self.granted.retain(|_, granted| granted.ends > now);
        let is_on = self.terms.get(&owner).is_some_and(|terms| terms.on);
        if is_on && self.granted.len() < MOST_GRANTS {
            let ends = now.plus(GRANT_LIFE);
            self.granted.insert(grant.ticket.clone(), Granted { owner, grant, ends });
        }
    }

    /// Ends these grants, and the transfers under them.
    pub fn withdraw(&mut self, tickets: &[Ticket]) {
        for ticket in tickets {
            self.granted.remove(ticket);
            self.running.retain(|_, (_, running)| running != ticket);
        }
    }

    /// Takes the ticket of a sibling that shows a certificate. A ticket is good for one transfer.
    pub fn redeem(&mut self, now: Micros, ticket: &Ticket, shown: &Fingerprint) -> Answer {
        let Some(granted) = self.granted.get(ticket) else { return Answer::Wait };
        if granted.ends <= now || granted.grant.fingerprint != *shown {
            return Answer::Refused(Refusal::Ticket);
        }
        if self.running.len() >= MOST_TRANSFERS {
            return Answer::Refused(Refusal::Busy);
        }
        let Some(Granted { owner, grant, .. }) = self.granted.remove(ticket) else { return Answer::Wait };
        self.last = self.last.saturating_add(1);
        self.running.insert(self.last, (owner, ticket.clone()));
        let SiblingGrant { sibling, feed, epoch, sequences, .. } = grant;
        Answer::Give(Transfer { id: self.last, sibling, feed, epoch, sequences })
    }

    /// Checks that a whole product of this size may be begun: a refusal can't be sent in the middle of one.
    ///
    /// # Errors
    ///
    /// The refusal, if the transfer was withdrawn or the day's budget has no room for it.
    pub fn may_begin(&mut self, now: Now, transfer: TransferId, size: u64) -> Result<(), Refusal> {
        let (owner, _) = self.running.get(&transfer).ok_or(Refusal::Withdrawn)?;
        let most = self.terms.get(owner).ok_or(Refusal::Withdrawn)?.upload_bytes_per_day;
        if self.ceiling.has_room(now, size, most) { Ok(()) } else { Err(Refusal::DayIsSpent) }
    }

    /// Books bytes of a transfer; returns the time before which they must not be sent.
    ///
    /// # Errors
    ///
    /// The refusal, if the transfer was withdrawn or the day's budget is spent.
    pub fn may_send(&mut self, now: Now, transfer: TransferId, bytes: u64) -> Result<Micros, Refusal> {
        let (owner, _) = self.running.get(&transfer).ok_or(Refusal::Withdrawn)?;
        let terms = self.terms.get(owner).copied().ok_or(Refusal::Withdrawn)?;
        if !self.ceiling.has_room(now, bytes, terms.upload_bytes_per_day) {
            return Err(Refusal::DayIsSpent);
        }
        Ok(self.ceiling.book(now, bytes, terms.upload_bytes_per_second))
    }

    /// True until the transfer is withdrawn or over.
    pub fn runs(&self, transfer: TransferId) -> bool {
        self.running.contains_key(&transfer)
    }

    /// A transfer is over.
    pub fn over(&mut self, transfer: TransferId) {
        self.running.remove(&transfer);
    }

    /// The uploads of the day.
    pub fn spent(&self) -> Spent {
        self.ceiling.spent()
    }
}

/// The validity of a grant: several round trips and a handshake on the worst path.
pub const GRANT_LIFE: Micros = Micros::from_secs(30);

/// The most grants that wait for their sibling.
const MOST_GRANTS: usize = 1_024;

/// The most transfers at the same time.
const MOST_TRANSFERS: usize = 32;

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;

    use super::*;

    const SHOWN: Fingerprint = Fingerprint([9; 32]);
    const TERMS: SiblingTerms =
        SiblingTerms { on: true, upload_bytes_per_second: 1_000, upload_bytes_per_day: 5_000 };

    fn at(secs: u64) -> Now {
        Now { monotonic: Micros::from_secs(secs), wall: WallMicros(0) }
    }

    fn grant(ticket: u8) -> SiblingGrant {
        SiblingGrant {
            ticket: Ticket([ticket; 16]),
            sibling: SiteName::parse("oslo").unwrap(),
            fingerprint: SHOWN,
            feed: FeedName::parse("NGRID").unwrap(),
            epoch: Epoch(1),
            sequences: [(3, 5)].into_iter().collect(),
        }
    }

    fn desk() -> Desk {
        let mut desk = Desk::new(Spent::default());
        desk.set_terms(1, TERMS);
        desk.grant(Micros(0), 1, grant(1));
        desk
    }

    fn given(desk: &mut Desk) -> TransferId {
        match desk.redeem(Micros(1), &Ticket([1; 16]), &SHOWN) {
            Answer::Give(transfer) => transfer.id,
            answer => panic!("{answer:?}"),
        }
    }

    #[test]
    fn a_ticket_is_good_once_for_its_certificate_and_its_time() {
        let (mut desk, ticket) = (desk(), Ticket([1; 16]));
        assert_eq!(desk.redeem(Micros(1), &Ticket([2; 16]), &SHOWN), Answer::Wait);
        let other = Fingerprint([8; 32]);
        assert_eq!(desk.redeem(Micros(1), &ticket, &other), Answer::Refused(Refusal::Ticket));
        given(&mut desk);
        assert_eq!(desk.redeem(Micros(1), &ticket, &SHOWN), Answer::Wait, "used");
        desk.grant(Micros(0), 1, grant(1));
        assert_eq!(desk.redeem(GRANT_LIFE, &ticket, &SHOWN), Answer::Refused(Refusal::Ticket));
    }

    #[test]
    fn withdrawn_grants_end_their_transfers() {
        let ends: [fn(&mut Desk); 3] = [
            |desk| desk.withdraw(&[Ticket([1; 16])]),
            |desk| desk.left(1),
            |desk| desk.set_terms(1, SiblingTerms { on: false, ..TERMS }),
        ];
        for end in ends {
            let mut desk = desk();
            let id = given(&mut desk);
            assert!(desk.runs(id) && desk.may_send(at(1), id, 1).is_ok());
            end(&mut desk);
            assert!(!desk.runs(id));
            assert_eq!(desk.may_send(at(1), id, 1), Err(Refusal::Withdrawn));
            let mut desk = self::desk();
            end(&mut desk);
            assert_eq!(desk.redeem(Micros(1), &Ticket([1; 16]), &SHOWN), Answer::Wait);
        }
    }

    #[test]
    fn another_session_ends_nothing_of_this_one() {
        let mut desk = desk();
        let id = given(&mut desk);
        desk.left(2);
        desk.withdraw(&[Ticket([7; 16])]);
        assert!(desk.runs(id));
    }

    #[test]
    fn the_budget_of_the_day_ends_a_transfer() {
        let mut desk = desk();
        let id = given(&mut desk);
        assert_eq!(desk.may_begin(at(1), id, 5_001), Err(Refusal::DayIsSpent));
        assert_eq!(desk.may_begin(at(1), id, 5_000), Ok(()));
        assert!(desk.may_send(at(1), id, 5_000).is_ok());
        assert_eq!(desk.may_send(at(1), id, 1), Err(Refusal::DayIsSpent));
        assert_eq!(desk.spent().bytes, 5_000);
        desk.over(id);
        assert!(!desk.runs(id));
    }

    #[test]
    fn a_site_without_terms_gives_nothing_and_grants_are_bounded() {
        let mut desk = Desk::new(Spent::default());
        desk.grant(Micros(0), 1, grant(1));
        assert_eq!(desk.redeem(Micros(1), &Ticket([1; 16]), &SHOWN), Answer::Wait);
        desk.set_terms(1, TERMS);
        for number in 0..2 * MOST_GRANTS as u128 {
            desk.grant(Micros(0), 1, SiblingGrant { ticket: Ticket(number.to_be_bytes()), ..grant(0) });
        }
        assert_eq!(desk.granted.len(), MOST_GRANTS);
        for number in 0..MOST_TRANSFERS as u128 {
            desk.redeem(Micros(1), &Ticket(number.to_be_bytes()), &SHOWN);
        }
        let next = Ticket((MOST_TRANSFERS as u128).to_be_bytes());
        assert_eq!(desk.redeem(Micros(1), &next, &SHOWN), Answer::Refused(Refusal::Busy));
    }
}
