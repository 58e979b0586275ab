//! A product on its way into the log: its checked description, and the answer to its source.
use downburst_model::{
    Digest, Origin, PROPERTIES_BYTES_MAX, ProductId, ProductInfo, Properties, Sequence, WallMicros,
};
use serde::{Serialize, Serializer};

use super::IngestLine;
use crate::jobs::Failure;

/// The checked description of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedIngest {
    /// The identifier.
    pub id: ProductId,
    /// The first ingester.
    pub origin: Origin,
    /// The digest, if the source knows it.
    pub digest: Option<Digest>,
    /// The statements of the source about it.
    pub properties: Option<Properties>,
}

impl IngestLine {
    /// Checks the description.
    ///
    /// # Errors
    ///
    /// A field can't be read, or the identifier is that of a heartbeat.
    pub fn described(&self, default_origin: &str) -> Result<DescribedIngest, Failure> {
        let origin = self.origin.as_deref().unwrap_or(default_origin);
        let digest = self.digest.as_deref().map(parsed_digest).transpose()?;
        DescribedIngest::read(&self.product_id, origin, digest, self.properties.as_deref())
    }
}

impl DescribedIngest {
    /// Checks a description.
    ///
    /// # Errors
    ///
    /// As of [`IngestLine::described`].
    pub(super) fn read(
        product_id: &str,
        origin: &str,
        digest: Option<Digest>,
        properties: Option<&str>,
    ) -> Result<Self, Failure> {
        let id = ProductId::parse(product_id).map_err(|error| Failure::new("bad-id", error.to_string()))?;
        if id.is_heartbeat() {
            let sentence = format!(
                "the product id {product_id:?} begins as the hub's own heartbeats do; choose another one"
            );
            return Err(Failure::new("bad-id", sentence));
        }
        let origin = Origin::parse(origin).map_err(|error| Failure::bad_request(error.to_string()))?;
        let properties = properties.map(checked_properties).transpose()?;
        Ok(Self { id, origin, digest, properties })
    }
}

fn checked_properties(document: &str) -> Result<Properties, Failure> {
    Properties::new(document.as_bytes()).ok_or_else(|| {
        let bytes = document.len();
        Failure::bad_request(format!(
            "the properties have {bytes} bytes; send 1 to {PROPERTIES_BYTES_MAX}, or none"
        ))
    })
}

/// Reads a digest in hexadecimal digits.
///
/// # Errors
///
/// It has another number of digits, or other characters.
pub fn parsed_digest(hex: &str) -> Result<Digest, Failure> {
    let bad =
        || Failure::bad_request("the digest is not BLAKE3-256 as 64 hexadecimal digits; correct or omit it");
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return Err(bad());
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
    }
    Ok(Digest(bytes))
}

/// The result of an append. It serialises as the answer to the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The log has the product.
    Stored(Box<ProductInfo>),
    /// The log had it before.
    Duplicate {
        /// The sequence of the earlier one.
        of: Sequence,
        /// Its size, if the log still knows it.
        size: Option<u64>,
        /// Its digest, likewise.
        digest: Option<String>,
    },
}

impl Written {
    /// The log had the product before, and still has `known` of it.
    pub fn duplicate(of: Sequence, known: Option<&ProductInfo>) -> Self {
        let (size, digest) = known.map(|info| (info.size, info.digest.to_string())).unzip();
        Self::Duplicate { of, size, digest }
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stored(info) => StoredAnswer::of(info).serialize(serializer),
            Self::Duplicate { of, size, digest } => {
                DuplicateAnswer { duplicate_of: *of, size: *size, digest: digest.as_deref() }
                    .serialize(serializer)
            }
        }
    }
}

/// The acknowledgement of a stored product.
#[derive(Serialize)]
struct StoredAnswer {
    sequence: Sequence,
    epoch: String,
    size: u64,
    digest: String,
    stored_us: WallMicros,
    created_us: WallMicros,
}

/// The acknowledgement of a product that the log already has.
#[derive(Serialize)]
struct DuplicateAnswer<'a> {
    duplicate_of: Sequence,
    size: Option<u64>,
    digest: Option<&'a str>,
}

impl StoredAnswer {
    fn of(info: &ProductInfo) -> Self {
        Self {
            sequence: info.key.sequence,
            epoch: info.key.epoch.0.to_string(),
            size: info.size,
            digest: info.digest.to_string(),
            stored_us: info.stored,
            created_us: info.created,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::product;

    fn line(id: &str, origin: Option<&str>, digest: Option<&str>) -> IngestLine {
        let line =
            json!({"path": "/spool/1", "feed": "A", "product_id": id, "origin": origin, "digest": digest});
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn a_product_without_an_origin_is_the_hubs() {
        let described = line("SAUS80 KWBC", None, Some(&"0F".repeat(32))).described("hub.example").unwrap();
        assert_eq!((described.id.as_str(), described.origin.as_str()), ("SAUS80 KWBC", "hub.example"));
        assert_eq!(described.digest, Some(Digest([15; 32])));
        let described = line("x", Some("source.example"), None).described("hub.example").unwrap();
        assert_eq!((described.origin.as_str(), described.digest), ("source.example", None));
    }

    #[test]
    fn what_can_not_be_stored_is_refused() {
        let code = |line: IngestLine| line.described("hub").unwrap_err().code;
        assert_eq!(code(line("", None, None)), "bad-id");
        assert_eq!(code(line("downburst:heartbeat:17", None, None)), "bad-id");
        assert_eq!(code(line("x", Some(&"x".repeat(300)), None)), "bad-request");
        for (bytes, taken) in [(0, false), (1, true), (8_192, true), (8_193, false)] {
            let properties = Some("x".repeat(bytes));
            let described = IngestLine { properties, ..line("x", None, None) }.described("hub");
            assert_eq!(described.is_ok_and(|it| it.properties.is_some()), taken, "{bytes}");
        }
        for digest in ["", "0f", &"0g".repeat(32), &"ü".repeat(32)] {
            assert_eq!(code(line("x", None, Some(digest))), "bad-request", "{digest}");
        }
    }

    #[test]
    fn answers_tell_the_number() {
        let info = product(5, "x", 90);
        assert_eq!(
            serde_json::to_value(Written::Stored(Box::new(info.clone()))).unwrap(),
            json!({
                "sequence": 5, "epoch": "7", "size": 8, "digest": "0".repeat(64), "stored_us": 90, "created_us": 89,
            })
        );
        assert_eq!(
            serde_json::to_value(Written::duplicate(Sequence(5), Some(&info))).unwrap(),
            json!({"duplicate_of": 5, "size": 8, "digest": "0".repeat(64)})
        );
        assert_eq!(
            serde_json::to_value(Written::duplicate(Sequence(5), None)).unwrap(),
            json!({"duplicate_of": 5, "size": null, "digest": null})
        );
    }
}
