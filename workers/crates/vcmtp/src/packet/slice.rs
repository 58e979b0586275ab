//! Bytes that know their neighbours: two that follow each other in the same memory become one without a copy.
use std::ops::Deref;

use bytes::Bytes;

/// A part of shared memory.
#[derive(Clone, Default)]
pub(crate) struct Slice {
    memory: Bytes,
    from: usize,
    to: usize,
}

impl Slice {
    /// The bytes `from..to` of the memory; none if that is no part of it.
    pub(crate) fn new(memory: Bytes, from: usize, to: usize) -> Self {
        if from <= to && to <= memory.len() { Self { memory, from, to } } else { Self::default() }
    }

    /// Takes in a slice that follows this one in the same memory; false if it does not.
    pub(crate) fn extend(&mut self, next: &Self) -> bool {
        let is_same = self.memory.as_ptr() == next.memory.as_ptr() && self.memory.len() == next.memory.len();
        let follows = is_same && !self.is_empty() && self.to == next.from;
        if follows {
            self.to = next.to;
        }
        follows
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.get(self.from..self.to).unwrap_or_default()
    }
}

impl From<Bytes> for Slice {
    fn from(memory: Bytes) -> Self {
        let to = memory.len();
        Self { memory, from: 0, to }
    }
}

impl From<Slice> for Bytes {
    fn from(slice: Slice) -> Self {
        let Slice { memory, from, to } = slice;
        if from == 0 && to == memory.len() { memory } else { memory.slice(from..to) }
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl std::fmt::Debug for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_one_memory_are_joined_and_nothing_else_is() {
        let (memory, other) = (Bytes::from(vec![7; 100]), Bytes::from(vec![7; 100]));
        let part = |memory: &Bytes, from: usize, to: usize| Slice::new(memory.clone(), from, to);
        let mut slice = part(&memory, 10, 20);
        for stranger in [part(&other, 20, 30), part(&memory, 21, 30), part(&memory, 5, 10)] {
            assert!(!slice.extend(&stranger));
        }
        assert!(!slice.extend(&Slice::from(memory.slice(20..30))), "it can't be known to follow");
        assert!(slice.extend(&part(&memory, 20, 30)) && slice.extend(&part(&memory, 30, 30)));
        let joined = Bytes::from(slice);
        assert_eq!((joined.as_ptr() as usize - memory.as_ptr() as usize, joined.len()), (10, 20));
    }

    #[test]
    fn a_part_that_does_not_exist_is_empty() {
        let memory = Bytes::from_static(b"0123456789");
        for (from, to) in [(0, 11), (5, 4), (11, 11)] {
            assert_eq!(*Slice::new(memory.clone(), from, to), *b"");
        }
        assert!(!Slice::default().extend(&Slice::new(memory, 0, 5)), "nothing has no successor");
    }
}
