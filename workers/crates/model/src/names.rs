use std::fmt;

use minicbor::{Decode, Encode, decode, encode};
use thiserror::Error;

/// The reason for refusing a name. The text is a whole sentence with the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct NameError(String);

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Checks `text` and stores it.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The text as given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl<C> Encode<C> for $name {
            fn encode<W: encode::Write>(
                &self, e: &mut minicbor::Encoder<W>, _: &mut C,
            ) -> Result<(), encode::Error<W::Error>> {
                e.str(&self.0)?.ok()
            }
        }

        impl<'b, C> Decode<'b, C> for $name {
            fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
                Self::parse(d.str()?).map_err(decode::Error::message)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// The name of a feed: 1 to 64 letters, digits and a few marks, beginning with a letter or digit, for example
    /// `IDS|DDPLUS`.
    FeedName,
    check_feed
);
name!(
    /// The identifier of a product: 1 to 255 bytes of UTF-8 without control characters and without a `..` path
    /// segment.
    ProductId,
    check_product_id
);
name!(
    /// The name of a site: 1 to 63 lower-case letters, digits, dots and dashes, beginning with a letter or digit.
    SiteName,
    check_site
);
name!(
    /// The host that first ingested a product: at most 255 printable ASCII characters.
    Origin,
    check_origin
);

name!(
    /// The name of a hub: 1 to 63 printable ASCII characters.
    HubName,
    check_hub
);

fn check_feed(text: &str) -> Result<(), NameError> {
    if text.is_empty() || text.len() > 64 {
        return refuse(format!(
            "a feed name has 1 to 64 characters, this one has {}; choose a shorter one",
            text.len()
        ));
    }
    if let Some(bad) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !FEED_MARKS.contains(c)) {
        let marks = FEED_MARKS.map(String::from).join(" ");
        return refuse(format!("the feed name {text:?} holds {bad:?}; use letters, digits and {marks}"));
    }
    // A text with a special meaning in paths, patterns, shells and tables is no name: `.`, `..`, `-r`.
    match text.chars().next().filter(|first| !first.is_ascii_alphanumeric()) {
        Some(first) => {
            refuse(format!("the feed name {text:?} begins with {first:?}; begin it with a letter or digit"))
        }
        None => Ok(()),
    }
}

fn check_product_id(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return refuse("the product id is empty; give it 1 to 255 bytes".to_owned());
    }
    if text.len() > 255 {
        return refuse(format!("the product id has {} bytes; the limit is 255, so shorten it", text.len()));
    }
    // Nearly all ids are plain, and the hub and every site check each product's id.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.contains("..") {
        return Ok(());
    }
    if let Some((position, found)) = text.char_indices().find(|(_, c)| c.is_control()) {
        return refuse(format!(
            "the product id holds the control character U+{:04X} at byte {position}; remove it",
            u32::from(found)
        ));
    }
    if text.split(['/', '\\']).any(|segment| segment == "..") {
        return refuse(
            "the product id holds the path segment '..'; an id is a name, not a path; remove it".to_owned(),
        );
    }
    Ok(())
}

fn check_site(text: &str) -> Result<(), NameError> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let good = (1..=63).contains(&text.len())
        && text.bytes().all(allowed)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if good {
        return Ok(());
    }
    refuse(format!(
        "{text:?} can't be a site's name; use 1 to 63 lower-case letters, digits, dots and dashes, a letter or \
         digit first"
    ))
}

fn check_hub(text: &str) -> Result<(), NameError> {
    let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if (1..=63).contains(&text.len()) && text.bytes().all(printable) {
        return Ok(());
    }
    refuse(format!("{text:?} can't be a hub's name; use 1 to 63 printable ASCII characters"))
}

fn check_origin(text: &str) -> Result<(), NameError> {
    if text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    refuse(
        "an origin is a host name of at most 255 printable ASCII characters; shorten or clean it".to_owned(),
    )
}

const FEED_MARKS: [char; 10] = ['|', '_', '.', '-', '+', '~', '!', ':', ',', '@'];

fn refuse(sentence: String) -> Result<(), NameError> {
    Err(NameError(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_ids_are_accepted() {
        for id in [
            "SDUS54 KOUN 161540 /pN0RTLX",
            "data/nccf/com/nam/prod/nam.20071011/nam.t06z.awip1284.tm00.grib2 !grib2/ncep/NAM_84/#000/F084/\
             UREL;VREL/10 m HGHT! 000016",
            "a..b",
            "Wärme",
        ] {
            assert!(ProductId::parse(id).is_ok(), "{id}");
        }
        assert!(FeedName::parse("IDS|DDPLUS").is_ok());
    }

    #[test]
    fn finding_17_what_stands_for_something_else_is_no_name() {
        for bad in [".", "..", "*", "=cmd", "-r", "@SUM(A1)", "+1", "?", "[a]", "~", "'", "a b", "a/b"] {
            assert!(FeedName::parse(bad).is_err(), "{bad}");
            assert!(SiteName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_ids_are_refused_with_the_reason() {
        let long = "x".repeat(256);
        for (id, part) in [
            ("", "empty"),
            (long.as_str(), "256 bytes"),
            ("a\nb", "U+000A at byte 1"),
            ("../etc/passwd", "'..'"),
            ("a/..", "'..'"),
            ("a\\..\\b", "'..'"),
        ] {
            let error = ProductId::parse(id).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn names_survive_cbor_and_bad_ones_are_refused_there_too() {
        let bytes = minicbor::to_vec(FeedName::parse("NGRID").unwrap()).unwrap();
        assert_eq!(minicbor::decode::<FeedName>(&bytes).unwrap().as_str(), "NGRID");
        let bytes = minicbor::to_vec("no blanks").unwrap();
        assert!(minicbor::decode::<FeedName>(&bytes).is_err());
    }

    #[test]
    fn agrees_with_the_golden_names() {
        let golden = include_str!("../../../../tests/golden/names.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let check = |kind: &str, text: &str| match kind {
            "feed" => FeedName::parse(text).map(|_| ()),
            "product_id" => ProductId::parse(text).map(|_| ()),
            _ => SiteName::parse(text).map(|_| ()),
        };
        for kind in ["feed", "product_id", "site"] {
            for good in golden[kind]["good"].as_array().unwrap() {
                assert_eq!(check(kind, good.as_str().unwrap()), Ok(()), "{kind} {good}");
            }
            for bad in golden[kind]["bad"].as_array().unwrap() {
                let error = check(kind, bad[0].as_str().unwrap()).unwrap_err().to_string();
                assert!(error.contains(bad[1].as_str().unwrap()), "{kind} {bad}: {error}");
            }
        }
    }

    #[test]
    fn hubs_have_printable_names() {
        assert!(HubName::parse("Unidata, Boulder").is_ok());
        for bad in ["", "a\nb", "Z\u{fc}rich", &"x".repeat(64)] {
            assert!(HubName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sites_are_host_like() {
        assert!(SiteName::parse("unl.edu").is_ok());
        for bad in ["", "-a", "UNL", "a b", "a/b"] {
            assert!(SiteName::parse(bad).is_err(), "{bad}");
        }
    }
}
