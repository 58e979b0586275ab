/// Random numbers from a seed: equal seeds give equal throws.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

/// The share of a session's messages that is absurd. A hub that checks values ends a session at the first
/// wild one, so most sessions are calm enough to get further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// One value of a hundred.
    Calm,
    /// One of ten.
    Odd,
    /// Two of three.
    Wild,
}

impl Dice {
    /// Dice of session `number` in a run with this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self { state: seed };
        dice.state = dice.throw() ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        dice
    }

    /// The next 64 bits (SplitMix64).
    pub fn throw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.throw() % limit.max(1)
    }

    /// True once in `many` throws.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of these items; none if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.below(items.len() as u64);
        items.get(usize::try_from(at).unwrap_or(0))
    }
}

impl Temper {
    /// Returns N if one value in N is absurd.
    pub(crate) fn one_in(self) -> u64 {
        match self {
            Self::Calm => 100,
            Self::Odd => 10,
            Self::Wild => 2,
        }
    }
}
