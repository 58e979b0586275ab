//! The classes that streams carry, by the paths that feeds are assigned to.
use std::collections::BTreeMap;
use std::fmt;

use downburst_model::Class;

/// One of a site's streams. The first one carries control, and the classes that no other stream carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A path of streams. [`Outbox::ride`](crate::Outbox::ride) assigns feeds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// A set of classes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes(u8);

/// The classes that a stream carries of each path.
#[derive(Debug, Default)]
pub(crate) struct Carried(BTreeMap<PathId, Classes>);

/// The permitted products.
#[derive(Clone, Copy, Debug)]
pub struct May {
    /// Products of these classes.
    pub classes: Classes,
    /// True to include the other lanes beside the live one.
    pub late: bool,
}

impl StreamId {
    /// The first stream of a session.
    pub const FIRST: Self = Self(0);
}

impl PathId {
    /// The path of the first stream: the default of every feed.
    pub const FIRST: Self = Self(0);
}

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);

    /// One class.
    pub const fn of(class: Class) -> Self {
        Self(bit(class))
    }

    /// True if the class is in the set.
    pub fn has(self, class: Class) -> bool {
        self.0 & bit(class) != 0
    }

    /// The set with one more class.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self(self.0 | bit(class))
    }

    /// The classes of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The classes that are not in the other set.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Every class.
    pub fn all() -> Self {
        ALL.into_iter().collect()
    }

    /// The classes, most urgent first.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        ALL.into_iter().filter(move |class| self.has(*class))
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Carried {
    pub(crate) fn has(&self, path: PathId, class: Class) -> bool {
        self.0.get(&path).is_some_and(|classes| classes.has(class))
    }

    /// The classes of all paths.
    pub(crate) fn all(&self) -> Classes {
        self.0.values().fold(Classes::NONE, |all, some| all.and(*some))
    }

    pub(crate) fn set(&mut self, path: PathId, classes: Classes) {
        if classes == Classes::NONE {
            self.0.remove(&path);
        } else {
            self.0.insert(path, classes);
        }
    }
}

const fn bit(class: Class) -> u8 {
    match class {
        Class::Warning => 1,
        Class::Observation => 2,
        Class::Grid => 4,
        Class::Bulk => 8,
    }
}

pub(crate) const ALL: [Class; 4] = [Class::Warning, Class::Observation, Class::Grid, Class::Bulk];
