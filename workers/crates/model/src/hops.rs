use std::sync::Arc;

use minicbor::{Decode, Encode, decode, encode};

use crate::HubName;

/// The hubs that a product passed, in order: 1 to 16 names, of at most 255 bytes together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hops(Arc<[HubName]>);

impl Hops {
    /// The hops of a product that passed `earlier` and then `hub`; `None` if they exceed the limits.
    pub fn through(earlier: Option<&Self>, hub: HubName) -> Option<Self> {
        let earlier = earlier.map_or([].as_slice(), Self::names);
        Self::of(earlier.iter().cloned().chain([hub]).collect())
    }

    /// The names in order.
    pub fn names(&self) -> &[HubName] {
        &self.0
    }

    /// True if the product passed this hub.
    pub fn contains(&self, hub: &HubName) -> bool {
        self.0.contains(hub)
    }

    fn of(names: Vec<HubName>) -> Option<Self> {
        let bytes: usize = names.iter().map(|name| name.as_str().len()).sum();
        let bounded = (1..=MOST_HOPS).contains(&names.len()) && bytes <= MOST_BYTES;
        bounded.then(|| Self(names.into()))
    }
}

impl<C> Encode<C> for Hops {
    fn encode<W: encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        context: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        e.array(self.0.len() as u64)?;
        self.0.iter().try_for_each(|name| name.encode(e, context))
    }
}

impl<'b, C> Decode<'b, C> for Hops {
    fn decode(d: &mut minicbor::Decoder<'b>, context: &mut C) -> Result<Self, decode::Error> {
        let mut names = Vec::new();
        for name in d.array_iter_with(context)? {
            names.push(name?);
            if names.len() > MOST_HOPS {
                break;
            }
        }
        Self::of(names).ok_or_else(|| decode::Error::message("a product passes 1 to 16 hubs"))
    }
}

/// Trees of hubs are two or three levels deep; a longer path is an undetected loop.
const MOST_HOPS: usize = 16;

/// A multicast manifest with all fields at their maximum length stays below the usual datagram of 1,452 bytes.
const MOST_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(name: &str) -> HubName {
        HubName::parse(name).unwrap()
    }

    #[test]
    fn each_hub_is_appended_and_the_way_survives_cbor() {
        let first = Hops::through(None, hub("a")).unwrap();
        let second = Hops::through(Some(&first), hub("b")).unwrap();
        assert_eq!(second.names(), [hub("a"), hub("b")]);
        assert!(second.contains(&hub("a")) && !second.contains(&hub("c")));
        let bytes = minicbor::to_vec(&second).unwrap();
        assert_eq!(minicbor::decode::<Hops>(&bytes).unwrap(), second);
    }

    #[test]
    fn a_way_is_bounded_in_hops_and_bytes() {
        let way = |name: &str, count: usize| {
            (0..count).try_fold(None, |way: Option<Hops>, _| Hops::through(way.as_ref(), hub(name)).map(Some))
        };
        assert!(way("a", 16).is_some() && way("a", 17).is_none());
        assert!(way(&"x".repeat(51), 5).is_some() && way(&"x".repeat(51), 6).is_none());
    }

    #[test]
    fn what_is_too_long_or_empty_is_refused_on_the_wire() {
        for names in [vec![], vec!["a"; 17], vec!["a", ""]] {
            let bytes = minicbor::to_vec(names).unwrap();
            assert!(minicbor::decode::<Hops>(&bytes).is_err());
        }
    }
}
