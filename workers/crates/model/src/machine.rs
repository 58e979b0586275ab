use crate::{Micros, Now};

/// A protocol machine: its inputs are time and bytes, its outputs are polled.
///
/// The contract in one line: after every [`handle`](Machine::handle), and whenever [`deadline`](Machine::deadline)
/// has passed, poll until `None`; between those times nothing changes.
pub trait Machine {
    /// An input from outside.
    type Input;
    /// A request to the outside.
    type Output;

    /// Takes one input. The resulting outputs wait for [`poll`](Machine::poll).
    fn handle(&mut self, now: Now, input: Self::Input);

    /// Returns the next output due at `now`, or `None` when there is nothing to do until the next input or deadline.
    fn poll(&mut self, now: Now) -> Option<Self::Output>;

    /// The monotonic time at which [`poll`](Machine::poll) has an output even without a new input.
    fn deadline(&self) -> Option<Micros>;
}
