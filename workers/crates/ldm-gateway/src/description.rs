//! Conversion between LDM's descriptions of products and the hub's.
use downburst_ldm6::{FeedType, Ident, LdmOrigin, ProductInfo, Signature};
use downburst_log::LogEntry;
use downburst_model::{Content, LdmIdent, LdmStamp, Origin, ProductId, counted, is_heartbeat};
use md5::{Digest as _, Md5};

/// The identifier in the hub's form: unchanged, unless it holds characters that the hub does not allow. These are
/// then escaped, each byte as `%` and two hexadecimal digits; the [`stamp`] keeps LDM's original identifier.
pub(super) fn product_id(ident: &Ident) -> Option<ProductId> {
    let text = ident.text();
    if is_heartbeat(&text) {
        return None;
    }
    let plain = std::str::from_utf8(ident.as_bytes()).ok().and_then(|text| ProductId::parse(text).ok());
    plain.or_else(|| ProductId::parse(&written(ident)).ok())
}

/// The escaped form of an identifier that the hub does not allow. The escape is reversible; a text that is too long
/// is cut and ends with a digest, so that no two encoded identifiers are equal.
fn written(ident: &Ident) -> String {
    let mut text = String::new();
    for chunk in ident.as_bytes().utf8_chunks() {
        chunk.valid().split_inclusive(['/', '\\']).for_each(|part| put_part(&mut text, part));
        put_bytes(&mut text, chunk.invalid());
    }
    if text.is_empty() {
        text.push_str(NAMELESS);
    }
    if text.len() <= LONGEST_ID_BYTES {
        return text;
    }
    let digest = Signature(Md5::digest(ident.as_bytes()).into()).to_string();
    while text.len() + 1 + digest.len() > LONGEST_ID_BYTES {
        text.pop();
    }
    format!("{text}~{digest}")
}

fn put_part(text: &mut String, part: &str) {
    let (name, separator) =
        part.strip_suffix(['/', '\\']).map_or((part, ""), |name| part.split_at(name.len()));
    for letter in name.chars() {
        if letter.is_control() || letter == '%' || name == ".." {
            put_bytes(text, letter.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            text.push(letter);
        }
    }
    text.push_str(separator);
}

fn put_bytes(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
}

/// The origin with the last hop, in LDM's form.
pub(super) fn origin(origin: &LdmOrigin) -> Option<Origin> {
    let text = origin.text();
    let printable: String =
        text.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '?' }).collect();
    Origin::parse(if printable.is_empty() { NAMELESS } else { &printable }).ok()
}

/// The fields of a description that are kept beside identifier and origin.
pub(super) fn stamp(info: &ProductInfo, id: &ProductId) -> LdmStamp {
    let ident = info.ident.as_bytes();
    LdmStamp {
        signature: info.signature.0,
        sequence: info.sequence,
        feed_type: info.feed.bits(),
        ident: LdmIdent::new(ident.to_vec()).filter(|ident| ident.as_bytes() != id.as_str().as_bytes()),
    }
}

/// LDM's description of a product in a log; `None` if its size exceeds LDM's range, or its bytes are gone.
pub(super) fn description(entry: &LogEntry, own_type: FeedType) -> Option<ProductInfo> {
    let info = &entry.info;
    let content = entry.bytes.as_ref()?;
    let stamp = entry.ldm.clone().or_else(|| Some(LdmStamp::of_content(signature(content)?)))?;
    let feed = Some(FeedType::from_bits(stamp.feed_type)).filter(|feed| !feed.is_none());
    let origin = info.origin.as_str().as_bytes();
    Some(ProductInfo {
        arrival: info.created.into(),
        signature: Signature(stamp.signature),
        origin: LdmOrigin::new(origin.get(..LONGEST_ORIGIN_BYTES).unwrap_or(origin).to_vec()).ok()?,
        feed: feed.unwrap_or(own_type),
        sequence: if stamp.is_from_ldm() { stamp.sequence } else { counted(info.key.sequence.0) },
        ident: Ident::new(
            stamp.ident.as_ref().map_or(info.id.as_str().as_bytes(), LdmIdent::as_bytes).to_vec(),
        )
        .ok()?,
        size: u32::try_from(info.size).ok().filter(|size| *size <= LARGEST_BYTES)?,
    })
}

