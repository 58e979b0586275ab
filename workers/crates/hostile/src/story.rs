use crate::dice::{Dice, Temper};

/// What one hostile session does, beside what it says.
#[derive(Clone, Debug)]
pub struct Story {
    /// Throws of this session.
    pub dice: Dice,
    /// How much of what it says is absurd.
    pub temper: Temper,
    /// How it begins.
    pub opening: Opening,
    /// How many frames it says.
    pub frames: u64,
    /// Every frame is said twice.
    pub doubles: bool,
    /// It waits for the hub's words after so many frames; 0: never.
    pub reads_each: u64,
    /// It stays connected and silent, milliseconds.
    pub lingers_ms: u64,
    /// How it ends.
    pub ending: Ending,
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A hello with its own credential.
    Hello,
    /// A hello with a token or credential that does not exist, or another site's name.
    Stranger,
    /// Other frames before its hello.
    Early,
    /// Two hellos, one behind the other.
    Twice,
    /// As a data connection, with a ticket of its own making.
    Attach,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The stream ends, and what the hub still says is read.
    Orderly,
    /// The connection breaks.
    Broken,
    /// It breaks within a frame.
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
