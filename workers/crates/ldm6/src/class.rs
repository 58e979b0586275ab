use std::fmt;

use bytes::{BufMut, BytesMut};
use downburst_model::{Pattern, PatternError};
use thiserror::Error;

use crate::product::{PatternText, ProductInfo, Signature};
use crate::wire::xdr::{Malformed, Reader, Xdr, put_opaque};
use crate::{FeedType, Timestamp};

/// A selection of products from feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductSpec {
    /// The feeds.
    pub feeds: FeedType,
    /// An extended regular expression for identifiers.
    pub pattern: PatternText,
}

/// A class of products: a range of creation times, and specs of which at least one must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductClass {
    /// The first creation time.
    pub from: Timestamp,
    /// The last creation time.
    pub to: Timestamp,
    /// At most 32 specs; an empty list selects nothing.
    pub specs: Vec<ProductSpec>,
}

/// Errors in a class.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClassError {
    /// An invalid pattern.
    #[error("{0}")]
    Pattern(#[from] PatternError),
    /// A pattern that is not UTF-8.
    #[error("a pattern is not UTF-8")]
    Encoding,
    /// More specs than LDM allows, with one place reserved for the spec that resumes.
    #[error("{0} specs in a class where LDM allows 31 beside the one it resumes by; split the request")]
    TooMany(usize),
}

impl ProductSpec {
    /// Selects all products of these feeds with a matching identifier.
    pub fn new(feeds: FeedType, pattern: &str) -> Result<Self, crate::TextError> {
        Ok(Self { feeds, pattern: PatternText::new(pattern.to_owned())? })
    }
}

impl ProductClass {
    /// Removes the pseudo-spec with which a downstream names the last product that it received. Its feed type is
    /// none and its pattern a signature.
    pub(crate) fn take_resume(&mut self) -> Option<Signature> {
        let mut resume = None;
        self.specs.retain(|spec| match resume_of(spec) {
            Some(signature) => {
                resume = Some(signature);
                false
            }
            None => true,
        });
        resume
    }

    /// Adds the pseudo-spec with this signature.
    pub(crate) fn put_resume(&mut self, signature: Signature) {
        let pattern = PatternText::cut([RESUME, signature.to_string().as_bytes()].concat());
        self.specs.push(ProductSpec { feeds: FeedType::NONE, pattern });
    }

    /// All feeds of the class.
    pub fn feeds(&self) -> FeedType {
        self.specs.iter().fold(FeedType::NONE, |feeds, spec| feeds.with(spec.feeds))
    }

    /// True if no product can belong to the class.
    pub fn is_empty(&self) -> bool {
        self.specs.iter().all(|spec| spec.feeds.is_none())
    }
}

impl fmt::Display for ProductClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, spec) in self.specs.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}{} {:?}", spec.feeds, spec.pattern)?;
        }
        Ok(())
    }
}

/// A class with compiled patterns.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    from: Timestamp,
    to: Timestamp,
    specs: Vec<(FeedType, Option<Pattern>)>,
}

impl Matcher {
    pub(crate) fn compile(class: &ProductClass) -> Result<Self, ClassError> {
        let specs: Result<_, ClassError> =
            class.specs.iter().map(|spec| Ok((spec.feeds, compiled(&spec.pattern)?))).collect();
        Ok(Self { from: class.from, to: class.to, specs: specs? })
    }

    pub(crate) fn matches(&self, info: &ProductInfo) -> bool {
        if info.arrival < self.from || info.arrival > self.to {
            return false;
        }
        let ident = info.ident.text();
        self.specs.iter().any(|(feeds, pattern)| {
            feeds.meets(info.feed) && pattern.as_ref().is_none_or(|pattern| pattern.matches(&ident))
        })
    }
}

/// Compiles the pattern; none for a pattern that matches everything.
fn compiled(pattern: &PatternText) -> Result<Option<Pattern>, ClassError> {
    let text = std::str::from_utf8(pattern.as_bytes()).map_err(|_| ClassError::Encoding)?;
    if matches!(text, ".*" | "") { Ok(None) } else { Ok(Some(Pattern::parse(text)?)) }
}

