use downburst_model::moment;

/// An instant of a notification in UTC, written with milliseconds; `None` for other texts.
///
/// As the hub's reader does, it takes digits of a second to nanoseconds, and a time without its `Z`.
pub(crate) fn normalized(text: &str) -> Option<String> {
    if text.len() > LONGEST || !text.is_ascii() || text.as_bytes().get(10) != Some(&b'T') {
        return None;
    }
    let zones = ["Z", "+00:00", "-00:00"];
    let bare = zones.iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text);
    let seconds = bare.get(..SECONDS)?;
    let fraction = bare.get(SECONDS..)?;
    let is_fraction = fraction.strip_prefix('.').is_some_and(|digits| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !fraction.is_empty() && !is_fraction {
        return None;
    }
    moment::parse(&format!("{seconds}{fraction}Z")).ok().map(moment::rfc3339)
}

const LONGEST: usize = 40;
/// `2026-01-31T12:00:00`.
const SECONDS: usize = 19;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_of_publishers_are_written_alike() {
        for (text, written) in [
            ("2026-11-23T04:00:00Z", "2026-11-23T04:00:00.000Z"),
            ("2026-11-23T04:00:00.123456789Z", "2026-11-23T04:00:00.123Z"),
            ("2026-11-23T04:00:00", "2026-11-23T04:00:00.000Z"),
            ("2026-11-23T04:00:00.5+00:00", "2026-11-23T04:00:00.500Z"),
        ] {
            assert_eq!(normalized(text).as_deref(), Some(written), "{text}");
        }
        for text in
            ["", "2026-11-23", "2026-13-23T04:00:00Z", "2026-11-23T04:00:00+01:00", "2026-11-23 04:00:00Z"]
        {
            assert_eq!(normalized(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9T:.Z+é]{0,40}|(?s).{0,40}") {
            let _ = normalized(&text);
        }
    }
}
