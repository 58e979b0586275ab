//! The ends of circuits at a site, made and removed on orders of its hub: permitted interfaces, present ends and the
//! times of their removal. All ends are removed when the site ends.
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use downburst_model::{Machine, Micros, Now};
use downburst_session::{CircuitFault, CircuitOffer, CircuitState};

/// The ends of one hub's circuits at this site.
///
/// Its driver carries out one output at a time, and answers each but [`EndsOutput::State`] and [`EndsOutput::Over`]
/// with one input; orders may arrive before the answer.
#[derive(Debug)]
pub struct CircuitEnds {
    /// The interfaces that the hub may use; empty: the site takes part in no circuits.
    ports: Vec<String>,
    held: BTreeMap<u32, CircuitOffer>,
    orders: VecDeque<EndsOrder>,
    raising: Option<CircuitOffer>,
    outputs: VecDeque<EndsOutput>,
    /// True while the last output has no answer.
    is_asking: bool,
    /// The time of the last search for expired ends.
    looked_at: Micros,
    closing: Closing,
}

/// An input for the ends of circuits.
#[derive(Debug)]
pub enum EndsInput {
    /// An order of the hub.
    Order(EndsOrder),
    /// Answers [`EndsOutput::Raise`].
    Raised(Raising),
    /// Answers [`EndsOutput::Sweep`] and [`EndsOutput::Clear`], after success or failure.
    Cleared,
    /// The site ends.
    Close,
}

/// An order of a hub.
#[derive(Debug)]
pub enum EndsOrder {
    /// Make an end, or change the existing one of its lease.
    Make(Box<CircuitOffer>),
    /// Remove the end of this lease.
    End(u32),
    /// Remove all ends but those of these leases.
    KeepOnly(BTreeSet<u32>),
}

/// The result of making an end.
#[derive(Debug)]
pub enum Raising {
    /// It is up, and answers probes.
    Up,
    /// The offer is invalid; the former end of its lease stays.
    Unreadable,
    /// The kernel refused it.
    Failed(CircuitFault),
    /// It is up, but the socket for probes can't be opened there.
    Unheard {
        /// The site's address inside the circuit.
        address: IpAddr,
        /// The reason.
        error: String,
    },
}

/// An operation on the ends of circuits.
#[derive(Debug, PartialEq, Eq)]
pub enum EndsOutput {
    /// Remove everything on the host that has the site's mark: an earlier process may have left it.
    Sweep,
    /// Make this end. The former end of its lease gives up the address first.
    Raise(Box<CircuitOffer>),
    /// Remove the end of this lease.
    Clear(u32),
    /// The state of an end, for the hub that ordered it.
    State(CircuitState),
    /// Everything is removed.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    Wanted,
    Sweeping,
    Over,
}

impl CircuitEnds {
    /// Starts without ends; remains of an earlier process are removed first. `ports` are the
    /// interfaces that the hub may use.
    pub fn new(ports: Vec<String>, now: Micros) -> Self {
        let outputs = if ports.is_empty() { VecDeque::new() } else { [EndsOutput::Sweep].into() };
        Self {
            ports,
            held: BTreeMap::new(),
            orders: VecDeque::new(),
            raising: None,
            outputs,
            is_asking: false,
            looked_at: now,
            closing: Closing::No,
        }
    }

    /// Takes the next order; false if there is nothing to do.
    fn advance(&mut self, now: Now) -> bool {
        match self.orders.pop_front() {
            Some(EndsOrder::Make(offer)) => self.make(offer),
            Some(EndsOrder::End(lease)) => self.end(lease),
            Some(EndsOrder::KeepOnly(leases)) => self.keep_only(&leases),
            None if self.closing == Closing::Wanted => self.sweep(),
            None if self.closing == Closing::Sweeping => {
                self.closing = Closing::Over;
                self.outputs.push_back(EndsOutput::Over);
            }
            None if self.deadline().is_some_and(|due| due <= now.monotonic) => self.end_those_over(now),
            None => return false,
        }
        true
    }

