//! The record of a dataset (WMO core metadata profile, WCMP 2) and its notification, which is given again each day
//! (guide to WIS2, 1.3.3.4).
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::identifier::{hexadecimal, uuid};
use crate::notification::{CORE, Facts, Integrity, Kind, Link, Message, Notification};
use crate::plan::sha512;
use crate::publisher::Publisher;

/// The record of a publisher's dataset, which its administrator has written.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    publisher: &'a Publisher,
    bytes: &'a [u8],
    digest: [u8; 64],
}

impl<'a> Record<'a> {
    /// Limit of a record's bytes.
    pub const LONGEST: usize = 256 << 10;

    /// Takes a record that is the one of the publisher's dataset. A catalogue judges the rest of it.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn read(publisher: &'a Publisher, bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.len() > Self::LONGEST {
            return Err(format!("the record has more than {} bytes", Self::LONGEST));
        }
        let read: Outline = serde_json::from_slice(bytes)
            .map_err(|error| format!("the record is no record of a dataset in JSON: {error}"))?;
        if read.id != publisher.metadata_id {
            let id: String = read.id.chars().take(100).collect();
            return Err(format!("the record has the id {id:?}, the rule {:?}", publisher.metadata_id));
        }
        if read.form != "Feature" || !read.conforms_to.iter().any(|one| one == WCMP) {
            return Err(format!("the record is no Feature that conforms to {WCMP}"));
        }
        Ok(Self { publisher, bytes, digest: sha512(bytes) })
    }

    /// The file's path below the publisher's directory. Other bytes have another one.
    pub fn path(&self) -> PathBuf {
        let digest = hexadecimal(self.digest.get(..DIGEST_BYTES).unwrap_or_default());
        let kept = |next: char| if next.is_ascii_alphanumeric() || "._-".contains(next) { next } else { '_' };
        let name: String = self.publisher.dataset().chars().map(kept).collect();
        Path::new("records").join(digest).join(format!("{name}.json"))
    }

    /// The notification of this record, due since this time in RFC 3339: equal for all attempts of a day.
    ///
    /// # Errors
    /// A sentence, if there can't be one.
    pub fn message(&self, due_at: &str, kind: Kind) -> Result<Message, String> {
        let publisher = self.publisher;
        let topic = format!("origin/a/wis2/{}/metadata", publisher.centre);
        let data_id = format!("{}/metadata/{}", publisher.centre, publisher.dataset());
        let id = uuid(&[&topic, &data_id, due_at, &hexadecimal(&self.digest)]);
        let href = format!("{}/{}", publisher.base_url.trim_end_matches('/'), self.path().display());
        let facts = Facts {
            data_id: &data_id,
            metadata_id: &publisher.metadata_id,
            pubtime: due_at,
            datetime: None,
            integrity: Integrity::of(&self.digest),
            producer: None,
            gts: None,
            content: None,
        };
        let link = Link {
            href: &href,
            rel: kind.relation(),
            media_type: "application/geo+json",
            length: self.bytes.len(),
        };
        let notification = Notification {
            id: &id,
            conforms_to: [CORE],
            form: "Feature",
            geometry: Value::Null,
            properties: facts,
            links: [link],
        };
        Ok(Message { id: id.clone(), payload: notification.packed()?, topic })
    }
}

/// The parts of a record by which it is known.
#[derive(Deserialize)]
struct Outline {
    id: String,
    #[serde(rename = "type")]
    form: String,
    #[serde(rename = "conformsTo")]
    conforms_to: Vec<String>,
}

const WCMP: &str = "http://wis.wmo.int/spec/wcmp/2/conf/core";
const DIGEST_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::publisher::tests::publisher;

    fn record(id: &str, form: &str, conforms_to: &str) -> Vec<u8> {
        let properties = json!({"title": "Surface observations"});
        json!({"id": id, "type": form, "conformsTo": [conforms_to], "properties": properties})
            .to_string()
            .into_bytes()
    }

    fn own() -> Vec<u8> {
        record("urn:wmo:md:us-unidata:synop", "Feature", WCMP)
    }

    #[test]
    fn a_record_is_announced_on_the_topic_of_metadata() {
        let (publisher, bytes) = (publisher(), own());
        let record = Record::read(&publisher, &bytes).unwrap();
        let message = record.message("2026-11-30T00:00:00.000Z", Kind::New).unwrap();
        assert_eq!(message.topic, "origin/a/wis2/us-unidata/metadata");
        let value: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(value["properties"]["data_id"], "us-unidata/metadata/synop");
        assert_eq!(value["properties"]["metadata_id"], "urn:wmo:md:us-unidata:synop");
        assert_eq!(value["properties"]["pubtime"], "2026-11-30T00:00:00.000Z");
        let link = &value["links"][0];
        let path = record.path().display().to_string();
        assert_eq!(link["href"], format!("https://wis2.example/data/{path}"));
        assert_eq!((&link["rel"], &link["length"]), (&json!("canonical"), &json!(bytes.len())));
        assert!(path.starts_with("records/") && path.ends_with("/synop.json"), "{path}");
    }

    #[test]
    fn one_day_has_one_id_and_other_bytes_have_another_address() {
        let (publisher, bytes) = (publisher(), own());
        let record = Record::read(&publisher, &bytes).unwrap();
        let id = |day: &str| record.message(day, Kind::Update).unwrap().id;
        assert_eq!(id("2026-11-30T00:00:00.000Z"), id("2026-11-30T00:00:00.000Z"));
        assert_ne!(id("2026-11-30T00:00:00.000Z"), id("2026-12-01T00:00:00.000Z"));
        let other = [own(), b" ".to_vec()].concat();
        assert_ne!(Record::read(&publisher, &other).unwrap().path(), record.path());
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let publisher = publisher();
        for (bytes, part) in [
            (b"".to_vec(), "no record of a dataset in JSON"),
            (b"{}".to_vec(), "missing field `id`"),
            (
                record("urn:wmo:md:us-unidata:other", "Feature", WCMP),
                "has the id \"urn:wmo:md:us-unidata:other\"",
            ),
            (record(&publisher.metadata_id, "Point", WCMP), "no Feature"),
            (record(&publisher.metadata_id, "Feature", "http://example/1"), "conforms to"),
            (vec![b' '; Record::LONGEST + 1], "more than 262144 bytes"),
        ] {
            let sentence = Record::read(&publisher, &bytes).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
