use crate::file::{Conversation, Event, Hex, What};

/// Changes conversations, determined by the seed.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns one of the conversations, changed in a few places.
    pub fn mutant(&mut self, golden: &[Conversation]) -> Conversation {
        let mut mutant = copy(&golden[self.below(golden.len())]);
        let other = &golden[self.below(golden.len())];
        for _ in 0..=self.below(4) {
            self.change(&mut mutant, other);
        }
        mutant
    }

    fn change(&mut self, mutant: &mut Conversation, other: &Conversation) {
        let spoken: Vec<usize> =
            (0..mutant.events.len()).filter(|at| bytes(&mutant.events[*at].what).is_some()).collect();
        let at = spoken[self.below(spoken.len())];
        match self.below(8) {
            0 => drop(mutant.events.remove(at)),
            1 => {
                let again = copy_event(&mutant.events[at]);
                mutant.events.insert(at, again);
            }
            2 => self.swap(mutant, &spoken, at),
            3 => self.take_from(mutant, other, at),
            _ => self.change_bytes(mutant, at),
        }
    }

    /// Swaps this frame with another of the conversation.
    fn swap(&mut self, mutant: &mut Conversation, spoken: &[usize], at: usize) {
        let with = spoken[self.below(spoken.len())];
        mutant.events.swap(at, with);
        let (first, second) = (mutant.events[at].at_us, mutant.events[with].at_us);
        (mutant.events[at].at_us, mutant.events[with].at_us) = (second, first);
    }

    /// Inserts a frame of another conversation.
    fn take_from(&mut self, mutant: &mut Conversation, other: &Conversation, at: usize) {
        let from = &other.events[self.below(other.events.len())];
        if bytes(&from.what).is_some() {
            let at_us = mutant.events[at].at_us;
            mutant.events.insert(at, Event { at_us, ..copy_event(from) });
        }
    }

    fn change_bytes(&mut self, mutant: &mut Conversation, at: usize) {
        let (where_to, value, many) = (self.next() as usize, self.next() as u8, self.below(12));
        let which = self.below(7);
        let Some(bytes) = bytes_mut(&mut mutant.events[at].what).filter(|bytes| !bytes.is_empty()) else {
            return;
        };
        let place = where_to % bytes.len();
        match which {
            0 => bytes[place] ^= 1 << (value % 8),
            1 => bytes[place] = [0, 1, 0x7f, 0x80, 0xff, 0x1b, 0x9f][usize::from(value) % 7],
            2 => bytes.truncate(place),
            3 => bytes.splice(place..place, std::iter::repeat_n(value, many)).for_each(drop),
            // An extreme CBOR integer of eight bytes.
            4 => drop(bytes.splice(place..=place, [0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, value])),
            5 => bytes.drain(place..bytes.len().min(place + many)).for_each(drop),
            _ => {
                let body: Vec<u8> = bytes.iter().skip(5).copied().collect();
                *bytes = [&bytes[..bytes.len().min(5)], &body, &body].concat();
            }
        }
        self.mend_length(bytes);
    }

    /// Corrects the length in most mutants, so that the bytes behind it are parsed.
    fn mend_length(&mut self, bytes: &mut [u8]) {
        let length = bytes.len().saturating_sub(5) as u32;
        if bytes.len() >= 5 && self.below(4) > 0 {
            bytes[1..5].copy_from_slice(&length.to_be_bytes());
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn bytes(what: &What) -> Option<&Vec<u8>> {
    match what {
        What::HubSays(Hex(bytes))
        | What::SiteSays(Hex(bytes))
        | What::HubSaysOn { bytes: Hex(bytes), .. }
        | What::SiteSaysOn { bytes: Hex(bytes), .. }
        | What::Datagram { bytes: Hex(bytes), .. } => Some(bytes),
        What::Connect(_)
        | What::Disconnect
        | What::Hub(_)
        | What::StreamStands(_)
        | What::StreamBreaks(_) => None,
    }
}

fn bytes_mut(what: &mut What) -> Option<&mut Vec<u8>> {
    match what {
        What::HubSays(Hex(bytes))
        | What::SiteSays(Hex(bytes))
        | What::HubSaysOn { bytes: Hex(bytes), .. }
        | What::SiteSaysOn { bytes: Hex(bytes), .. }
        | What::Datagram { bytes: Hex(bytes), .. } => Some(bytes),
        What::Connect(_)
        | What::Disconnect
        | What::Hub(_)
        | What::StreamStands(_)
        | What::StreamBreaks(_) => None,
    }
}

fn copy(conversation: &Conversation) -> Conversation {
    serde_json::from_value(serde_json::to_value(conversation).unwrap()).unwrap()
}

fn copy_event(event: &Event) -> Event {
    serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap()
}
