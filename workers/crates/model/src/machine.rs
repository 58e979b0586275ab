use crate::{Micros, Now};

/// A protocol machine: time and bytes come in, outputs are polled.
///
/// The contract in one line: after every [`handle`](Machine::handle), and whenever [`deadline`](Machine::deadline) has
/// passed, poll until `None`; between those moments nothing changes.
pub trait Machine {
    /// What the outside tells the machine.
    type Input;
    /// What the machine asks of the outside.
    type Output;

    /// Takes one input. Outputs that follow from it wait for [`poll`](Machine::poll).
    fn handle(&mut self, now: Now, input: Self::Input);

    /// Returns the next output due at `now`, or `None` when there is nothing to do until the next input or deadline.
    fn poll(&mut self, now: Now) -> Option<Self::Output>;

    /// The monotonic time at which [`poll`](Machine::poll) has something to say even without a new input.
    fn deadline(&self) -> Option<Micros>;
}
