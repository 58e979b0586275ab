//! Removes the same bytes from the beginning of a product as LDM's `-removewmo`. It follows LDM 6.14.5 byte
//! for byte, quirks included. The heading is `TTAAii CCCC YYGGgg [BBB]`, with or without NOAAPort's framing,
//! and anything may precede it.

/// Removes everything up to the end of a product's abbreviated heading, and a following line with an AWIPS
/// identifier.
pub(super) fn without(product: &[u8]) -> &[u8] {
    if product.len() < SHORTEST_BYTES {
        return product;
    }
    let (kept, searched) = match framed(product) {
        // The last bytes are assumed to be the frame's trailer, without a check.
        Some(inner) => (inner.get(..inner.len().saturating_sub(TRAILER_BYTES)).unwrap_or_default(), inner),
        None => (product, product),
    };
    let gone = Heading { bytes: searched, at: 0 }.end().unwrap_or_default();
    kept.get(gone..).unwrap_or_default()
}

/// The bytes after SOH CR CR LF, three digits, a blank and CR CR LF.
fn framed(product: &[u8]) -> Option<&[u8]> {
    let (number, rest) = product.strip_prefix(b"\x01\r\r\n")?.split_first_chunk::<3>()?;
    let inner = rest.strip_prefix(b" \r\r\n")?;
    number.iter().all(u8::is_ascii_digit).then_some(inner)
}

/// A reader of a heading.
struct Heading<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Heading<'_> {
    /// The number of bytes to remove; `None` if there is no heading. If the part after the date is malformed,
    /// the heading is kept, and only the bytes before it are removed.
    fn end(mut self) -> Option<usize> {
        let begin = self.find()?;
        self.at = begin + DATA_TYPE_BYTES;
        self.skip_space();
        if !self.is("anan") {
            return None;
        }
        self.at += CENTRE_BYTES;
        self.skip_space();
        if self.is("dddddd") {
            self.at += DATE_BYTES;
        }
        if !self.skip_end_of_line() {
            return Some(begin);
        }
        if self.is("nnnnnn") && self.rest(AWIPS_BYTES).starts_with(END_OF_LINE) {
            self.at += AWIPS_BYTES + END_OF_LINE.len();
        }
        Some(self.at)
    }

    /// The position of four letters and two digits, followed by a blank or a letter. CR CR LF ends the search.
    fn find(&self) -> Option<usize> {
        for begin in 0..self.bytes.len().saturating_sub(DATA_TYPE_BYTES) {
            let here = Self { bytes: self.bytes, at: begin };
            if !here.is("aaaa") {
                if here.rest(0).starts_with(END_OF_LINE) {
                    return None;
                }
                continue;
            }
            let after = here.rest(DATA_TYPE_BYTES).first().copied().unwrap_or_default();
            if here.is("aaaadd") && (is_space(after) || after.is_ascii_alphabetic()) {
                return Some(begin);
            }
        }
        None
    }

    /// Skips the group BBB, if there is one, and three CR or LF. The last byte of a shorter end of line is
    /// kept. False if there are other bytes.
    fn skip_end_of_line(&mut self) -> bool {
        let (mut ends, mut has_group) = (0, false);
        while let Some(&next) = self.rest(0).first() {
            if matches!(next, b'\r' | b'\n') {
                ends += 1;
                self.at += 1;
                if ends == END_OF_LINE.len() {
                    return true;
                }
            } else if ends > 0 {
                self.at -= 1;
                return true;
            } else if next.is_ascii_alphabetic() {
                if has_group || !self.skip_group() {
                    return false;
                }
                has_group = true;
            } else if is_space(next) {
                self.at += 1;
            } else {
                return false;
            }
        }
        true
    }

    /// Skips up to three letters and stops at the blank after them.
    fn skip_group(&mut self) -> bool {
        let rest = self.rest(0);
        let letters = rest.iter().take(GROUP_BYTES).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let ends = rest.get(letters).is_some_and(|byte| is_space(*byte));
        self.at += if ends { letters } else { 0 };
        ends
    }

    fn skip_space(&mut self) {
        self.at += self.rest(0).iter().take_while(|byte| is_space(**byte)).count();
    }

    /// True if the next bytes are of these kinds: `a` a letter, `d` a digit, `n` either.
    fn is(&self, kinds: &str) -> bool {
        let fits = |(kind, byte): (u8, &u8)| match kind {
            b'a' => byte.is_ascii_alphabetic(),
            b'd' => byte.is_ascii_digit(),
            _ => byte.is_ascii_alphanumeric(),
        };
        let rest = self.rest(0);
        rest.len() >= kinds.len() && kinds.bytes().zip(rest).all(fits)
    }

    fn rest(&self, skipped: usize) -> &[u8] {
        self.bytes.get(self.at + skipped..).unwrap_or_default()
    }
}

