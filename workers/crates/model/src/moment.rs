//! Times in the notations that people use, in UTC.
use regex::Regex;
use time::{Date, Duration, Month, Time, UtcDateTime};

use crate::WallMicros;

/// RFC 3339 with milliseconds: `2026-01-31T12:00:00.250Z`.
pub fn rfc3339(moment: WallMicros) -> String {
    let (year, month, day, (hour, minute, second, micro)) = parts(moment);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", micro / 1_000)
}

/// The time at the head of an LDM log line: `20260131T120000.250000Z`.
pub fn log_time(moment: WallMicros) -> String {
    let (year, month, day, (hour, minute, second, micro)) = parts(moment);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{micro:06}Z")
}

/// A creation time in LDM's format: `20260131120000.250`.
pub fn creation_time(moment: WallMicros) -> String {
    let (year, month, day, (hour, minute, second, micro)) = parts(moment);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}.{:03}", micro / 1_000)
}

/// Parses RFC 3339, a date, or microseconds since 1970.
///
/// # Errors
/// A sentence, if the text is none of these.
pub fn parse(text: &str) -> Result<WallMicros, String> {
    if let Ok(micros) = text.parse() {
        return Ok(WallMicros(micros));
    }
    parse_rfc3339(text).ok_or_else(|| {
        format!("{text:?} is not a time; write 2026-01-31T12:00:00Z, 2026-01-31, or microseconds since 1970")
    })
}

/// Year, month and day in UTC, and the time of the day: hour, minute, second, microseconds.
fn parts(moment: WallMicros) -> (i32, u8, u8, (u8, u8, u8, u32)) {
    // The years that 64 bits of microseconds can express are within those of `UtcDateTime`.
    let found = UtcDateTime::from_unix_timestamp_nanos(i128::from(moment.0) * 1_000);
    let at = found.unwrap_or(UtcDateTime::UNIX_EPOCH);
    (at.year(), u8::from(at.month()), at.day(), at.as_hms_micro())
}

fn parse_rfc3339(text: &str) -> Option<WallMicros> {
    let form = Regex::new(RFC3339).ok()?;
    let parts = form.captures(text)?;
    let number = |name: &str| parts.name(name).map_or(Some(0), |part| part.as_str().parse::<u8>().ok());
    let year = parts.name("year")?.as_str().parse().ok()?;
    let date =
        Date::from_calendar_date(year, Month::try_from(number("month")?).ok()?, number("day")?).ok()?;
    let fraction = parts.name("fraction").map_or("", |part| part.as_str());
    let micros = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let of_day = Time::from_hms_micro(number("hour")?, number("minute")?, number("second")?, micros).ok()?;
    let (hours, minutes) = (i64::from(number("offset_hour")?), i64::from(number("offset_minute")?));
    let ahead = Duration::minutes(hours * 60 + minutes);
    let is_behind = parts.name("sign").is_some_and(|sign| sign.as_str() == "-");
    let written = UtcDateTime::new(date, of_day);
    let at = if is_behind { written.checked_add(ahead) } else { written.checked_sub(ahead) };
    i64::try_from(at?.unix_timestamp_nanos() / 1_000).ok().map(WallMicros)
}

const RFC3339: &str = r"(?x)^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})
    (?:[Tt\ ](?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})(?:\.(?<fraction>[0-9]+))?)?
    (?:[Zz]|(?<sign>[+-])(?<offset_hour>[0-9]{2}):(?<offset_minute>[0-9]{2})))?$";

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MICROS: i64 = 3_600 * 1_000_000;
    const DAY_MICROS: i64 = 24 * HOUR_MICROS;

    #[test]
    fn known_moments_are_written_as_operators_write_them() {
        // `date -u -d 2024-02-29T23:59:58 +%s` is 1709251198.
        let leap = WallMicros(1_709_251_198_123_456);
        assert_eq!(rfc3339(leap), "2024-02-29T23:59:58.123Z");
        assert_eq!(log_time(leap), "20240229T235958.123456Z");
        assert_eq!(creation_time(leap), "20240229235958.123");
        assert_eq!(rfc3339(WallMicros(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallMicros(-1)), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn days_of_five_centuries_come_back() {
        for day in (-100_000..82_000).step_by(37) {
            let moment = WallMicros(day * DAY_MICROS + 1_000);
            assert_eq!(parse(&rfc3339(moment)), Ok(moment));
        }
    }

    #[test]
    fn any_moment_of_64_bits_is_written() {
        assert_eq!(rfc3339(WallMicros(i64::MAX)), "294247-01-10T04:00:54.775Z");
        assert_eq!(rfc3339(WallMicros(i64::MIN)), "-290308-12-21T19:59:05.224Z");
        assert_eq!(rfc3339(WallMicros(-62_167_219_200_000_001)), "-001-12-31T23:59:59.999Z");
        assert_eq!(parse("0000-01-01"), Ok(WallMicros(-62_167_219_200_000_000)));
    }

    #[test]
    fn several_ways_to_write_a_moment_are_read() {
        let noon = WallMicros(1_709_208_000_000_000);
        for text in
            ["2024-02-29T12:00:00Z", "2024-02-29 12:00Z", "2024-02-29T14:30:00.0+02:30", "1709208000000000"]
        {
            assert_eq!(parse(text), Ok(noon), "{text}");
        }
        assert_eq!(parse("2024-02-29"), Ok(WallMicros(noon.0 - 12 * HOUR_MICROS)));
        assert_eq!(parse("2024-02-29T12:00:00.1234567-00:00"), Ok(WallMicros(noon.0 + 123_456)));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "noon", "2023-02-29", "2024-13-01", "2024-02-29T24:00:00Z", "2024-02-29T12:00:00"] {
            assert!(parse(text).unwrap_err().contains("not a time"), "{text}");
        }
    }
}