    fn make(&mut self, offer: Box<CircuitOffer>) {
        let lease = offer.lease;
        if self.held.get(&lease) == Some(&*offer) {
            self.outputs.push_back(EndsOutput::State(CircuitState { lease, fault: None }));
        } else if let Some(fault) = self.forbidden(&offer.port) {
            self.outputs.push_back(EndsOutput::State(CircuitState { lease, fault: Some(fault) }));
        } else {
            self.raising = Some(CircuitOffer::clone(&offer));
            self.outputs.push_back(EndsOutput::Raise(offer));
        }
    }

    /// The fault if the site's administrator has not permitted this interface.
    fn forbidden(&self, port: &str) -> Option<CircuitFault> {
        if self.ports.iter().any(|permitted| permitted == port) {
            return None;
        }
        let sentence = match self.ports.as_slice() {
            [] => "the site takes part in no circuits".to_owned(),
            ports => format!("the site lets circuits use {}, not {port}", ports.join(", ")),
        };
        let remedy = format!("start its receiver with --circuits {port}");
        Some(CircuitFault { step: "site".to_owned(), sentence, remedy })
    }

    fn raised(&mut self, raising: Raising) {
        let Some(offer) = self.raising.take() else { return };
        let lease = offer.lease;
        let fault = raising.fault(lease);
        match raising {
            Raising::Up => drop(self.held.insert(lease, offer)),
            Raising::Unreadable => {}
            Raising::Failed(_) | Raising::Unheard { .. } => drop(self.held.remove(&lease)),
        }
        self.outputs.push_back(EndsOutput::State(CircuitState { lease, fault }));
    }

    fn end(&mut self, lease: u32) {
        if self.held.remove(&lease).is_some() {
            self.outputs.push_back(EndsOutput::Clear(lease));
        }
    }

    /// Orders the removal of all others, before the orders that came later.
    fn keep_only(&mut self, leases: &BTreeSet<u32>) {
        for lease in self.held.keys().filter(|lease| !leases.contains(lease)) {
            self.orders.push_front(EndsOrder::End(*lease));
        }
    }

    /// Orders the removal of expired ends. The hub orders the same, unless it is away.
    fn end_those_over(&mut self, now: Now) {
        self.looked_at = now.monotonic;
        let is_over = |offer: &CircuitOffer| {
            offer.until.is_some_and(|until| until.0.saturating_add(CLOCKS_DIFFER_US) <= now.wall.0)
        };
        let over = self.held.iter().filter(|(_, offer)| is_over(offer));
        self.orders.extend(over.map(|(lease, _)| EndsOrder::End(*lease)));
    }

    fn sweep(&mut self) {
        self.closing = Closing::Sweeping;
        self.held.clear();
        if !self.ports.is_empty() {
            self.outputs.push_back(EndsOutput::Sweep);
        }
    }
}

impl Machine for CircuitEnds {
    type Input = EndsInput;
    type Output = EndsOutput;

    fn handle(&mut self, now: Now, input: EndsInput) {
        match input {
            EndsInput::Order(order) => {
                if self.held.is_empty() {
                    self.looked_at = now.monotonic;
                }
                self.orders.push_back(order);
            }
            EndsInput::Raised(raising) => {
                self.is_asking = false;
                self.raised(raising);
            }
            EndsInput::Cleared => self.is_asking = false,
            EndsInput::Close if self.closing == Closing::No => self.closing = Closing::Wanted,
            EndsInput::Close => {}
        }
    }

    fn poll(&mut self, now: Now) -> Option<EndsOutput> {
        if self.is_asking {
            return None;
        }
        while self.outputs.is_empty() {
            if !self.advance(now) {
                return None;
            }
        }
        let output = self.outputs.pop_front();
        self.is_asking = !matches!(output, Some(EndsOutput::State(_) | EndsOutput::Over));
        output
    }

    /// The time of the next search for expired ends.
    fn deadline(&self) -> Option<Micros> {
        (!self.held.is_empty()).then(|| self.looked_at.plus(LOOK_INTERVAL))
    }
}