/// As `isspace(3)` in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

const END_OF_LINE: &[u8] = b"\r\r\n";
/// Shorter products are left unchanged.
const SHORTEST_BYTES: usize = 21;
/// CR CR LF ETX.
const TRAILER_BYTES: usize = 4;
/// TTAAii.
const DATA_TYPE_BYTES: usize = 6;
/// CCCC.
const CENTRE_BYTES: usize = 4;
/// YYGGgg.
const DATE_BYTES: usize = 6;
/// BBB.
const GROUP_BYTES: usize = 3;
/// NNNXXX.
const AWIPS_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Products, and the bytes that LDM 6.14.5 leaves of them.
    const CASES: [(&[u8], &[u8]); 20] = [
        (b"\x01\r\r\n123 \r\r\nSAUS70 KWBC 291200\r\r\nMETAR KDEN\r\r\n\x03", b"METAR KDEN"),
        (b"\x01\r\r\n123 \r\r\nSAUS70 KWBC 291200\r\r\nMETAR\r\r\n\r\r\n\x03", b"METAR\r\r\n"),
        (b"\x01\r\r\n123 \r\r\nNOUS42 KWNO 291200\r\r\nADMNFD\r\r\nTEXT\r\r\n\x03", b"TEXT"),
        (b"\x01\r\r\n123 \r\r\nno heading in here\r\r\n\x03", b"no heading in here"),
        (b"SAUS70 KWBC 291200\r\r\nMETAR KDEN\r\r\n\x03", b"METAR KDEN\r\r\n\x03"),
        (b"SAUS70 KWBC 291200 RRA\r\r\nMETAR KDEN", b"METAR KDEN"),
        (b"****0000000045****\nSAUS70 KWBC 291200\r\r\nMETAR", b"METAR"),
        (b"some line\nSAUS70 KWBC 291200\r\r\nMETAR", b"METAR"),
        (
            b"****0000000045****\r\r\nSAUS70 KWBC 291200\r\r\nM",
            b"****0000000045****\r\r\nSAUS70 KWBC 291200\r\r\nM",
        ),
        (b"\x01\r\r\n1234\r\r\nSAUS70 KWBC 291200\r\r\nM", b"\x01\r\r\n1234\r\r\nSAUS70 KWBC 291200\r\r\nM"),
        (b"SAUS70 KWBC 291200\nMETAR KDEN", b"\nMETAR KDEN"),
        (b"SAUS70 KWBC 291200\r\nMETAR KDEN", b"\nMETAR KDEN"),
        (b"SAUS70 KWBC 291200\n\n\n\nMETAR", b"\nMETAR"),
        (b"xx SAUS70 KWBC 291200 9\r\r\nMETAR", b"SAUS70 KWBC 291200 9\r\r\nMETAR"),
        (b"xx SAUS70 KWBC 291200 COR RRA\r\r\nM", b"SAUS70 KWBC 291200 COR RRA\r\r\nM"),
        (b"SAUS70KWBC291200\r\r\nMETAR KDEN", b"METAR KDEN"),
        (b"SAUS70 KWBC no date, but text", b"SAUS70 KWBC no date, but text"),
        (b"GRIB\0\0\0\x02 binary without a heading", b"GRIB\0\0\0\x02 binary without a heading"),
        (b"SAUS7 KWBC 291200\r\r\nMETAR KDEN", b"SAUS7 KWBC 291200\r\r\nMETAR KDEN"),
        (b"SAUS70 KWBC 291200\r\n", b"SAUS70 KWBC 291200\r\n"),
    ];

    #[test]
    fn finding_24_headings_go_as_with_removewmo_of_ldm() {
        for (product, left) in CASES {
            assert_eq!(without(product), left, "{}", product.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_lose_nothing_but_what_stands_before_and_a_trailer(
            product in "(\x01\r\r\n[0-9]{3} ?\r\r\n)?([*a-z0-9 ]{0,9}\r?\n)?([A-Z]{4}[0-9]{0,2} ?[A-Z]{3,4} \
                ?[0-9]{0,6}[ A-Z]{0,5}(\r|\n){0,4})?(?s).{0,20}",
        ) {
            let bytes = product.as_bytes();
            let left = without(bytes);
            prop_assert!(bytes.ends_with(left) || bytes.get(..bytes.len() - TRAILER_BYTES).unwrap().ends_with(left));
        }

        /// Six letters on a line are an AWIPS identifier, so they are removed too.
        #[test]
        fn bulletins_of_any_text_lose_only_heading_and_end(text in "[A-Za-z ]{0,5}|[A-Za-z ]{7,40}") {
            let bulletin = format!("\x01\r\r\n456 \r\r\nFTUS80 KWBC 291200\r\r\n{text}\r\r\n\x03");
            prop_assert_eq!(without(bulletin.as_bytes()), text.as_bytes());
        }
    }
}
