use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// A UUID of version 5 (RFC 9562, 5.5): the same for the same parts.
pub(crate) fn uuid(parts: &[&str]) -> String {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(&NAMESPACE);
    for part in parts {
        context.update(part.as_bytes());
        context.update(b"\n");
    }
    let mut bytes: Vec<u8> = context.finish().as_ref().iter().take(16).copied().collect();
    if let Some(version) = bytes.get_mut(6) {
        *version = *version & 0x0f | 0x50;
    }
    if let Some(variant) = bytes.get_mut(8) {
        *variant = *variant & 0x3f | 0x80;
    }
    let digits = hexadecimal(&bytes);
    let group = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The namespace of URLs (RFC 9562, 6.6).
const NAMESPACE: [u8; 16] =
    [0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_a_uuid_that_depends_on_its_parts_alone() {
        let one = uuid(&["us-unidata", "a"]);
        assert_eq!(one, uuid(&["us-unidata", "a"]));
        assert_ne!(one, uuid(&["us-unidataa", ""]));
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'5'));
        assert!(matches!(one.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
