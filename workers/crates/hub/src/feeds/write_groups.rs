//! The groups in which a feed's writer appends, so that many small products share one write, one synchronisation and
//! one wake-up.

/// Products whose bytes are in memory, not yet appended. `W` is the driver's handle of a queued product, `P` the
/// product as the log takes it.
#[derive(Debug)]
pub struct WriteGroup<W, P> {
    waiting: Vec<W>,
    products: Vec<P>,
    bytes: usize,
}

impl<W, P> Default for WriteGroup<W, P> {
    fn default() -> Self {
        Self { waiting: Vec::new(), products: Vec::new(), bytes: 0 }
    }
}

impl<W, P> WriteGroup<W, P> {
    /// Adds a product of so many bytes; true if the group has to be appended now.
    pub fn add(&mut self, waiting: W, product: P, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push(waiting);
        self.products.push(product);
        self.bytes >= GROUP_BYTES
    }

    /// Takes the group, in the order of arrival; `None` if it is empty.
    pub fn take(&mut self) -> Option<(Vec<W>, Vec<P>)> {
        let Self { waiting, products, .. } = std::mem::take(self);
        (!products.is_empty()).then_some((waiting, products))
    }
}

/// The most products of a group: a larger one would make the first product of a burst wait for the last.
pub const GROUP_PRODUCTS: usize = 256;
/// Larger products are copied from their files without being read into memory.
pub const AT_HAND_BYTES: u64 = 256 << 10;
const GROUP_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_appended_in_their_order_with_their_senders() {
        let mut group = WriteGroup::default();
        assert!(group.take().is_none());
        assert!(!group.add("first", 1, 10) && !group.add("second", 2, 10));
        assert_eq!(group.take(), Some((vec!["first", "second"], vec![1, 2])));
        assert_eq!(group.take(), None::<(Vec<&str>, Vec<i32>)>);
    }

    #[test]
    fn a_group_is_full_at_its_bytes_and_begins_anew() {
        let mut group = WriteGroup::default();
        assert!(!group.add((), (), GROUP_BYTES - 1));
        assert!(group.add((), (), 1));
        assert_eq!(group.take().map(|(waiting, _)| waiting.len()), Some(2));
        assert!(!group.add((), (), 1), "the bytes of the former group are forgotten");
        assert!(group.add((), (), usize::MAX));
    }
}
