//! The way of a product into WIS2: its names there, or the reason against them.
use std::path::{Path, PathBuf};

use ring::digest::{SHA512, digest};
use serde::{Deserialize, Serialize};

use crate::heading::Heading;
use crate::identifier::{hexadecimal, uuid};
use crate::notification::{CORE, Content, Facts, Gts, Integrity, Kind, Link, Message, Notification};
use crate::publisher::Publisher;
use crate::stated::{LONGEST_DATA_ID, Stated};

/// The facts about a product from which its notification is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Its identifier.
    pub id: String,
    /// Its feed.
    pub feed: String,
    /// The epoch of its number.
    pub epoch: u64,
    /// Its number at the hub; that of the site's log for a product without one.
    pub sequence: u64,
    /// The time at which the site stored it, in RFC 3339: its publication, unless a source stated one.
    pub stored_at: String,
    /// The statements of its source, as the log keeps them.
    pub properties: Option<String>,
}

/// A product that may be announced, with its names.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    publisher: &'a Publisher,
    product: &'a Product,
    stated: Option<Stated>,
    data_id: String,
}

/// The judgement on a product.
#[derive(Clone, Debug)]
pub enum Verdict<'a> {
    /// It is announced.
    Announced(Plan<'a>),
    /// It is of the publisher's own centre, and came back: there is nothing to do.
    Own,
    /// It can't be announced, for this reason.
    Refused(String),
}

/// The last product of the same data id that is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before<'a> {
    /// There is none.
    None,
    /// A product whose file has this name.
    File(&'a str),
}

/// The SHA-512 of a product.
pub fn sha512(bytes: &[u8]) -> [u8; 64] {
    let mut found = [0; 64];
    for (to, from) in found.iter_mut().zip(digest(&SHA512, bytes).as_ref()) {
        *to = *from;
    }
    found
}

impl<'a> Plan<'a> {
    /// Judges a product.
    pub fn of(publisher: &'a Publisher, product: &'a Product) -> Verdict<'a> {
        let properties = product.properties.as_deref().unwrap_or_default();
        let stated = match Stated::read(properties.as_bytes()) {
            Ok(stated) => stated,
            Err(sentence) => return Verdict::Refused(sentence),
        };
        if stated.as_ref().is_some_and(|stated| stated.topic.centre == publisher.centre) {
            return Verdict::Own;
        }
        if let Some(sentence) = stated.as_ref().and_then(|stated| against(publisher, stated)) {
            return Verdict::Refused(sentence);
        }
        let data_id = match &stated {
            Some(stated) => stated.data_id.clone(),
            None => format!("{}/{}/{}", publisher.centre, publisher.dataset(), quoted(&product.id)),
        };
        if data_id.chars().count() > LONGEST_DATA_ID {
            return Verdict::Refused(format!(
                "its data id would have more than {LONGEST_DATA_ID} characters"
            ));
        }
        Verdict::Announced(Self { publisher, product, stated, data_id })
    }

    /// The directory of the files of this data id on this topic, below the publisher's: the earlier ones are there.
    pub fn folder(&self) -> PathBuf {
        let named = format!("{}\n{}", self.publisher.full_topic(), self.data_id);
        let name = hexadecimal(sha512(named.as_bytes()).get(..FOLDER_BYTES).unwrap_or_default());
        let (first, rest) = name.split_at(2.min(name.len()));
        Path::new(first).join(rest)
    }

    /// The name of the product's file: its number, the begin of its digest, and the end of its id.
    pub fn file_name(&self, sha512: &[u8; 64]) -> String {
        let last = self.product.id.rsplit('/').next().unwrap_or_default();
        let kept = |next: char| if next.is_ascii_alphanumeric() || "._-".contains(next) { next } else { '_' };
        let last: String = last.chars().map(kept).take(LONGEST_NAME).collect();
        format!("{}-{}-{last}", self.product.sequence, digest_part(sha512))
    }

    /// The kind of the notification; `None`: the same bytes are announced already.
    pub fn kind(&self, sha512: &[u8; 64], before: Before<'_>) -> Option<Kind> {
        match before {
            Before::None => Some(Kind::New),
            Before::File(name) if name.split('-').nth(1) == Some(&digest_part(sha512)) => None,
            Before::File(_) => Some(Kind::Update),
        }
    }

    /// The notification of the product with these bytes.
    ///
    /// # Errors
    /// A sentence, if there can't be one.
    pub fn message(&self, bytes: &[u8], sha512: &[u8; 64], kind: Kind) -> Result<Message, String> {
        let (publisher, product, stated) = (self.publisher, self.product, self.stated.as_ref());
        let heading = Heading::find(bytes);
        let topic = topic(publisher, heading.as_ref())?;
        let (epoch, sequence) = (product.epoch.to_string(), product.sequence.to_string());
        let whole = hexadecimal(sha512);
        let id = uuid(&[&topic, &self.data_id, &product.feed, &epoch, &sequence, &whole]);
        let (base, folder) = (publisher.base_url.trim_end_matches('/'), self.folder());
        let href = format!("{base}/{}/{}", folder.display(), self.file_name(sha512));
        let facts = Facts {
            data_id: &self.data_id,
            metadata_id: &publisher.metadata_id,
            pubtime: stated.map_or(&product.stored_at, |stated| &stated.published_at),
            datetime: stated.and_then(|stated| stated.data_at.as_deref()),
            integrity: Integrity::of(sha512),
            producer: stated.map(|stated| &*stated.topic.centre),
            gts: heading.as_ref().map(|heading| Gts { ttaaii: &heading.ttaaii, cccc: &heading.cccc }),
            content: Content::of(bytes),
        };
        let notification = Notification {
            id: &id,
            conforms_to: [CORE],
            form: "Feature",
            geometry: stated.map_or(serde_json::Value::Null, |stated| stated.geometry.clone()),
            properties: facts,
            links: [Link {
                href: &href,
                rel: kind.relation(),
                media_type: &publisher.media_type,
                length: bytes.len(),
            }],
        };
        let payload = notification.packed()?;
        Ok(Message { id, topic, payload })
    }
}