fn resume_of(spec: &ProductSpec) -> Option<Signature> {
    let digits = spec.pattern.as_bytes().strip_prefix(RESUME).filter(|_| spec.feeds.is_none())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Xdr for ProductClass {
    fn encode(&self, out: &mut BytesMut) {
        self.from.encode(out);
        self.to.encode(out);
        out.put_u32(u32::try_from(self.specs.len()).unwrap_or(u32::MAX));
        for spec in &self.specs {
            out.put_u32(spec.feeds.bits());
            put_opaque(out, spec.pattern.as_bytes());
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, Malformed> {
        let (from, to) = (Timestamp::decode(reader)?, Timestamp::decode(reader)?);
        let specs = (0..reader.count("a class's specs", MOST_SPECS)?)
            .map(|_| {
                let feeds = FeedType::from_bits(reader.u32()?);
                Ok(ProductSpec { feeds, pattern: reader.text("a pattern")? })
            })
            .collect::<Result<_, Malformed>>()?;
        Ok(Self { from, to, specs })
    }
}

/// Limit of the specs of a class on the wire.
pub(crate) const MOST_SPECS: u32 = 32;

/// Prefix of the signature in the pattern of the pseudo-spec.
const RESUME: &[u8] = b"SIG=";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Ident, LdmOrigin};

    fn class(specs: &[(&str, &str)]) -> ProductClass {
        let specs =
            specs.iter().map(|(feeds, pattern)| ProductSpec::new(feeds.parse().unwrap(), pattern).unwrap());
        ProductClass { from: Timestamp::ZERO, to: Timestamp::END_OF_TIME, specs: specs.collect() }
    }

    fn product(feed: &str, ident: &str) -> ProductInfo {
        ProductInfo {
            feed: feed.parse().unwrap(),
            ident: Ident::new(ident.to_owned()).unwrap(),
            arrival: Timestamp { seconds: 100, micros: 0 },
            ..ProductInfo::default()
        }
    }

    #[test]
    fn one_spec_must_match_feed_and_identifier() {
        let matcher = Matcher::compile(&class(&[("NGRID", "^A"), ("WMO", ".*")])).unwrap();
        assert!(matcher.matches(&product("NGRID", "A1")));
        assert!(!matcher.matches(&product("NGRID", "xA1")));
        assert!(matcher.matches(&product("IDS", "anything")));
        assert!(!matcher.matches(&product("EXP", "A")));
    }

    #[test]
    fn creation_times_bound_a_class_on_both_sides() {
        let mut bounded = class(&[("ANY", ".*")]);
        bounded.from = Timestamp { seconds: 100, micros: 0 };
        bounded.to = bounded.from;
        assert!(Matcher::compile(&bounded).unwrap().matches(&product("IDS", "a")));
        bounded.from.micros = 1;
        assert!(!Matcher::compile(&bounded).unwrap().matches(&product("IDS", "a")));
    }

    #[test]
    fn what_a_downstream_got_last_is_taken_out_of_its_class() {
        let signature = Signature([0xa5; 16]);
        let mut asked = class(&[("ANY", ".*")]);
        asked.put_resume(signature);
        assert_eq!(asked.specs.len(), 2);
        assert_eq!(asked.take_resume(), Some(signature));
        assert_eq!(asked, class(&[("ANY", ".*")]));
        assert_eq!(class(&[("ANY", "SIG=")]).take_resume(), None, "a pattern that is meant");
    }

    #[test]
    fn patterns_that_are_no_text_are_refused() {
        let mut asked = class(&[("ANY", "(")]);
        assert!(matches!(Matcher::compile(&asked), Err(ClassError::Pattern(_))));
        asked.specs[0].pattern = PatternText::new(vec![0xff]).unwrap();
        assert!(matches!(Matcher::compile(&asked), Err(ClassError::Encoding)));
    }

    fn stamp() -> impl Strategy<Value = Timestamp> {
        any::<(i32, i32)>().prop_map(|(seconds, micros)| Timestamp { seconds, micros })
    }

    fn sound_stamp() -> impl Strategy<Value = Timestamp> {
        (0..=i32::MAX, 0..1_000_000).prop_map(|(seconds, micros)| Timestamp { seconds, micros })
    }

    fn bytes(limit: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..=limit)
    }

    fn encoded(value: &impl Xdr) -> bytes::Bytes {
        let mut out = BytesMut::new();
        value.encode(&mut out);
        out.freeze()
    }

    proptest! {
        #[test]
        fn classes_are_read_as_written(
            from in stamp(),
            to in stamp(),
            specs in proptest::collection::vec((any::<u32>(), bytes(255)), 0..=32),
        ) {
            let spec = |(feeds, pattern)| ProductSpec {
                feeds: FeedType::from_bits(feeds),
                pattern: PatternText::new(pattern).unwrap(),
            };
            let class = ProductClass { from, to, specs: specs.into_iter().map(spec).collect() };
            let whole = encoded(&class);
            prop_assert_eq!(whole.len() % 4, 0);
            let mut reader = Reader::new(whole.clone());
            prop_assert_eq!(ProductClass::decode(&mut reader), Ok(class));
            prop_assert!(reader.rest().is_empty());
            let cut = whole.slice(..whole.len() - 1);
            prop_assert_eq!(ProductClass::decode(&mut Reader::new(cut)), Err(Malformed::Short));
        }

        #[test]
        fn descriptions_are_read_as_written(
            arrival in sound_stamp(),
            signature: [u8; 16],
            origin in bytes(64),
            ident in bytes(255),
            (feed, sequence, size) in any::<(u32, u32, u32)>(),
        ) {
            let info = ProductInfo {
                arrival,
                signature: Signature(signature),
                origin: LdmOrigin::new(origin).unwrap(),
                feed: FeedType::from_bits(feed),
                sequence,
                ident: Ident::new(ident).unwrap(),
                size,
            };
            let mut reader = Reader::new(encoded(&info));
            prop_assert_eq!(ProductInfo::decode(&mut reader), Ok(info));
            prop_assert!(reader.rest().is_empty());
        }

        #[test]
        fn any_signature_is_found_in_any_class(signature: [u8; 16], specs in 0_usize..32) {
            let spec = ProductSpec::new(FeedType::ANY, ".*").unwrap();
            let plain = ProductClass {
                from: Timestamp::ZERO,
                to: Timestamp::END_OF_TIME,
                specs: vec![spec; specs],
            };
            let mut asked = plain.clone();
            asked.put_resume(Signature(signature));
            prop_assert_eq!(asked.take_resume(), Some(Signature(signature)));
            prop_assert_eq!(asked, plain);
        }
    }
}