impl Raising {
    fn fault(&self, lease: u32) -> Option<CircuitFault> {
        match self {
            Self::Up => None,
            Self::Unreadable => Some(CircuitFault {
                step: "site".to_owned(),
                sentence: format!("the hub's offer of circuit {lease} can't be read"),
                remedy: "bring the nodes of hub and site to one release".to_owned(),
            }),
            Self::Failed(fault) => Some(fault.clone()),
            Self::Unheard { address, error } => Some(CircuitFault {
                step: "address".to_owned(),
                sentence: format!("the site can't listen for probes at {address}: {error}"),
                remedy: format!("free UDP port 7372 at {address}"),
            }),
        }
    }
}

const LOOK_INTERVAL: Micros = Micros::from_secs(1);

/// The end of a circuit is a time of the hub's clock; the site's clock may differ by this much without cutting the
/// circuit early.
const CLOCKS_DIFFER_US: i64 = 5_000_000;

#[cfg(test)]
mod tests {
    use downburst_model::WallMicros;
    use downburst_session::{CircuitWay, Ticket};

    use super::*;

    fn offer(lease: u32, until: Option<i64>) -> CircuitOffer {
        CircuitOffer {
            lease,
            port: "eth1".to_owned(),
            way: CircuitWay::Tag(100),
            address: "10.0.0.2/30".to_owned(),
            rate_bps: 0,
            soft: false,
            burst_bytes: None,
            port_rate_bps: None,
            secret: Ticket([1; 16]),
            peer_address: "10.0.0.1".to_owned(),
            until: until.map(WallMicros),
            watches: None,
            transit: None,
        }
    }

    fn at(seconds: u64) -> Now {
        Now { monotonic: Micros::from_secs(seconds), wall: WallMicros(seconds as i64 * 1_000_000) }
    }

    fn make(ends: &mut CircuitEnds, now: Now, offer: CircuitOffer) {
        ends.handle(now, EndsInput::Order(EndsOrder::Make(Box::new(offer))));
    }

    /// Carries out all outputs, each with this result; returns a short text for each.
    fn drive(ends: &mut CircuitEnds, now: Now, mut raising: impl FnMut() -> Raising) -> Vec<String> {
        let mut done = Vec::new();
        while let Some(output) = ends.poll(now) {
            let (word, answer) = match output {
                EndsOutput::Sweep => ("sweep".to_owned(), Some(EndsInput::Cleared)),
                EndsOutput::Raise(offer) => {
                    (format!("raise {}", offer.lease), Some(EndsInput::Raised(raising())))
                }
                EndsOutput::Clear(lease) => (format!("clear {lease}"), Some(EndsInput::Cleared)),
                EndsOutput::State(CircuitState { lease, fault }) => {
                    (format!("{lease}: {}", fault.map_or("up".to_owned(), |fault| fault.sentence)), None)
                }
                EndsOutput::Over => ("over".to_owned(), None),
            };
            if answer.is_some() {
                assert_eq!(ends.poll(now), None, "one at a time");
            }
            done.push(word);
            answer.into_iter().for_each(|answer| ends.handle(now, answer));
        }
        done
    }

    fn ends() -> CircuitEnds {
        CircuitEnds::new(vec!["eth1".to_owned()], Micros(0))
    }

    #[test]
    fn an_end_is_made_once_and_its_change_makes_it_anew() {
        let mut ends = ends();
        make(&mut ends, at(0), offer(7, None));
        assert_eq!(drive(&mut ends, at(0), || Raising::Up), ["sweep", "raise 7", "7: up"]);
        make(&mut ends, at(1), offer(7, None));
        assert_eq!(drive(&mut ends, at(1), || Raising::Up), ["7: up"]);
        make(&mut ends, at(1), offer(7, Some(9)));
        ends.handle(at(1), EndsInput::Order(EndsOrder::End(7)));
        ends.handle(at(1), EndsInput::Order(EndsOrder::End(7)));
        assert_eq!(drive(&mut ends, at(1), || Raising::Up), ["raise 7", "7: up", "clear 7"]);
        assert_eq!(ends.deadline(), None);
    }

