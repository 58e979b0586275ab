//! Durations and sizes in readable notation.
use std::time::Duration;

/// Reads `90s`, `5m`, `2h30m`, `1d12h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a length of time; write 30s, 5m, 2h30m or 1d12h");
    let (mut seconds, mut digits) = (0u64, String::new());
    for next in text.chars() {
        if next.is_ascii_digit() {
            digits.push(next);
            continue;
        }
        let unit = match next {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
        digits.clear();
    }
    if !digits.is_empty() || text.is_empty() || seconds > LONGEST_SECONDS {
        return Err(wrong());
    }
    Ok(Duration::from_secs(seconds))
}

/// Reads `500MB`, `20 GB`, `1GiB`, or a number of bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of bytes; write 500MB, 20 GB or 1GiB");
    let digits = text.trim_end_matches(|next: char| next.is_ascii_alphabetic()).trim_end();
    let unit = match text.get(digits.len()..).unwrap_or_default().trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

/// A hundred years.
const LONGEST_SECONDS: u64 = 100 * 366 * 86_400;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_people_write_is_read() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("2h30m", 9_000), ("1d12h", 129_600)] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for (text, number) in [("7", 7), ("20 GB", 20_000_000_000), ("1GiB", 1 << 30), ("500kB", 500_000)] {
            assert_eq!(bytes(text).unwrap(), number, "{text}");
        }
        for text in ["", "5", "m", "5 minutes", "-5s", "99999999999999999999d", "9999999d"] {
            assert!(duration(text).unwrap_err().contains("not a length of time"), "{text}");
        }
        for text in ["", "GB", "1.5GB", "-1", "99999999999TB", "5 bytes"] {
            assert!(bytes(text).unwrap_err().contains("not a number of bytes"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}|[0-9]{1,25}[smhdGB]{0,3}") {
            let _ = (duration(&text), bytes(&text));
        }
    }
}
