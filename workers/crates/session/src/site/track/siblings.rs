use downburst_model::{Now, RangeSet};

use super::{Outputs, Track, abandon};

/// Products that siblings give.
impl Track {
    /// The bytes of a pending product are wrong: it begins again. Only the hub's bytes count as its failures.
    pub(in crate::site) fn spoilt(&mut self, now: Now, number: u64, out: &mut Outputs) {
        if let Some(assembly) = self.pending.get_mut(&number) {
            abandon(assembly, out);
            assembly.restart(now);
        }
    }

    /// No more of these comes from a sibling. Returns those that are incomplete: the hub sends them.
    pub(in crate::site) fn sibling_ended(&mut self, awaited: &RangeSet, out: &mut Outputs) -> RangeSet {
        let mut missing = RangeSet::new();
        for number in awaited.iter().flat_map(|(first, last)| first..=last) {
            let Some(assembly) = self.pending.get_mut(&number) else { continue };
            assembly.transfers = assembly.transfers.saturating_sub(1);
            missing.insert(number, number);
            if !assembly.has_source() {
                self.drop_pending(number, out);
            }
        }
        missing
    }
}