    #[test]
    fn ends_that_the_hub_gave_up_meanwhile_are_removed_and_later_orders_count() {
        let mut ends = ends();
        for lease in [7, 8, 9] {
            make(&mut ends, at(1), offer(lease, None));
        }
        drive(&mut ends, at(1), || Raising::Up);
        ends.handle(at(2), EndsInput::Order(EndsOrder::KeepOnly([8, 99].into())));
        make(&mut ends, at(2), offer(9, None));
        let done = drive(&mut ends, at(2), || Raising::Up);
        assert_eq!(done, ["clear 9", "clear 7", "raise 9", "9: up"]);
    }

    #[test]
    fn only_interfaces_that_the_administrator_named_are_used() {
        let mut none = CircuitEnds::new(Vec::new(), Micros(0));
        make(&mut none, at(0), offer(7, None));
        assert_eq!(drive(&mut none, at(0), || Raising::Up), ["7: the site takes part in no circuits"]);
        none.handle(at(0), EndsInput::Close);
        assert_eq!(drive(&mut none, at(0), || Raising::Up), ["over"], "there is nothing to sweep");
        let mut other = CircuitEnds::new(vec!["a".to_owned(), "b".to_owned()], Micros(0));
        make(&mut other, at(0), offer(7, None));
        let done = drive(&mut other, at(0), || Raising::Up);
        assert_eq!(done, ["sweep", "7: the site lets circuits use a, b, not eth1"]);
    }

    #[test]
    fn an_end_goes_after_its_time_whether_or_not_the_hub_says_so() {
        let mut ends = ends();
        make(&mut ends, at(0), offer(7, Some(10_000_000)));
        make(&mut ends, at(0), offer(8, None));
        drive(&mut ends, at(0), || Raising::Up);
        assert_eq!(ends.deadline(), Some(Micros::from_secs(1)));
        assert_eq!(drive(&mut ends, at(14), || Raising::Up), [""; 0], "clocks differ");
        assert_eq!(drive(&mut ends, at(15), || Raising::Up), ["clear 7"]);
        assert_eq!(ends.deadline(), Some(Micros::from_secs(16)));
    }

    #[test]
    fn a_fault_is_reported_and_the_former_end_counts_only_if_the_offer_made_no_sense() {
        let [step, no, remedy] = ["kernel", "no", "none"].map(str::to_owned);
        let failed = Raising::Failed(CircuitFault { step, sentence: no, remedy });
        let (address, error) = (IpAddr::from([10, 0, 0, 2]), "it is in use".to_owned());
        for (sentence, raising, stays) in [
            ("the hub's offer of circuit 7 can't be read", Raising::Unreadable, true),
            ("no", failed, false),
            (
                "the site can't listen for probes at 10.0.0.2: it is in use",
                Raising::Unheard { address, error },
                false,
            ),
        ] {
            let mut ends = ends();
            make(&mut ends, at(0), offer(7, None));
            drive(&mut ends, at(0), || Raising::Up);
            make(&mut ends, at(0), offer(7, Some(5)));
            let mut raising = Some(raising);
            let done = drive(&mut ends, at(0), || raising.take().unwrap());
            assert_eq!(done, ["raise 7".to_owned(), format!("7: {sentence}")]);
            assert_eq!(ends.deadline().is_some(), stays, "{sentence}");
        }
    }

    #[test]
    fn at_the_end_what_was_ordered_is_done_and_then_all_is_swept() {
        let mut ends = ends();
        make(&mut ends, at(0), offer(7, None));
        ends.handle(at(0), EndsInput::Close);
        ends.handle(at(0), EndsInput::Close);
        assert_eq!(drive(&mut ends, at(0), || Raising::Up), ["sweep", "raise 7", "7: up", "sweep", "over"]);
        assert_eq!(drive(&mut ends, at(9), || Raising::Up), [""; 0]);
    }
}
