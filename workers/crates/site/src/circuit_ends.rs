//! The ends of circuits at a site, as its hub orders them: which interfaces they may use, which stand, and when they
//! go. All that is made goes when the site ends.
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use downburst_model::{Machine, Micros, Now};
use downburst_session::{CircuitFault, CircuitOffer, CircuitState};

/// The ends that one hub has at this site.
///
/// Its driver carries out one output at a time, and answers each but [`EndsOutput::State`] and [`EndsOutput::Over`]
/// with one input; orders may come meanwhile.
#[derive(Debug)]
pub struct CircuitEnds {
    /// The interfaces that the hub may use; none: the site takes part in no circuits.
    ports: Vec<String>,
    held: BTreeMap<u32, CircuitOffer>,
    orders: VecDeque<EndsOrder>,
    raising: Option<CircuitOffer>,
    outputs: VecDeque<EndsOutput>,
    /// The last output has no answer yet.
    is_asking: bool,
    /// When it was looked last for ends that are over.
    looked_at: Micros,
    closing: Closing,
}

/// What happened to the ends of circuits.
#[derive(Debug)]
pub enum EndsInput {
    /// The hub orders something.
    Order(EndsOrder),
    /// Answers [`EndsOutput::Raise`].
    Raised(Raising),
    /// Answers [`EndsOutput::Sweep`] and [`EndsOutput::Clear`], whatever became of that.
    Cleared,
    /// The site ends.
    Close,
}

/// What a hub orders.
#[derive(Debug)]
pub enum EndsOrder {
    /// Make an end, or change the one of its lease.
    Make(Box<CircuitOffer>),
    /// Take away the end of this lease.
    End(u32),
}

/// What became of an end that was to be made.
#[derive(Debug)]
pub enum Raising {
    /// It stands, and answers.
    Up,
    /// The offer makes no sense; the end that had its lease before stays.
    Unreadable,
    /// The kernel did not make it.
    Failed(CircuitFault),
    /// It stands, and nothing can listen for probes there.
    Unheard {
        /// The site's address inside the circuit.
        address: IpAddr,
        /// Why.
        error: String,
    },
}

/// What is to be done about the ends of circuits.
#[derive(Debug, PartialEq, Eq)]
pub enum EndsOutput {
    /// Take away all that lies on the host under the site's mark: an earlier process may have left it.
    Sweep,
    /// Make this end. The one that had its lease before gives up the address first.
    Raise(Box<CircuitOffer>),
    /// Take the end of this lease away.
    Clear(u32),
    /// How an end stands, for the hub that ordered it.
    State(CircuitState),
    /// Everything is taken away.
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
    /// No end stands; what an earlier process left is taken away first. `ports` are the interfaces that the hub may
    /// use.
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

    /// Takes the next order; false: there is nothing to do.
    fn advance(&mut self, now: Now) -> bool {
        match self.orders.pop_front() {
            Some(EndsOrder::Make(offer)) => self.make(offer),
            Some(EndsOrder::End(lease)) => self.end(lease),
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

    /// The site's administrator says which interfaces the hub may use.
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

    /// The hub says so as well, unless it is away.
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

    /// When it is looked next for ends that are over.
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

/// The hub's clock gives the time of the end; the site's may be wrong by so much without cutting a circuit early.
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
            hub_address: "10.0.0.1/30".to_owned(),
            until: until.map(WallMicros),
        }
    }

    fn at(seconds: u64) -> Now {
        Now { monotonic: Micros::from_secs(seconds), wall: WallMicros(seconds as i64 * 1_000_000) }
    }

    fn make(ends: &mut CircuitEnds, now: Now, offer: CircuitOffer) {
        ends.handle(now, EndsInput::Order(EndsOrder::Make(Box::new(offer))));
    }

    /// Carries out all outputs, each with this result; short words for what was done.
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
