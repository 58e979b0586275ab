/// Base64 of RFC 4648, section 4, with padding.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0u32;
        for at in 0..3 {
            bits = bits << 8 | u32::from(group.get(at).copied().unwrap_or_default());
        }
        for at in 0..4 {
            let six = (bits >> (18 - 6 * at)) & 63;
            text.push(if at > group.len() { '=' } else { digit(six) });
        }
    }
    text
}

fn digit(six: u32) -> char {
    let begin = |from: u8, first: u32| char::from(from + u8::try_from(six - first).unwrap_or_default());
    match six {
        0..26 => begin(b'A', 0),
        26..52 => begin(b'a', 26),
        52..62 => begin(b'0', 52),
        62 => '+',
        _ => '/',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_are_met() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encoded(bytes.as_bytes()), text);
        }
        assert_eq!(encoded(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}
