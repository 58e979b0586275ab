//! Products that the node fetches.
use downburst_fetch::{Credentials, Expected, Limits, Method};
use downburst_model::WallMicros;
use serde::{Deserialize, Serialize};

use super::{IngestLine, Written};
use crate::jobs::Failure;

/// A product that another system has announced.
#[derive(Clone, Debug, Deserialize)]
pub struct FetchLine {
    /// Its address.
    pub url: String,
    /// The announced number of its bytes.
    pub size: Option<u64>,
    /// The announced digest.
    pub stated: Option<StatedDigest>,
    /// The bounds of the download.
    #[serde(default)]
    pub limits: Limits,
    /// The login at the server of the address.
    pub credentials: Option<Credentials>,
    /// The feed, checked against the known ones.
    pub feed: String,
    /// The product's id.
    pub product_id: String,
    /// The first publisher's stamp.
    pub created_us: Option<WallMicros>,
    /// The first publisher; the hub's own name if absent.
    pub origin: Option<String>,
    /// The statements of the source about it, which are stored with the product.
    pub properties: Option<String>,
}

/// A digest by one of the methods of announcements.
#[derive(Clone, Debug, Deserialize)]
pub struct StatedDigest {
    /// The method's name.
    pub method: String,
    /// Its value in hexadecimal digits.
    pub value: String,
}

/// The answer to the line: that to an ingest, and the digest that publishing the product again needs.
#[derive(Debug, Serialize)]
pub struct FetchAnswer {
    /// The result of the append.
    #[serde(flatten)]
    pub written: Written,
    /// SHA-512 in hexadecimal digits.
    pub sha512: String,
}

impl FetchLine {
    /// The announced facts about the bytes.
    ///
    /// # Errors
    ///
    /// A limit is out of bounds, or the digest or the credentials can't be read.
    pub fn expected(&self) -> Result<Expected, Failure> {
        self.limits.check().map_err(Failure::bad_request)?;
        self.credentials.iter().try_for_each(Credentials::check).map_err(Failure::bad_request)?;
        let digest = self.stated.as_ref().map(StatedDigest::read).transpose()?;
        Ok(Expected { bytes: self.size, digest })
    }

    /// The line that ingests the product from a spool file.
    pub fn ingest(&self, path: std::path::PathBuf) -> IngestLine {
        let Self { feed, product_id, created_us, origin, properties, .. } = self.clone();
        IngestLine { path, feed, product_id, created_us, origin, digest: None, properties, remove: true }
    }
}

impl StatedDigest {
    fn read(&self) -> Result<(Method, Vec<u8>), Failure> {
        let method = Method::parse(&self.method)
            .ok_or_else(|| Failure::bad_request("the digest is by a method that is not known here"))?;
        let digits = self.value.as_bytes();
        let bytes: Option<Vec<u8>> = digits
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?, 16).ok()
            })
            .collect();
        let bytes = bytes.filter(|_| digits.iter().all(u8::is_ascii_hexdigit));
        bytes.map(|bytes| (method, bytes)).ok_or_else(|| {
            Failure::bad_request("the digest is not in pairs of hexadecimal digits; correct or omit it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(more: &str) -> FetchLine {
        let text = format!(r#"{{"url": "https://a.example/1", "feed": "WIS2", "product_id": "x"{more}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_announced_facts_are_read() {
        let expected =
            line(r#", "size": 3, "stated": {"method": "sha256", "value": "0aFF"}"#).expected().unwrap();
        assert_eq!(expected, Expected { bytes: Some(3), digest: Some((Method::Sha256, vec![10, 255])) });
        assert_eq!(line("").expected().unwrap(), Expected::default());
    }

    #[test]
    fn digests_and_limits_that_make_no_sense_are_refused() {
        for value in ["0", "0g", "+1", "äö"] {
            let stated = format!(r#", "stated": {{"method": "sha256", "value": "{value}"}}"#);
            assert!(line(&stated).expected().is_err(), "{value}");
        }
        assert!(line(r#", "stated": {"method": "md5", "value": "00"}"#).expected().is_err());
        assert!(line(r#", "limits": {"redirects": 99}"#).expected().is_err());
        assert!(line(r#", "credentials": {"user": "unl"}"#).expected().is_err());
        assert!(line(r#", "credentials": {"token": "abc"}"#).expected().is_ok());
    }

    #[test]
    fn a_fetched_product_is_ingested_with_all_that_was_stated() {
        let ingest = line(r#", "created_us": 7, "origin": "de-dwd", "properties": "{}""#).ingest("/x".into());
        assert_eq!((ingest.created_us, ingest.origin.as_deref()), (Some(WallMicros(7)), Some("de-dwd")));
        assert_eq!((ingest.properties.as_deref(), ingest.remove), (Some("{}"), true));
    }
}