/// The reason against a product that came by WIS2.
fn against(publisher: &Publisher, stated: &Stated) -> Option<String> {
    let centre = &stated.topic.centre;
    if !publisher.republishes {
        return Some(format!(
            "it came by WIS2 from {centre}; exclude such products from the rule, or set republishes: true"
        ));
    }
    let becomes_core = stated.topic.is_recommended && publisher.policy() == "core";
    becomes_core.then(|| format!("it is recommended data of {centre}, and the topic is one of core data"))
}

fn topic(publisher: &Publisher, heading: Option<&Heading>) -> Result<String, String> {
    if !publisher.by_heading {
        return Ok(publisher.full_topic());
    }
    let heading = heading.ok_or("it has no heading of the GTS, of which a gateway's topic is made")?;
    let (centre, policy) = (&publisher.centre, publisher.policy());
    Ok(format!("origin/a/wis2/{centre}/data/{policy}/{}", heading.levels()))
}

/// The begin of a digest in a file's name.
fn digest_part(sha512: &[u8; 64]) -> String {
    hexadecimal(sha512.get(..DIGEST_BYTES).unwrap_or_default())
}

/// An id as a path of an address, with + for blanks, as the hub writes it.
fn quoted(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b' ' => text.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' | b'/' => {
                text.push(byte.into())
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

const FOLDER_BYTES: usize = 16;
const DIGEST_BYTES: usize = 16;
const LONGEST_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::publisher::tests::publisher;
    use crate::stated::tests::properties;

    const BULLETIN: &[u8] = b"\x01\r\r\n001\r\r\nSMVX01 TJSJ 291200\r\r\nAAXX 29121";
    const CORE_TOPIC: &str = "cache/a/wis2/de-dwd/data/core/weather";

    fn product(id: &str) -> Product {
        Product {
            id: id.to_owned(),
            feed: "IDS|DDPLUS".to_owned(),
            epoch: 7,
            sequence: 4_711,
            stored_at: "2026-11-29T12:00:00.250Z".to_owned(),
            properties: None,
        }
    }

    fn by_wis2(topic: &str) -> Product {
        let properties = String::from_utf8(properties(topic)).unwrap();
        Product { properties: Some(properties), ..product("de-dwd/synop/1") }
    }

    fn planned<'a>(publisher: &'a Publisher, product: &'a Product) -> Plan<'a> {
        match Plan::of(publisher, product) {
            Verdict::Announced(plan) => plan,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(publisher: &Publisher, product: &Product) -> String {
        match Plan::of(publisher, product) {
            Verdict::Refused(sentence) => sentence,
            other => panic!("{other:?}"),
        }
    }

    fn message(publisher: &Publisher, product: &Product, bytes: &[u8]) -> (Message, Value) {
        let made = planned(publisher, product).message(bytes, &sha512(bytes), Kind::New).unwrap();
        let value = serde_json::from_slice(&made.payload).unwrap();
        (made, value)
    }

    #[test]
    fn a_product_is_announced_as_the_hub_announces_it() {
        let (publisher, product) = (publisher(), product("SMVX01 TJSJ 291200"));
        let (made, value) = message(&publisher, &product, BULLETIN);
        assert_eq!(made.topic, "origin/a/wis2/us-unidata/data/core/weather/surface-based-observations/synop");
        let digest = sha512(BULLETIN);
        let href = format!(
            "https://wis2.example/data/{}/4711-{}-SMVX01_TJSJ_291200",
            planned(&publisher, &product).folder().display(),
            &hexadecimal(&digest)[..32]
        );
        assert_eq!(
            value,
            json!({
                "id": made.id,
                "conformsTo": ["http://wis.wmo.int/spec/wnm/1/conf/core"],
                "type": "Feature",
                "geometry": null,
                "properties": {
                    "data_id": "us-unidata/synop/SMVX01+TJSJ+291200",
                    "metadata_id": "urn:wmo:md:us-unidata:synop",
                    "pubtime": "2026-11-29T12:00:00.250Z",
                    "datetime": null,
                    "integrity": {"method": "sha512", "value": crate::base64::encoded(&digest)},
                    "gts": {"ttaaii": "SMVX01", "cccc": "TJSJ"},
                    "content": {
                        "encoding": "utf-8", "value": String::from_utf8_lossy(BULLETIN), "size": BULLETIN.len(),
                    },
                },
                "links": [{
                    "href": href, "rel": "canonical", "type": "application/octet-stream", "length": BULLETIN.len(),
                }],
            })
        );
    }

    #[test]
    fn a_second_attempt_makes_the_same_bytes_and_another_product_another_id() {
        let publisher = publisher();
        let (first, _) = message(&publisher, &product("a"), b"1");
        assert_eq!(message(&publisher, &product("a"), b"1").0, first);
        let later = Product { sequence: 4_712, ..product("a") };
        let other = Publisher { centre: "us-other".to_owned(), ..publisher.clone() };
        for another in [
            message(&publisher, &product("b"), b"1"),
            message(&publisher, &product("a"), b"2"),
            message(&publisher, &later, b"1"),
            message(&other, &product("a"), b"1"),
        ] {
            assert_ne!(another.0.id, first.id);
        }
    }

    #[test]
    fn changed_bytes_are_an_update_and_equal_ones_are_not_announced_again() {
        let (publisher, product) = (publisher(), product("a"));
        let plan = planned(&publisher, &product);
        let name = plan.file_name(&sha512(b"1"));
        assert_eq!(plan.kind(&sha512(b"1"), Before::None), Some(Kind::New));
        assert_eq!(plan.kind(&sha512(b"1"), Before::File(&name)), None);
        assert_eq!(plan.kind(&sha512(b"2"), Before::File(&name)), Some(Kind::Update));
    }

    #[test]
    fn the_facts_of_a_source_are_passed_on_where_the_rule_republishes() {
        let publisher = Publisher { republishes: true, ..publisher() };
        let (_, value) = message(&publisher, &by_wis2(CORE_TOPIC), &[0xff; 5_000]);
        let properties = &value["properties"];
        assert_eq!(properties["data_id"], "de-dwd/synop/1");
        assert_eq!(properties["pubtime"], "2026-11-23T04:00:00.000Z");
        assert_eq!(properties["datetime"], "2026-11-23T03:00:00.000Z");
        assert_eq!(properties["producer"], "de-dwd");
        assert_eq!(value["geometry"], json!({"type": "Point", "coordinates": [8.5, 50.0]}));
        assert_eq!(properties.get("content"), None, "too long for a message");
    }

    #[test]
    fn own_products_do_not_go_round_and_recommended_data_never_become_core() {
        let republishing = Publisher { republishes: true, ..publisher() };
        let own = by_wis2("origin/a/wis2/us-unidata/data/core/weather");
        assert!(matches!(Plan::of(&republishing, &own), Verdict::Own));
        assert!(matches!(Plan::of(&publisher(), &own), Verdict::Own));
        assert!(refusal(&publisher(), &by_wis2(CORE_TOPIC)).contains("set republishes: true"));
        let recommended = by_wis2("origin/a/wis2/de-dwd/data/recommended/weather");
        assert!(refusal(&republishing, &recommended).contains("recommended data of de-dwd"));
        let as_such = Publisher { topic: "recommended/weather".to_owned(), ..republishing };
        assert!(matches!(Plan::of(&as_such, &recommended), Verdict::Announced(_)));
        assert!(refusal(&as_such, &by_wis2("unknown")).contains("can't be read again"));
        assert!(refusal(&as_such, &product(&"é".repeat(60))).contains("255 characters"));
    }

    #[test]
    fn a_gateways_topic_ends_with_the_heading() {
        let gateway = Publisher { by_heading: true, ..publisher() };
        let (made, _) = message(&gateway, &product("x"), BULLETIN);
        assert_eq!(made.topic, "origin/a/wis2/us-unidata/data/core/S/M/V/X/01/TJSJ");
        let (none, bytes) = (product("x"), b"GRIB");
        let refused = planned(&gateway, &none).message(bytes, &sha512(bytes), Kind::New).unwrap_err();
        assert!(refused.contains("no heading"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_product_has_a_short_notification_and_a_plain_file_name(
            id in "\\PC{1,80}", bytes in proptest::collection::vec(any::<u8>(), 0..5_000),
        ) {
            let (publisher, product) = (publisher(), product(&id));
            if let Verdict::Announced(plan) = Plan::of(&publisher, &product) {
                let digest = sha512(&bytes);
                let made = plan.message(&bytes, &digest, Kind::Update).unwrap();
                prop_assert!(made.payload.len() <= 8_192);
                let name = plan.file_name(&digest);
                prop_assert!(name.is_ascii() && !name.contains('/') && name.len() < 200);
            }
        }
    }
}
