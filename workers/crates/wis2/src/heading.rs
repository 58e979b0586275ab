//! Headings of bulletins of the GTS (WMO-No. 386, part II): `TTAAii CCCC YYGGgg [BBB]`.

/// The abbreviated heading of a bulletin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Four letters and two digits.
    pub ttaaii: String,
    /// The centre that compiled it.
    pub cccc: String,
}

impl Heading {
    /// The heading in the first 120 bytes of a product: room for a starting line.
    pub fn find(content: &[u8]) -> Option<Self> {
        let begin = content.get(..WITHIN_BYTES).unwrap_or(content);
        (0..begin.len()).find_map(|at| {
            let is_first = at == 0 || matches!(begin.get(at - 1), Some(b'\r' | b'\n' | b' '));
            if is_first { begin.get(at..).and_then(Self::read) } else { None }
        })
    }

    /// The end of a gateway's topic (guide to the transition to WIS2, 3.1.3).
    pub(crate) fn levels(&self) -> String {
        let (letters, number) = self.ttaaii.split_at(4.min(self.ttaaii.len()));
        let mut levels: Vec<String> = letters.chars().map(String::from).collect();
        levels.extend([number.to_owned(), self.cccc.clone()]);
        levels.join("/")
    }

    fn read(text: &[u8]) -> Option<Self> {
        let (first, rest) = text.split_at_checked(FORM.len())?;
        let fits = first.iter().zip(FORM).all(|(byte, form)| match form {
            b'A' => byte.is_ascii_uppercase(),
            b'0' => byte.is_ascii_digit(),
            b'3' => (b'0'..=b'3').contains(byte),
            b'2' => (b'0'..=b'2').contains(byte),
            b'5' => (b'0'..=b'5').contains(byte),
            _ => *byte == b' ',
        });
        if !fits || !ends(rest) {
            return None;
        }
        let word = |from: usize, to: usize| Some(String::from_utf8_lossy(first.get(from..to)?).into_owned());
        Some(Self { ttaaii: word(0, 6)?, cccc: word(7, 11)? })
    }
}

/// True if a line's end follows, perhaps behind a BBB.
fn ends(rest: &[u8]) -> bool {
    let without_blanks = |text: &[u8]| text.iter().find(|byte| **byte != b' ').copied();
    let is_end = |text: &[u8]| matches!(without_blanks(text), Some(b'\r' | b'\n'));
    let behind_bbb = match rest {
        [b' ', a, b, c, more @ ..] if [a, b, c].iter().all(|byte| byte.is_ascii_uppercase()) => Some(more),
        _ => None,
    };
    is_end(rest) || behind_bbb.is_some_and(is_end)
}

const WITHIN_BYTES: usize = 120;
/// A: a letter; 0: a digit; 3, 2, 5: a digit up to it.
const FORM: &[u8] = b"AAAA00 AAAA 302050";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headings_are_found_behind_starting_lines_and_before_line_ends() {
        for text in [
            "SMVX01 TJSJ 291200\r\r\nAAXX",
            "\u{1}\r\r\n123\r\r\nSMVX01 TJSJ 291200 RRA\r\r\nAAXX",
            "SMVX01 TJSJ 291200 \nAAXX",
            "12345 SMVX01 TJSJ 291200 CCA  \r\nAAXX",
        ] {
            let found = Heading::find(text.as_bytes()).unwrap();
            assert_eq!((&*found.ttaaii, &*found.cccc), ("SMVX01", "TJSJ"), "{text:?}");
            assert_eq!(found.levels(), "S/M/V/X/01/TJSJ");
        }
    }

    #[test]
    fn other_texts_have_none() {
        for text in [
            "",
            "GRIB",
            "SMVX01 TJSJ 291200",
            "SMVX1 TJSJ 291200\n",
            "SMVX01 TJSJ 411200\n",
            "SMVX01 TJSJ 291260\n",
            "SMVX01 TJSJ 291200 RRAB\n",
            "XSMVX01 TJSJ 291200\n",
            "SMVX01 TJSJ 291200 more\n",
        ] {
            assert_eq!(Heading::find(text.as_bytes()), None, "{text:?}");
        }
        let late = format!("{}SMVX01 TJSJ 291200\n", " ".repeat(110));
        assert_eq!(Heading::find(late.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_through(bytes: Vec<u8>) {
            let _ = Heading::find(&bytes);
        }
    }
}
