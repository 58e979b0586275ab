//! The message of a product, as wmo-im/wis2-notification-message wants it (clause 7).
use serde::Serialize;
use serde_json::Value;

use crate::base64;

/// The relation of a notification's link to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first data under this data id.
    New,
    /// Data that replace earlier ones of the same data id.
    Update,
}

/// A notification, and the topic on which it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its UUID, the same in all attempts.
    pub id: String,
    /// The topic.
    pub topic: String,
    /// JSON, at most 8,192 bytes.
    pub payload: Vec<u8>,
}

impl Kind {
    pub(crate) fn relation(self) -> &'static str {
        match self {
            Self::New => "canonical",
            Self::Update => "update",
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Notification<'a> {
    pub(crate) id: &'a str,
    #[serde(rename = "conformsTo")]
    pub(crate) conforms_to: [&'static str; 1],
    #[serde(rename = "type")]
    pub(crate) form: &'static str,
    pub(crate) geometry: Value,
    pub(crate) properties: Facts<'a>,
    pub(crate) links: [Link<'a>; 1],
}

#[derive(Serialize)]
pub(crate) struct Facts<'a> {
    pub(crate) data_id: &'a str,
    pub(crate) metadata_id: &'a str,
    pub(crate) pubtime: &'a str,
    /// Null: not known.
    pub(crate) datetime: Option<&'a str>,
    pub(crate) integrity: Integrity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) producer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gts: Option<Gts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Integrity {
    method: &'static str,
    value: String,
}

#[derive(Serialize)]
pub(crate) struct Gts<'a> {
    pub(crate) ttaaii: &'a str,
    pub(crate) cccc: &'a str,
}

#[derive(Serialize)]
pub(crate) struct Link<'a> {
    pub(crate) href: &'a str,
    pub(crate) rel: &'static str,
    #[serde(rename = "type")]
    pub(crate) media_type: &'a str,
    pub(crate) length: usize,
}

/// Bytes within the message; they are on the server all the same.
#[derive(Serialize)]
pub(crate) struct Content<'a> {
    encoding: &'static str,
    value: std::borrow::Cow<'a, str>,
    size: usize,
}

impl Integrity {
    pub(crate) fn of(sha512: &[u8; 64]) -> Self {
        Self { method: "sha512", value: base64::encoded(sha512) }
    }
}

impl<'a> Content<'a> {
    /// The bytes as text where they are text, else in base64; `None`: they are too long for either.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let size = bytes.len();
        if size > LONGEST_INLINE {
            return None;
        }
        if let Ok(text) = std::str::from_utf8(bytes)
            && !text.contains('\0')
        {
            return Some(Self { encoding: "utf-8", value: text.into(), size });
        }
        let value = base64::encoded(bytes);
        (value.len() <= LONGEST_INLINE).then(|| Self { encoding: "base64", value: value.into(), size })
    }
}

impl Notification<'_> {
    /// Its bytes: without the content, and then without the place, if they would be too many.
    pub(crate) fn packed(mut self) -> Result<Vec<u8>, String> {
        for _ in 0..3 {
            let packed = serde_json::to_vec(&self).map_err(|error| error.to_string())?;
            if packed.len() <= LONGEST_BYTES {
                return Ok(packed);
            }
            if self.properties.content.take().is_none() {
                self.geometry = Value::Null;
            }
        }
        Err(format!("its notification has more than {LONGEST_BYTES} bytes"))
    }
}

pub(crate) const CORE: &str = "http://wis.wmo.int/spec/wnm/1/conf/core";
const LONGEST_BYTES: usize = 8_192;
const LONGEST_INLINE: usize = 4_096;
