use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::topic::is_level;

/// The settings of a rule's action `publish`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Publisher {
    /// The site's own broker, from which Global Brokers take notifications.
    pub broker: Broker,
    /// The centre-id under which the site publishes, such as `us-unidata`.
    pub centre: String,
    /// The topic below `origin/a/wis2/CENTRE/data/`: policy, discipline and so on.
    pub topic: String,
    /// Of the dataset's record of discovery.
    pub metadata_id: String,
    /// A directory whose files a web server serves.
    pub directory: PathBuf,
    /// The address under which it serves them.
    pub base_url: String,
    /// Of the files.
    pub media_type: String,
    /// A gateway of the GTS: the topic ends with the heading of each bulletin, in place of the topic's own end.
    pub by_heading: bool,
    /// Products that came by WIS2 are announced too, with their centre as the producer.
    pub republishes: bool,
    /// The record of the dataset, which is announced each day; absent: it is published elsewhere.
    #[serde(default)]
    pub record: Option<PathBuf>,
}

impl Publisher {
    /// The media type of a rule that names none.
    pub const MEDIA_TYPE: &str = "application/octet-stream";

    /// Checks a centre-id.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn check_centre(text: &str) -> Result<String, String> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        let mut words = text.split('-');
        let end = words.next().unwrap_or_default();
        let is_end = (2..=10).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_lowercase());
        let has_name = text.contains('-') && words.all(is_word);
        accepted(text, LONGEST_CENTRE, is_end && has_name, || {
            format!("{} is no centre-id; write a domain's end and a name, as us-unidata", shown(text))
        })
    }

    /// Checks a topic below `…/data/`.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn check_topic(text: &str) -> Result<String, String> {
        let mut levels = text.split('/');
        let has_policy = matches!(levels.next(), Some("core" | "recommended")) && text.contains('/');
        let is_lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        accepted(text, LONGEST_TOPIC, has_policy && is_lower && levels.all(is_level), || {
            format!("{} is no topic of data; write one as {EXAMPLE}", shown(text))
        })
    }

    /// Checks the id of a record of discovery.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn check_metadata_id(text: &str) -> Result<String, String> {
        let parts = text.strip_prefix("urn:wmo:md:").and_then(|rest| rest.split_once(':'));
        let is_one = parts.is_some_and(|(centre, name)| {
            !centre.is_empty()
                && centre.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte))
        });
        accepted(text, LONGEST_METADATA_ID, is_one, || {
            format!("{} is no metadata id; write one as urn:wmo:md:us-unidata:synop", shown(text))
        })
    }

    /// Checks the address of the web server.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn check_base_url(text: &str) -> Result<String, String> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_one = rest.is_some_and(|rest| {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:[]-".contains(&byte))
                && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~/-".contains(&byte))
        });
        accepted(text, LONGEST_BASE_URL, is_one, || {
            format!("{} is no address of a server; write one as https://wis2.example/data", shown(text))
        })
    }

    /// Checks a media type.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn check_media_type(text: &str) -> Result<String, String> {
        let is_one = text.split_once('/').is_some_and(|(kind, name)| {
            !kind.is_empty()
                && kind.bytes().all(|byte| byte.is_ascii_lowercase())
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
        });
        accepted(text, LONGEST_MEDIA_TYPE, is_one, || {
            format!("{} is no media type; write one as application/bufr", shown(text))
        })
    }

    /// Equal for rules whose notifications go one after the other by one connection.
    pub fn line(&self) -> String {
        let user = self.broker.user.as_deref().unwrap_or_default();
        let (centre, topic, metadata_id) = (&self.centre, &self.topic, &self.metadata_id);
        format!("{}\0{user}\0{centre}\0{topic}\0{metadata_id}\0{}", self.broker, self.directory.display())
    }

    /// A short description for people.
    pub fn words(&self) -> String {
        format!("{} at {}", self.full_topic(), self.broker)
    }

    pub(crate) fn full_topic(&self) -> String {
        format!("origin/a/wis2/{}/data/{}", self.centre, self.topic)
    }

    pub(crate) fn policy(&self) -> &str {
        self.topic.split('/').next().unwrap_or_default()
    }

    /// The last part of the metadata id.
    pub(crate) fn dataset(&self) -> &str {
        self.metadata_id.rsplit(':').next().unwrap_or_default()
    }
}

fn accepted(text: &str, most: usize, is_one: bool, wrong: impl FnOnce() -> String) -> Result<String, String> {
    if is_one && text.len() <= most { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(100).collect::<String>())
}

const EXAMPLE: &str = "core/weather/surface-based-observations/synop";
const LONGEST_CENTRE: usize = 100;
const LONGEST_TOPIC: usize = 300;
const LONGEST_METADATA_ID: usize = 200;
const LONGEST_BASE_URL: usize = 300;
const LONGEST_MEDIA_TYPE: usize = 100;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn publisher() -> Publisher {
        Publisher {
            broker: Broker::parse("mqtts://node@broker.example").unwrap(),
            centre: "us-unidata".to_owned(),
            topic: EXAMPLE.to_owned(),
            metadata_id: "urn:wmo:md:us-unidata:synop".to_owned(),
            directory: "/srv/wis2".into(),
            base_url: "https://wis2.example/data/".to_owned(),
            media_type: Publisher::MEDIA_TYPE.to_owned(),
            by_heading: false,
            republishes: false,
            record: None,
        }
    }

    type Check = fn(&str) -> Result<String, String>;

    #[test]
    fn values_have_the_forms_of_the_hubs_publishers() {
        let long = format!("core/{}", "a".repeat(LONGEST_TOPIC));
        let checks: [(Check, &[&str], &[&str]); 5] = [
            (
                Publisher::check_centre,
                &["us-unidata", "de-dwd-gts-to-wis2", "org-x_1"],
                &["us", "us-", "US-x", "1-x"],
            ),
            (
                Publisher::check_topic,
                &[EXAMPLE, "recommended/weather"],
                &["core", "core/", "free/x", "core/+", "core/X", &long],
            ),
            (
                Publisher::check_metadata_id,
                &["urn:wmo:md:us-unidata:a.b:c"],
                &["us-unidata:a", "urn:wmo:md:us-unidata", "urn:wmo:md::a", "urn:wmo:md:us:"],
            ),
            (
                Publisher::check_base_url,
                &["https://a.example", "http://[::1]:8080/data/"],
                &["ftp://a", "https://", "https://a b", "https://a/?x", "https://u@a"],
            ),
            (Publisher::check_media_type, &["application/bufr", "text/x+y"], &["bufr", "a/", "/b", "a/b;c"]),
        ];
        for (check, good, bad) in checks {
            good.iter().for_each(|text| assert_eq!(check(text).as_deref(), Ok(*text)));
            bad.iter().for_each(|text| assert!(check(text).unwrap_err().contains("; write "), "{text}"));
        }
    }
}
