//! The WMO starting line of a bulletin: SOH CR CR LF nnn CR CR LF, with nnn of three to five digits.

/// The length of the starting line at the beginning of `content`; zero if there is none.
///
/// Real input carries blanks around the number and LF alone instead of CR CR LF.
pub(crate) fn starting_line_bytes(content: &[u8]) -> usize {
    after_starting_line(content).map_or(0, |rest| content.len() - rest.len())
}

/// A starting line is never longer.
pub(crate) const MAX_STARTING_LINE_BYTES: usize = 24;

fn after_starting_line(content: &[u8]) -> Option<&[u8]> {
    let head = content.get(..content.len().min(MAX_STARTING_LINE_BYTES))?;
    let line = head.strip_prefix(&[SOH])?;
    let number = skip(after_end_of_line(line)?, |byte| byte == b' ');
    let rest = skip(number, |byte| byte.is_ascii_digit());
    if !(3..=5).contains(&(number.len() - rest.len())) {
        return None;
    }
    let rest = after_end_of_line(skip(rest, |byte| byte == b' '))?;
    content.get(head.len() - rest.len()..)
}

fn after_end_of_line(text: &[u8]) -> Option<&[u8]> {
    skip(text, |byte| byte == b'\r').strip_prefix(b"\n")
}

fn skip(text: &[u8], unwanted: impl Fn(u8) -> bool) -> &[u8] {
    let count = text.iter().take_while(|byte| unwanted(**byte)).count();
    text.get(count..).unwrap_or_default()
}

const SOH: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starting_line_is_found() {
        for (content, length) in [
            (&b"\x01\r\r\n123\r\r\nSAUS KWBC"[..], 10),
            (b"\x01\r\r\n12345\r\r\nSAUS", 12),
            (b"\x01\r\r\n123 \r\r\nSAUS", 11),
            (b"\x01\n123\nSAUS", 6),
            (b"\x01\r\r\n123\r\r\n", 10),
        ] {
            assert_eq!(starting_line_bytes(content), length, "{:?}", content.escape_ascii().to_string());
        }
    }

    #[test]
    fn other_content_has_none() {
        for content in [
            &b""[..],
            b"\x01",
            b"SAUS KWBC",
            b"\x01\r\r\n12\r\r\nSAUS",
            b"\x01\r\r\n123456\r\r\nSAUS",
            b"\x01\r\r\n123",
            b"\x01123\r\r\n",
            b"\x01\r\r\n123\r\rSAUS\n",
            b"\x01\r\r\n                    123\r\r\nSAUS",
        ] {
            assert_eq!(starting_line_bytes(content), 0, "{:?}", content.escape_ascii().to_string());
        }
    }
}
