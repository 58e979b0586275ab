//! Products put where a web server serves them, before they are announced.
//!
//! The files are also the memory of a publisher: all of one data id are in one folder, and the newest other one tells
//! whether a product is new, an update, or announced already. They leave together, by a rule of `scour`.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use downburst_wis2::{Before, Message, Plan, Product, Publisher, Verdict, sha512};

use super::super::failure::{Failure, Then};
use super::super::files;

/// A product that can be fetched, and its notification.
pub(super) struct Placed {
    pub(super) message: Message,
    pub(super) file: PathBuf,
}

/// Places a product; `None` if there is nothing to announce. Relative directories are below `base`.
pub(super) fn place(
    publisher: &Publisher,
    product: &Product,
    bytes: &[u8],
    base: &Path,
) -> Result<Option<Placed>, Failure> {
    let plan = match Plan::of(publisher, product) {
        Verdict::Announced(plan) => plan,
        Verdict::Own => {
            tracing::info!(
                id = product.id,
                "a product of {} came back, and is not announced",
                publisher.centre
            );
            return Ok(None);
        }
        Verdict::Refused(sentence) => return Err(Failure::new(Then::GiveUp, sentence)),
    };
    let folder = base.join(&publisher.directory).join(plan.folder());
    let digest = sha512(bytes);
    let name = plan.file_name(&digest);
    let newest = newest(&folder, &name).map_err(|error| Failure::of_file(&folder, &error))?;
    let before = newest.as_deref().map_or(Before::None, Before::File);
    let Some(kind) = plan.kind(&digest, before) else {
        tracing::info!(id = product.id, "the same bytes are announced already under this data id");
        return Ok(None);
    };
    let message =
        plan.message(bytes, &digest, kind).map_err(|sentence| Failure::new(Then::GiveUp, sentence))?;
    let file = folder.join(name);
    files::replace(&file, bytes, true).map_err(|error| Failure::of_file(&file, &error))?;
    Ok(Some(Placed { message, file }))
}

/// The name of the newest file in a folder, apart from one's own.
fn newest(folder: &Path, own: &str) -> io::Result<Option<String>> {
    let listing = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        listing => listing?,
    };
    let mut found: Option<(SystemTime, String)> = None;
    for entry in listing {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name == own || name.starts_with('.') {
            continue;
        }
        // It may have been removed since.
        let Ok(at) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        found = found.max(Some((at, name)));
    }
    Ok(found.map(|(_, name)| name))
}

#[cfg(test)]
mod tests {
    use downburst_wis2::Broker;

    use super::*;

    fn publisher() -> Publisher {
        Publisher {
            broker: Broker::parse("mqtt://127.0.0.1:1").unwrap(),
            centre: "us-unidata".to_owned(),
            topic: "core/weather".to_owned(),
            metadata_id: "urn:wmo:md:us-unidata:synop".to_owned(),
            directory: "served".into(),
            base_url: "https://wis2.example/data".to_owned(),
            media_type: Publisher::MEDIA_TYPE.to_owned(),
            by_heading: false,
            republishes: false,
            record: None,
        }
    }

    fn product(sequence: u64) -> Product {
        Product {
            id: "SMVX01 TJSJ".to_owned(),
            feed: "IDS".to_owned(),
            epoch: 7,
            sequence,
            stored_at: "2026-11-29T12:00:00.000Z".to_owned(),
            properties: None,
        }
    }

    fn relation(message: &Message) -> String {
        let value: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        value["links"][0]["rel"].as_str().unwrap().to_owned()
    }

    #[test]
    fn files_are_served_and_tell_updates_from_copies() {
        let root = tempfile::tempdir().unwrap();
        let publisher = publisher();
        let put =
            |sequence: u64, bytes: &[u8]| place(&publisher, &product(sequence), bytes, root.path()).unwrap();
        let first = put(1, b"one").unwrap();
        assert_eq!(fs::read(&first.file).unwrap(), b"one");
        assert!(first.file.starts_with(root.path().join("served")));
        assert_eq!(relation(&first.message), "canonical");
        let again = put(1, b"one").unwrap();
        assert_eq!(again.message, first.message, "a second attempt");
        assert!(put(2, b"one").is_none(), "a copy");
        let changed = put(3, b"two").unwrap();
        assert_eq!(relation(&changed.message), "update");
        assert_ne!(changed.message.id, first.message.id);
        assert_eq!(fs::read(&first.file).unwrap(), b"one", "both are served");
        fs::remove_dir_all(first.file.parent().unwrap()).unwrap();
        assert_eq!(relation(&put(4, b"two").unwrap().message), "canonical", "the others are forgotten");
    }

    #[test]
    fn a_product_that_may_not_be_announced_leaves_no_file() {
        let root = tempfile::tempdir().unwrap();
        let gateway = Publisher { by_heading: true, ..publisher() };
        let Err(failure) = place(&gateway, &product(1), b"GRIB", root.path()) else {
            panic!("it was placed")
        };
        assert_eq!(failure.then, Then::GiveUp);
        assert!(!root.path().join("served").exists());
    }
}
