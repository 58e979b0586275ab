use crate::dice::{Dice, Temper};

/// The course of one hostile session, apart from the content of its messages.
#[derive(Clone, Debug)]
pub struct Story {
    /// Dice of this session.
    pub dice: Dice,
    /// The share of absurd values.
    pub temper: Temper,
    /// The opening.
    pub opening: Opening,
    /// Number of frames to send.
    pub frames: u64,
    /// True if every frame is sent twice.
    pub doubles: bool,
    /// The session reads the hub's messages after this number of frames; 0: never.
    pub reads_each: u64,
    /// Time for which it stays connected without sending, in milliseconds.
    pub lingers_ms: u64,
    /// The ending.
    pub ending: Ending,
}

/// Openings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A hello with its own credential.
    Hello,
    /// A hello with a token or credential that does not exist, or another site's name.
    Stranger,
    /// Other frames before its hello.
    Early,
    /// Two consecutive hellos.
    Twice,
    /// An attach as a data connection, with an invented ticket.
    Attach,
}

/// Endings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The site ends its stream, and reads the hub's remaining messages.
    Orderly,
    /// The connection breaks.
    Broken,
    /// The connection breaks within a frame.
    Cut,
}

impl Story {
    /// Session `number` of a run with this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut dice = Dice::new(seed, number);
        let temper = [Temper::Calm, Temper::Calm, Temper::Odd, Temper::Wild];
        let temper = dice.pick(&temper).copied().unwrap_or(Temper::Odd);
        let opening = match dice.below(40) {
            0 | 1 => Opening::Stranger,
            2 => Opening::Early,
            3 => Opening::Twice,
            4 => Opening::Attach,
            _ => Opening::Hello,
        };
        let ending = match dice.below(4) {
            0 => Ending::Broken,
            1 => Ending::Cut,
            _ => Ending::Orderly,
        };
        Self {
            temper,
            opening,
            frames: 1 + dice.below(40),
            doubles: dice.one_in(6),
            reads_each: dice.below(6) * 3,
            lingers_ms: if dice.one_in(10) { dice.below(300) } else { 0 },
            ending,
            dice,
        }
    }
}
