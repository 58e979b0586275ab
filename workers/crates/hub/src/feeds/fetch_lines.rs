//! Products that the node fetches.
use downburst_fetch::{Credentials, Expected, Limits, Method};
use downburst_model::{Sequence, WallMicros};
use serde::{Deserialize, Serialize};

use super::{DescribedIngest, Written};
use crate::jobs::Failure;

/// Announced products of one feed, which are fetched side by side.
#[derive(Clone, Debug, Deserialize)]
pub struct FetchLine {
    /// The feed, checked against the known ones.
    pub feed: String,
    /// The bounds of each download.
    #[serde(default)]
    pub limits: Limits,
    /// The products, at most [`FETCH_PRODUCTS_MAX`].
    pub products: Vec<WantedLine>,
}

/// A product that another system has announced.
#[derive(Clone, Debug, Deserialize)]
pub struct WantedLine {
    /// Its address.
    pub url: String,
    /// The announced number of its bytes.
    pub size: Option<u64>,
    /// The announced digest.
    pub stated: Option<StatedDigest>,
    /// The login at the server of the address.
    pub credentials: Option<Credentials>,
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

/// A line of the answer: the downloads that have ended since the one before.
#[derive(Debug, Serialize)]
pub struct FetchAnswer {
    /// Other downloads of the job have not ended yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Their ends.
    pub ends: Vec<FetchEnd>,
}

/// The end of a download.
#[derive(Debug, Serialize)]
pub struct FetchEnd {
    /// The place of the product in the job, from 0.
    product: usize,
    #[serde(flatten)]
    outcome: Outcome,
}

/// As the agent reads it: few members, as there is one of these for each product.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    Stored { sequence: Sequence, size: u64 },
    Duplicate { duplicate_of: Sequence, size: Option<u64> },
    Refused { code: &'static str, error: String },
}

impl FetchLine {
    /// Checks what all its products share.
    ///
    /// # Errors
    ///
    /// There are none of them or too many, or a limit is out of bounds.
    pub fn check(&self) -> Result<(), String> {
        let products = self.products.len();
        if !(1..=FETCH_PRODUCTS_MAX).contains(&products) {
            return Err(format!("`products` has {products} entries; send 1 to {FETCH_PRODUCTS_MAX}"));
        }
        self.limits.check()
    }
}

impl FetchEnd {
    /// The end of the product at this place of its job.
    pub fn of(product: usize, ended: Result<Written, Failure>) -> Self {
        let outcome = match ended {
            Ok(Written::Stored(info)) => Outcome::Stored { sequence: info.key.sequence, size: info.size },
            Ok(Written::Duplicate { of, size, .. }) => Outcome::Duplicate { duplicate_of: of, size },
            Err(Failure { code, error, .. }) => Outcome::Refused { code, error },
        };
        Self { product, outcome }
    }
}

impl WantedLine {
    /// The announced facts about the bytes.
    ///
    /// # Errors
    ///
    /// The digest or the credentials can't be read.
    pub fn expected(&self) -> Result<Expected, Failure> {
        self.credentials.iter().try_for_each(Credentials::check).map_err(Failure::bad_request)?;
        let digest = self.stated.as_ref().map(StatedDigest::read).transpose()?;
        Ok(Expected { bytes: self.size, digest })
    }

    /// The checked description of the product.
    ///
    /// # Errors
    ///
    /// As of [`IngestLine::described`](super::IngestLine::described).
    pub fn described(&self, default_origin: &str) -> Result<DescribedIngest, Failure> {
        let origin = self.origin.as_deref().unwrap_or(default_origin);
        DescribedIngest::read(&self.product_id, origin, None, self.properties.as_deref())
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

/// Products of a job: enough that a line costs little for each, few enough that a lost job is little work.
pub const FETCH_PRODUCTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::product;

    fn wanted(more: &str) -> WantedLine {
        serde_json::from_str(&format!(r#"{{"url": "https://a.example/1", "product_id": "x"{more}}}"#))
            .unwrap()
    }

    #[test]
    fn the_announced_facts_are_read() {
        let expected =
            wanted(r#", "size": 3, "stated": {"method": "sha256", "value": "0aFF"}"#).expected().unwrap();
        assert_eq!(expected, Expected { bytes: Some(3), digest: Some((Method::Sha256, vec![10, 255])) });
        assert_eq!(wanted("").expected().unwrap(), Expected::default());
    }

    #[test]
    fn digests_and_credentials_that_make_no_sense_are_refused() {
        for value in ["0", "0g", "+1", "äö"] {
            let stated = format!(r#", "stated": {{"method": "sha256", "value": "{value}"}}"#);
            assert!(wanted(&stated).expected().is_err(), "{value}");
        }
        assert!(wanted(r#", "stated": {"method": "md5", "value": "00"}"#).expected().is_err());
        assert!(wanted(r#", "credentials": {"user": "unl"}"#).expected().is_err());
        assert!(wanted(r#", "credentials": {"token": "abc"}"#).expected().is_ok());
    }

    #[test]
    fn a_job_has_one_product_at_least_and_a_bounded_number() {
        let line = |products, limits| FetchLine { feed: "WIS2".to_owned(), limits, products };
        for (count, is_good) in
            [(0, false), (1, true), (FETCH_PRODUCTS_MAX, true), (FETCH_PRODUCTS_MAX + 1, false)]
        {
            assert_eq!(line(vec![wanted(""); count], Limits::default()).check().is_ok(), is_good, "{count}");
        }
        let beyond = Limits { redirects: 99, ..Limits::default() };
        assert!(line(vec![wanted("")], beyond).check().is_err());
    }

    #[test]
    fn a_product_is_described_with_all_that_was_stated() {
        let found = wanted(r#", "origin": "de-dwd", "properties": "{}""#).described("hub").unwrap();
        assert_eq!((found.id.as_str(), found.origin.as_str()), ("x", "de-dwd"));
        assert_eq!(found.properties.unwrap().as_bytes(), b"{}");
        assert_eq!(wanted("").described("hub").unwrap().origin.as_str(), "hub");
    }

    #[test]
    fn ends_carry_the_place_of_their_product() {
        let ends = vec![
            FetchEnd::of(2, Ok(Written::Stored(Box::new(product(5, "x", 9))))),
            FetchEnd::of(0, Ok(Written::duplicate(Sequence(3), None))),
            FetchEnd::of(1, Err(Failure::new("not-fetched", "no"))),
        ];
        let size = product(5, "x", 9).size;
        let ends_line = json!([{"product": 2, "sequence": 5, "size": size},
            {"product": 0, "duplicate_of": 3, "size": null},
            {"product": 1, "code": "not-fetched", "error": "no"}]);
        let line = |more, ends| serde_json::to_value(FetchAnswer { more, ends }).unwrap();
        assert_eq!(line(true, ends), json!({"more": true, "ends": ends_line}));
        assert_eq!(line(false, Vec::new()), json!({"ends": Vec::<Value>::new()}));
    }
}