/// The signature of the bytes; `None` if the disk can't return them.
fn signature(content: &Content) -> Option<[u8; 16]> {
    let mut signature = Md5::new();
    for start in (0..content.len()).step_by(PIECE_BYTES) {
        signature.update(content.slice(start..content.len().min(start.saturating_add(PIECE_BYTES)))?);
    }
    Some(signature.finalize().into())
}

const PIECE_BYTES: usize = 256 << 10;

/// Replaces an empty name.
const NAMELESS: &str = "unnamed";
const LONGEST_ID_BYTES: usize = 255;
const LONGEST_ORIGIN_BYTES: usize = 64;

/// The most that one fragment of a record holds.
pub(super) const LARGEST_BYTES: u32 = (1 << 31) - 1_024;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use downburst_model::{Class, Digest, Epoch, FeedName, ProductKey, Sequence, WallMicros};

    use super::*;

    #[test]
    fn identifiers_are_kept_where_the_hub_can_keep_them() {
        let id = |text: &[u8]| product_id(&Ident::new(text.to_vec()).unwrap()).unwrap().as_str().to_owned();
        assert_eq!(id(b"SDUS54 KFWD 231200 /pN0R"), "SDUS54 KFWD 231200 /pN0R");
        assert_eq!(id(b"100% of a..b"), "100% of a..b", "what the hub can keep");
        assert_eq!(id(b"a\x01b"), "a%01b");
        assert_eq!(id(b"a/../b\\.."), "a/%2E%2E/b\\%2E%2E");
        assert_eq!(id(b"a%01\x01"), "a%2501%01", "no two that are written are the same");
        assert_eq!(id(b""), NAMELESS);
        assert_eq!(id(b"a\xff"), "a%FF");
        assert_eq!(id("a\u{85}\u{fffd}".as_bytes()), "a%C2%85\u{fffd}");
        let long = |last: u8| id(&[&[0xff; 254][..], &[last]].concat());
        assert_eq!(long(0xff).len(), LONGEST_ID_BYTES);
        assert_ne!(long(0xff), long(0xfe));
    }

    #[test]
    fn finding_22_an_identifier_of_any_bytes_comes_out_as_it_came_in() {
        let mut bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![b'a', byte, b'/', byte]).collect();
        bytes.extend([
            b"".to_vec(),
            b"..".to_vec(),
            b"a/../b".to_vec(),
            b"\\..\\".to_vec(),
            vec![0xff; 255],
            vec![0; 255],
        ]);
        bytes.extend(["W\u{e4}rme \u{85}".into(), b"100%".to_vec(), b"%2E%2E".to_vec(), b"unnamed".to_vec()]);
        for ident in bytes {
            let brought = ProductInfo { ident: Ident::new(ident.clone()).unwrap(), ..ProductInfo::default() };
            let id = product_id(&brought.ident).unwrap();
            let given = description(&entry(id.clone(), Some(stamp(&brought, &id))), FeedType::ANY).unwrap();
            assert_eq!(given.ident.as_bytes(), ident, "kept as {id}");
        }
    }

    fn entry(id: ProductId, ldm: Option<LdmStamp>) -> LogEntry {
        let key = ProductKey { feed: FeedName::parse("F").unwrap(), epoch: Epoch(1), sequence: Sequence(1) };
        let info = downburst_model::ProductInfo {
            key,
            id,
            origin: Origin::parse("host").unwrap(),
            created: WallMicros(0),
            stored: WallMicros(0),
            size: 0,
            digest: Digest([0; 32]),
            class: Class::Grid,
            hops: None,
            ldm: None,
            properties: None,
        };
        LogEntry { info, bytes: Some(Bytes::new().into()), source: None, ldm }
    }

    #[test]
    fn origins_keep_their_last_hop() {
        let kept = |text: &str| origin(&LdmOrigin::new(text.to_owned()).unwrap()).unwrap();
        assert_eq!(kept("nws.gov_v_idd.unl.edu").as_str(), "nws.gov_v_idd.unl.edu");
        assert_eq!(kept("a b").as_str(), "a?b");
        assert_eq!(kept("").as_str(), NAMELESS);
    }
}
