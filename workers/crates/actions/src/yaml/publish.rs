//! The action `publish`.
use std::path::PathBuf;

use downburst_wis2::{Broker, Publisher};

use super::fields::Fields;
use crate::Problem;

/// Reads the settings under `publish`.
pub(super) fn publisher(action: &mut Fields) -> Result<Publisher, Problem> {
    let place = action.place().clone();
    let fields = action.map("publish", &KEYS)?;
    let mut fields = fields.ok_or_else(|| place.wrong("publish needs its settings"))?;
    Ok(Publisher {
        broker: broker(&mut fields)?,
        centre: fields.needed("centre", Publisher::check_centre)?,
        topic: fields.needed("topic", Publisher::check_topic)?,
        metadata_id: fields.needed("metadata-id", Publisher::check_metadata_id)?,
        directory: fields.needed("directory", path)?,
        base_url: fields.needed("base-url", Publisher::check_base_url)?,
        media_type: fields
            .read("media-type", Publisher::check_media_type)?
            .unwrap_or_else(|| Publisher::MEDIA_TYPE.to_owned()),
        by_heading: fields.flag("by-heading")?,
        republishes: fields.flag("republishes")?,
        record: fields.read("record", path)?,
    })
}

fn broker(fields: &mut Fields) -> Result<Broker, Problem> {
    let place = fields.place().clone();
    let broker = fields.needed("broker", Broker::parse)?;
    let password_file = fields.read("password-file", path)?;
    let ca_file = fields.read("ca-file", path)?;
    if password_file.is_some() && broker.user.is_none() {
        return Err(place.wrong("password-file belongs to a user; write mqtts://USER@HOST"));
    }
    if ca_file.is_some() && !broker.is_encrypted {
        return Err(place.wrong("ca-file is for mqtts://; a connection by mqtt:// is not encrypted"));
    }
    Ok(Broker { password_file, ca_file, ..broker })
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.len() > LONGEST_PATH || text.contains('\0') {
        return Err(format!("a path has 1 to {LONGEST_PATH} bytes"));
    }
    Ok(PathBuf::from(text))
}

const KEYS: [&str; 12] = [
    "broker",
    "password-file",
    "ca-file",
    "centre",
    "topic",
    "metadata-id",
    "directory",
    "base-url",
    "media-type",
    "by-heading",
    "republishes",
    "record",
];
const LONGEST_PATH: usize = 1_000;

#[cfg(test)]
mod tests {
    use crate::{Kind, yaml};

    const EXAMPLE: &str = "broker: mqtts://node@broker.example, password-file: /etc/downburst/broker, \
        centre: us-unidata, topic: core/weather/surface-based-observations/synop, \
        metadata-id: 'urn:wmo:md:us-unidata:synop', directory: /srv/wis2, base-url: https://wis2.example/data";

    fn rules(settings: &str) -> String {
        format!("actions:\n  - match: ^SM\n    do:\n      - publish: {{{settings}}}\n")
    }

    #[test]
    fn one_line_makes_a_publisher() {
        let read = yaml::read("r.yaml", &rules(EXAMPLE));
        assert_eq!((&read.errors[..], &read.set_aside[..]), (&[][..], &[][..]));
        let action = &read.found.actions.rules[0].actions[0];
        let Kind::Publish(publisher) = &action.kind else { panic!("a publisher") };
        assert_eq!((&*publisher.broker.host, publisher.broker.port), ("broker.example", 8_883));
        assert_eq!(publisher.media_type, "application/octet-stream");
        assert!(!publisher.by_heading && !publisher.republishes);
        assert_eq!(action.word(), "publish");
        let other = yaml::read("r.yaml", &rules(&EXAMPLE.replace("us-unidata,", "us-other,")));
        assert_ne!(other.found.actions.rules[0].actions[0].line(), action.line());
    }

    #[test]
    fn each_value_is_checked_when_rules_are_read() {
        for (from, to, part) in [
            ("centre: us-unidata,", "", "centre is missing"),
            ("mqtts://node@", "mqtts://node:secret@", "password-file"),
            ("mqtts://node@", "mqtts://", "belongs to a user"),
            ("mqtts://", "https://", "no address of a broker"),
            ("centre: us-unidata", "centre: US", "no centre-id"),
            ("topic: core", "topic: free", "no topic of data"),
            ("urn:wmo:md", "urn:x", "no metadata id"),
            ("https://wis2", "file:///wis2", "no address of a server"),
            ("/srv/wis2", "''", "a path has"),
            ("directory", "directories", "unknown key"),
            ("broker: mqtts", "media-type: bufr, broker: mqtts", "no media type"),
            ("broker: mqtts", "ca-file: /a.pem, broker: mqtt", "ca-file is for mqtts"),
            ("broker: mqtts", "republishes: perhaps, broker: mqtts", "true or false"),
        ] {
            let read = yaml::read("r.yaml", &rules(&EXAMPLE.replace(from, to)));
            let sentence = read.set_aside[0].to_string();
            assert!(sentence.contains(part) && !sentence.contains("secret"), "{to}: {sentence}");
        }
        let read = yaml::read("r.yaml", "actions:\n  - do:\n      - publish: here");
        assert!(read.set_aside[0].to_string().contains("a map is expected"), "{:?}", read.set_aside);
        let read = yaml::read("r.yaml", &(rules(EXAMPLE) + "        close: true\n"));
        assert!(read.set_aside[0].to_string().contains("close is not for publish"), "{:?}", read.set_aside);
    }
}
