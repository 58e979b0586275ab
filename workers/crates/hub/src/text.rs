//! Text that sites choose and people read.

/// Makes a site's text fit for an event and a log line: short, without control characters.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|letter| !letter.is_control()).take(LONGEST_CHARS).collect();
    if shown.len() < text.len() && text.chars().nth(LONGEST_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// True for a SHA-256 in the notation of this code base: 64 hexadecimal digits in lower case.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Longer than any text of our own sites.
const LONGEST_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_control_characters_are_left_out() {
        assert_eq!(shown("downburst-node 0.1.0"), "downburst-node 0.1.0");
        assert_eq!(shown("a\u{1b}[31mred\r\n"), "a[31mred");
        let long = shown(&"ü".repeat(1_000_000));
        assert_eq!(long.chars().count(), LONGEST_CHARS + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_hash_is_64_digits() {
        assert!(is_sha256(&"0f".repeat(32)));
        for bad in ["", &"0F".repeat(32), &"0f".repeat(33), &"0g".repeat(32)] {
            assert!(!is_sha256(bad), "{bad}");
        }
    }
}
