use ring::digest::{Context, SHA256, SHA384, SHA512};
use sha3::{Digest as _, Sha3_256, Sha3_384, Sha3_512};

/// A method by which an announcement states the digest of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
}

impl Method {
    /// The method by its name in WIS2's notifications.
    pub fn parse(name: &str) -> Option<Self> {
        let named = |method: &&Self| method.name() == name;
        [Self::Sha256, Self::Sha384, Self::Sha512, Self::Sha3_256, Self::Sha3_384, Self::Sha3_512]
            .iter()
            .find(named)
            .copied()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Sha3_256 => "sha3-256",
            Self::Sha3_384 => "sha3-384",
            Self::Sha3_512 => "sha3-512",
        }
    }
}

/// The statements of an announcement about the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Their number.
    pub bytes: Option<u64>,
    /// Their digest.
    pub digest: Option<(Method, Vec<u8>)>,
}

/// Checks the bytes of a product while they come.
pub struct Verifier {
    expected: Expected,
    most_bytes: u64,
    bytes: u64,
    stated: Option<Stated>,
}

/// The digest by the announcement's method; there is no other one, as it costs as much as all else here.
enum Stated {
    Sha2(Context),
    Sha3_256(Sha3_256),
    Sha3_384(Sha3_384),
    Sha3_512(Sha3_512),
}

impl Verifier {
    /// `most_bytes`: the limit of the download.
    pub fn new(expected: Expected, most_bytes: u64) -> Self {
        let stated = expected.digest.as_ref().map(|(method, _)| Stated::new(*method));
        Self { expected, most_bytes, bytes: 0, stated }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// There are more of them than announced, or than allowed; one sentence.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if let Some(expected) = self.expected.bytes.filter(|expected| self.bytes > *expected) {
            return Err(format!("the server sends more than the {expected} bytes that were announced"));
        }
        if self.bytes > self.most_bytes {
            return Err(format!("the product has more than {} bytes, the limit here", self.most_bytes));
        }
        if let Some(stated) = &mut self.stated {
            stated.update(bytes);
        }
        Ok(())
    }

    /// Judges the bytes once all have come.
    ///
    /// # Errors
    /// They are fewer than announced, or others; one sentence.
    pub fn finish(self) -> Result<(), String> {
        if let Some(expected) = self.expected.bytes.filter(|expected| self.bytes != *expected) {
            return Err(format!("{} bytes came, and {expected} were announced", self.bytes));
        }
        let Some((method, announced)) = self.expected.digest else { return Ok(()) };
        if self.stated.map(Stated::finish).as_ref() != Some(&announced) {
            return Err(format!("the bytes don't have the {} digest that was announced", method.name()));
        }
        Ok(())
    }
}

impl Stated {
    fn new(method: Method) -> Self {
        match method {
            Method::Sha256 => Self::Sha2(Context::new(&SHA256)),
            Method::Sha384 => Self::Sha2(Context::new(&SHA384)),
            Method::Sha512 => Self::Sha2(Context::new(&SHA512)),
            Method::Sha3_256 => Self::Sha3_256(Sha3_256::new()),
            Method::Sha3_384 => Self::Sha3_384(Sha3_384::new()),
            Method::Sha3_512 => Self::Sha3_512(Sha3_512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha2(context) => context.update(bytes),
            Self::Sha3_256(context) => context.update(bytes),
            Self::Sha3_384(context) => context.update(bytes),
            Self::Sha3_512(context) => context.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha2(context) => context.finish().as_ref().to_vec(),
            Self::Sha3_256(context) => context.finalize().to_vec(),
            Self::Sha3_384(context) => context.finalize().to_vec(),
            Self::Sha3_512(context) => context.finalize().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const METHODS: [(Method, &str); 6] = [
        (Method::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Method::Sha384,
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            Method::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
             454d4423643ce80e2a9ac94fa54ca49f",
        ),
        (Method::Sha3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            Method::Sha3_384,
            "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
        ),
        (
            Method::Sha3_512,
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e39340\
             57340b4cf408d5a56592f8274eec53f0",
        ),
    ];

    fn bytes_of(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn verified(expected: Expected, pieces: &[&[u8]]) -> Result<(), String> {
        let mut verifier = Verifier::new(expected, 1_000);
        pieces.iter().try_for_each(|piece| verifier.take(piece))?;
        verifier.finish()
    }

    /// The digests of "abc" are those of FIPS 180-4 and FIPS 202's examples.
    #[test]
    fn every_method_accepts_its_digest_and_no_other() {
        for (method, hex) in METHODS {
            assert_eq!(Method::parse(method.name()), Some(method));
            let expected = |digest| Expected { bytes: Some(3), digest: Some((method, digest)) };
            assert_eq!(verified(expected(bytes_of(hex)), &[b"a", b"", b"bc"]), Ok(()), "{method:?}");
            for wrong in [Vec::new(), vec![0; bytes_of(hex).len()]] {
                let refused = verified(expected(wrong), &[b"abc"]).unwrap_err();
                assert!(refused.contains(method.name()), "{refused}");
            }
        }
        assert_eq!(Method::parse("md5"), None);
    }

    #[test]
    fn another_length_than_announced_is_refused() {
        let expected = || Expected { bytes: Some(3), digest: None };
        assert!(verified(expected(), &[b"ab"]).unwrap_err().contains("2 bytes came, and 3"));
        assert!(verified(expected(), &[b"ab", b"cd"]).unwrap_err().contains("more than the 3"));
    }

    #[test]
    fn a_product_without_an_announced_length_ends_at_the_limit() {
        assert!(verified(Expected::default(), &[&[0; 1_000]]).is_ok());
        assert!(verified(Expected::default(), &[&[0; 1_000], b"x"]).unwrap_err().contains("1000 bytes"));
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_are_one_product(bytes in prop::collection::vec(any::<u8>(), 0..500), at in 0_usize..500)
        {
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            let expected = Expected { bytes: Some(bytes.len() as u64), digest: None };
            prop_assert_eq!(verified(expected.clone(), &[head, tail]), verified(expected, &[&bytes]));
        }
    }
}
