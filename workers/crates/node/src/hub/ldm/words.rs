//! From LDM's descriptions of products to the hub's, and back.
use downburst_ldm6::{FeedType, Ident, LdmOrigin, ProductInfo, Signature};
use downburst_log::{LdmStamp, LogEntry};
use downburst_model::{Origin, ProductId, is_heartbeat};
use md5::{Digest as _, Md5};

/// The identifier as the hub keeps it: unchanged, unless it holds what no identifier of the hub may.
pub(super) fn product_id(ident: &Ident) -> Option<ProductId> {
    let text = ident.text();
    if is_heartbeat(&text) {
        return None;
    }
    if let Ok(id) = ProductId::parse(&text) {
        return Some(id);
    }
    let printable: String =
        text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    let harmless = printable.split('/').map(|part| if part == ".." { "%2E%2E" } else { part });
    let mut whole = harmless.collect::<Vec<_>>().join("/");
    if whole.is_empty() {
        whole.push_str(NAMELESS);
    }
    while whole.len() > LONGEST_ID_BYTES {
        whole.pop();
    }
    ProductId::parse(&whole).ok()
}

/// The origin with the last hop, as LDM writes it.
pub(super) fn origin(origin: &LdmOrigin) -> Option<Origin> {
    let text = origin.text();
    let printable: String =
        text.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '?' }).collect();
    Origin::parse(if printable.is_empty() { NAMELESS } else { &printable }).ok()
}

/// What is kept of a description beside that.
pub(super) fn stamp(info: &ProductInfo) -> LdmStamp {
    LdmStamp { signature: info.signature.0, sequence: info.sequence, feed_type: info.feed.bits() }
}

/// A product of a log as LDM describes it. `None` where LDM's numbers can't hold its size.
pub(super) fn description(entry: &LogEntry, own_type: FeedType) -> Option<ProductInfo> {
    let info = &entry.info;
    let bytes = entry.bytes.as_ref()?;
    let stamp = entry.ldm.unwrap_or_else(|| LdmStamp::of_content(Md5::digest(bytes).into()));
    let feed = Some(FeedType::from_bits(stamp.feed_type)).filter(|feed| !feed.is_none());
    let origin = info.origin.as_str().as_bytes();
    Some(ProductInfo {
        arrival: info.created.into(),
        signature: Signature(stamp.signature),
        origin: LdmOrigin::new(origin.get(..LONGEST_ORIGIN_BYTES).unwrap_or(origin).to_vec()).ok()?,
        feed: feed.unwrap_or(own_type),
        sequence: if stamp.feed_type == 0 { counted(info.key.sequence.0) } else { stamp.sequence },
        ident: Ident::new(info.id.as_str().to_owned()).ok()?,
        size: u32::try_from(info.size).ok().filter(|size| *size <= LARGEST_BYTES)?,
    })
}

/// The log's number, as far as 31 bits hold it: some programs read it with a sign.
fn counted(sequence: u64) -> u32 {
    u32::try_from(sequence & u64::from(u32::MAX >> 1)).unwrap_or_default()
}

/// Stands for a name that is empty.
const NAMELESS: &str = "unnamed";
const LONGEST_ID_BYTES: usize = 255;
const LONGEST_ORIGIN_BYTES: usize = 64;

/// One fragment of a record holds no more.
pub(super) const LARGEST_BYTES: u32 = (1 << 31) - 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_kept_where_the_hub_can_keep_them() {
        let id = |text: &str| product_id(&Ident::new(text.to_owned()).unwrap()).unwrap();
        assert_eq!(id("SDUS54 KFWD 231200 /pN0R").as_str(), "SDUS54 KFWD 231200 /pN0R");
        assert_eq!(id("a\u{1}b").as_str(), "a?b");
        assert_eq!(id("a/../b").as_str(), "a/%2E%2E/b");
        assert_eq!(id("").as_str(), NAMELESS);
        assert!(id(&"../".repeat(85)).as_str().len() <= LONGEST_ID_BYTES);
        let no_text = Ident::new(vec![b'a', 0xff]).unwrap();
        assert_eq!(product_id(&no_text).unwrap().as_str(), "a\u{fffd}");
    }

    #[test]
    fn origins_keep_their_last_hop() {
        let kept = |text: &str| origin(&LdmOrigin::new(text.to_owned()).unwrap()).unwrap();
        assert_eq!(kept("nws.gov_v_idd.unl.edu").as_str(), "nws.gov_v_idd.unl.edu");
        assert_eq!(kept("a b").as_str(), "a?b");
        assert_eq!(kept("").as_str(), NAMELESS);
    }
}
