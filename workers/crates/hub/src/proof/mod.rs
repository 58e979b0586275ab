//! The proof that a node stores products and returns them: reads back one of the hub's own products, with those of the
//! last minutes.
use downburst_model::{Content, Sequence, WallMicros};

/// The log of the hub's own products.
pub trait ProvenLog {
    /// The error of a failed read.
    type Error;

    /// The first sequence that the log still has.
    fn first(&self) -> Sequence;

    /// The products after `after`, up to `to`, in order.
    fn read(&self, after: Sequence, to: Sequence) -> Result<Vec<KeptProduct>, Self::Error>;

    /// True if the product is as it was written.
    fn is_intact(&self, sequence: Sequence) -> Result<bool, Self::Error>;
}

/// A product of the log.
#[derive(Clone, Debug)]
pub struct KeptProduct {
    /// Its number.
    pub sequence: Sequence,
    /// The time at which it was stored.
    pub stored: WallMicros,
    /// Its bytes, if the log still has them.
    pub bytes: Option<Content>,
}

/// The result of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The digest of the new product's bytes, as sites would get them.
    pub digest: String,
    /// The number of products that were read.
    pub kept: usize,
}

/// The reason why a proof failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofFault<E> {
    /// The log can't be read.
    Log(E),
    /// The log does not hold the new product; a sentence.
    Missing(String),
    /// A product is not as it was written; a sentence.
    Damaged(String),
}

/// Reads all kept products once more: this detects a disk that loses data after minutes as well as one that never
/// stored it.
///
/// # Errors
///
/// The first fault that was found.
pub fn read_back<L: ProvenLog>(log: &L, new: Sequence) -> Result<Proven, ProofFault<L::Error>> {
    let oldest = Sequence(log.first().0.saturating_sub(1));
    let products = log.read(oldest, new).map_err(ProofFault::Log)?;
    let last = products.last().filter(|product| product.sequence == new);
    let Some(bytes) = last.and_then(|product| product.bytes.as_ref()?.whole()) else {
        let sentence = format!("the log has stored product {} and does not hold it", new.0);
        return Err(ProofFault::Missing(sentence));
    };
    for product in &products {
        if !log.is_intact(product.sequence).map_err(ProofFault::Log)? {
            return Err(ProofFault::Damaged(format!(
                "product {}, stored at {}, is not as it was written; look for failures of the disk (dmesg, smartctl)",
                product.sequence.0, product.stored.0
            )));
        }
    }
    Ok(Proven { digest: blake3::hash(&bytes).to_string(), kept: products.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of products with these numbers, of which one may be damaged.
    struct Log {
        numbers: std::ops::RangeInclusive<u64>,
        damaged: Option<u64>,
        without_bytes: bool,
    }

    impl ProvenLog for Log {
        type Error = &'static str;

        fn first(&self) -> Sequence {
            Sequence(*self.numbers.start())
        }

        fn read(&self, after: Sequence, to: Sequence) -> Result<Vec<KeptProduct>, Self::Error> {
            let product = |number: u64| KeptProduct {
                sequence: Sequence(number),
                stored: WallMicros(number as i64 * 10),
                bytes: (!self.without_bytes).then(|| number.to_string().into_bytes().into()),
            };
            let asked = self.numbers.clone().filter(|number| (after.0 + 1..=to.0).contains(number));
            Ok(asked.map(product).collect())
        }

        fn is_intact(&self, sequence: Sequence) -> Result<bool, Self::Error> {
            if sequence.0 == 13 { Err("the disk fails") } else { Ok(self.damaged != Some(sequence.0)) }
        }
    }

    fn log(numbers: std::ops::RangeInclusive<u64>) -> Log {
        Log { numbers, damaged: None, without_bytes: false }
    }

    #[test]
    fn all_kept_products_are_read_and_the_new_one_is_digested() {
        let proven = read_back(&log(3..=9), Sequence(9)).unwrap();
        assert_eq!(proven, Proven { digest: blake3::hash(b"9").to_string(), kept: 7 });
        assert_eq!(
            read_back(&log(0..=0), Sequence(0)).map(|it| it.kept),
            Err(missing(0)),
            "nothing is stored"
        );
    }

    fn missing(number: u64) -> ProofFault<&'static str> {
        ProofFault::Missing(format!("the log has stored product {number} and does not hold it"))
    }

    #[test]
    fn a_log_that_does_not_hold_the_new_product_fails() {
        assert_eq!(read_back(&log(3..=9), Sequence(10)), Err(missing(10)));
        let evicted = Log { without_bytes: true, ..log(3..=9) };
        assert_eq!(read_back(&evicted, Sequence(9)), Err(missing(9)));
    }

    #[test]
    fn an_older_product_that_changed_on_the_disk_is_named() {
        let damaged = Log { damaged: Some(5), ..log(3..=9) };
        let Err(ProofFault::Damaged(sentence)) = read_back(&damaged, Sequence(9)) else {
            panic!("it passed")
        };
        assert!(sentence.starts_with("product 5, stored at 50, is not as it was written;"), "{sentence}");
    }

    #[test]
    fn a_log_that_can_not_be_read_fails() {
        assert_eq!(read_back(&log(12..=14), Sequence(14)), Err(ProofFault::Log("the disk fails")));
    }
}
