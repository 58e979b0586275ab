use crate::story::{Event, Kind, Story};

/// Changes stories; the seed determines everything.
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The story, changed in a few places.
    pub(crate) fn mutant(&mut self, told: &Story) -> Story {
        let mut mutant = told.clone();
        for _ in 0..=self.below(8) {
            self.change(&mut mutant.events);
        }
        mutant
    }

    fn change(&mut self, events: &mut Vec<Event>) {
        let (at, with) = (self.below(events.len()), self.below(events.len()));
        match self.below(12) {
            0 => drop(events.remove(at)),
            1 => events.insert(at, Event { at_us: events[at].at_us, ..events[with].clone() }),
            2 => {
                let end = events.len().min(at + self.below(20));
                drop(events.drain(at.min(events.len() - 1)..end.min(events.len() - 1)));
            }
            3 => events[at].at_us = self.extreme(),
            4 => self.splice(events, at, with),
            5 => self.renumber(&mut events[at]),
            6 => self.flood(events, at),
            _ => self.change_bytes(&mut events[at]),
        }
    }

    /// The end of another event behind the beginning of this one.
    fn splice(&mut self, events: &mut [Event], at: usize, with: usize) {
        let other = events[with].bytes.clone();
        let (cut, from) = (self.below(events[at].bytes.len() + 1), self.below(other.len() + 1));
        events[at].bytes.truncate(cut);
        events[at].bytes.extend_from_slice(&other[from..]);
    }

    /// The same under another packet number, near or extreme, a symbol's or a notice's.
    fn renumber(&mut self, event: &mut Event) {
        let place = match event.kind {
            Kind::Group => 6,
            Kind::Answer => 1,
            _ => 0,
        };
        let number = self.extreme() | (self.next() & 3) << 62;
        if let Some(bytes) = event.bytes.get_mut(place..place + 8) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// The same many times, each with another number.
    fn flood(&mut self, events: &mut Vec<Event>, at: usize) {
        let copies: Vec<Event> = (0..self.below(60))
            .map(|_| {
                let mut copy = events[at].clone();
                self.renumber(&mut copy);
                copy
            })
            .collect();
        events.splice(at..at, copies).for_each(drop);
    }

    fn change_bytes(&mut self, event: &mut Event) {
        // Another mark, key id or leg is refused immediately: most changes are behind the header.
        let header = if event.kind == Kind::Group && self.below(20) > 0 { 14 } else { 0 };
        let bytes = &mut event.bytes;
        if bytes.len() <= header {
            return;
        }
        let place = header + self.below(bytes.len() - header);
        let (value, many) = (self.next() as u8, self.below(12));
        match self.below(6) {
            0 => bytes[place] ^= 1 << (value % 8),
            1 => bytes[place] = [0, 1, 0x7f, 0x80, 0xff, 0x1b, 0x9f][usize::from(value) % 7],
            2 => bytes.truncate(place),
            3 => bytes.splice(place..place, std::iter::repeat_n(value, many)).for_each(drop),
            4 => {
                let number = self.extreme().to_be_bytes();
                number.iter().zip(&mut bytes[place..]).for_each(|(from, to)| *to = *from);
            }
            _ => drop(bytes.drain(place..bytes.len().min(place + many))),
        }
    }

    /// Small, large, or anything.
    fn extreme(&mut self) -> u64 {
        match self.below(6) {
            0 => self.next() % 100,
            1 => self.next() % 100_000,
            2 => u64::MAX - self.next() % 3,
            3 => 1 << self.below(64),
            4 => (1 << self.below(63)) - 1,
            _ => self.next(),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
