use std::collections::BTreeMap;

use downburst_model::Class;

use crate::carried::{ALL, Carried, Classes, May, PathId};
use crate::class_queue::{ClassQueue, Waiting};
use crate::fair_share::FairShare;

/// One stream: the classes it carries, the products it has begun, and the order of its classes.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    carries: Carried,
    orders: BTreeMap<Class, Order>,
    /// The level of the class served last, before its charge.
    level: u64,
}

/// A class on a stream.
#[derive(Debug, Default)]
struct Order {
    turn: FairShare,
    live: Share,
    late: Share,
    level: u64,
}

/// A lane of a class on a stream.
#[derive(Debug, Default)]
struct Share {
    turn: FairShare,
    /// The begun product; this stream sends it to its end.
    begun: Option<Waiting>,
}

impl Stream {
    pub(crate) fn carries(&self, path: PathId, class: Class) -> bool {
        self.carries.has(path, class)
    }

    /// Sets the classes of a path that this stream carries.
    pub(crate) fn carry(&mut self, path: PathId, classes: Classes) {
        let so_far = self.carries.all();
        for class in classes.without(so_far).iter() {
            // A new class starts at the level of the others, as if it had just become active.
            for live in [true, false] {
                self.awaits(class, live, &ClassQueue::default());
            }
        }
        self.carries.set(path, classes);
    }

    /// A product joins `line`, which the stream carries: a class or lane that was idle here starts at the level
    /// of the others.
    pub(crate) fn awaits(&mut self, class: Class, live: bool, line: &ClassQueue) {
        let level = self.level;
        let waits = |live: bool| line.waits(class, &self.carries, live);
        let order = self.orders.entry(class).or_default();
        if !waits(true) && !waits(false) && !order.has_begun() {
            order.turn.rejoin(level);
        }
        let lane_level = order.level;
        let share = order.share(live);
        if !waits(live) && share.begun.is_none() {
            share.turn.rejoin(lane_level);
        }
    }

    /// The next class among the permitted ones: warnings first, then the one with the lowest level.
    pub(crate) fn next_class(&self, may: May, lines: &BTreeMap<Class, ClassQueue>) -> Option<Class> {
        let waits = |class: &Class| {
            if !may.classes.has(*class) {
                return false;
            }
            let begun = self.orders.get(class).is_some_and(|order| order.may_go_on(may.late));
            let here = |line: &ClassQueue, live: bool| line.waits(*class, &self.carries, live);
            begun || lines.get(class).is_some_and(|line| here(line, true) || (may.late && here(line, false)))
        };
        let level = |class: Class| self.orders.get(&class).map_or(0, |order| order.turn.level());
        let mut waiting = ALL.into_iter().filter(waits).peekable();
        waiting.next_if_eq(&Class::Warning).or_else(|| waiting.min_by_key(|class| (level(*class), *class)))
    }

    /// Takes the next product of the class; the caller returns an unfinished one with [`resume`](Self::resume).
    pub(crate) fn take(
        &mut self,
        class: Class,
        late: bool,
        lines: &mut BTreeMap<Class, ClassQueue>,
    ) -> Option<Waiting> {
        let order = self.orders.entry(class).or_default();
        let mut line = lines.get_mut(&class);
        let waits = |share: &Share, live: bool| {
            share.begun.is_some() || line.as_ref().is_some_and(|line| line.waits(class, &self.carries, live))
        };
        let live = match (waits(&order.live, true), late && waits(&order.late, false)) {
            (true, true) => order.live.turn.level() <= order.late.turn.level(),
            (live, _) => live,
        };
        let share = order.share(live);
        let level = share.turn.level();
        let waiting = share.begun.take().or_else(|| line.as_mut()?.pop(class, &self.carries, live))?;
        order.level = order.level.max(level);
        Some(waiting)
    }

    /// Counts a slice for the lane that was served and for the class.
    pub(crate) fn charge(&mut self, class: Class, live: bool, bytes: usize) {
        let order = self.orders.entry(class).or_default();
        let level = order.turn.level();
        order.share(live).turn.charge(bytes, if live { 1 } else { LATE_COST });
        order.turn.charge(bytes, class_cost(class));
        if class != Class::Warning {
            self.level = self.level.max(level);
        }
    }

    /// Keeps an unfinished product, to be continued on this stream.
    pub(crate) fn resume(&mut self, class: Class, waiting: Waiting) {
        let share = self.orders.entry(class).or_default().share(waiting.live);
        share.begun = Some(waiting);
    }

    /// True if this stream has begun a product and not completed it.
    pub(crate) fn has_begun(&self) -> bool {
        self.orders.values().any(Order::has_begun)
    }

    /// The incomplete products of this stream.
    pub(crate) fn into_begun(self) -> impl Iterator<Item = Waiting> {
        self.orders.into_values().flat_map(|order| [order.live.begun, order.late.begun]).flatten()
    }
}

impl Order {
    fn has_begun(&self) -> bool {
        self.live.begun.is_some() || self.late.begun.is_some()
    }

    fn may_go_on(&self, late: bool) -> bool {
        self.live.begun.is_some() || (late && self.late.begun.is_some())
    }

    fn share(&mut self, live: bool) -> &mut Share {
        if live { &mut self.live } else { &mut self.late }
    }
}

/// The reciprocal of a class's weight.
fn class_cost(class: Class) -> u64 {
    match class {
        Class::Warning | Class::Observation => 1,
        Class::Grid => 2,
        Class::Bulk => 4,
    }
}

/// A late byte counts as this many live ones: while live products wait, late ones of the class get a ninth.
const LATE_COST: u64 = 8;
