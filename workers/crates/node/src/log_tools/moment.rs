//! Moments as people write them, in UTC.
use downburst_model::WallMicros;
use regex::Regex;

/// As in RFC 3339, with milliseconds: `2026-01-31T12:00:00.250Z`.
pub(super) fn rfc3339(moment: WallMicros) -> String {
    let Civil { year, month, day, hour, minute, second, micros } = civil(moment);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", micros / 1_000)
}

/// The time at the head of an LDM log line: `20260131T120000.250000Z`.
pub(crate) fn log_time(moment: WallMicros) -> String {
    let Civil { year, month, day, hour, minute, second, micros } = civil(moment);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{micros:06}Z")
}

/// A creation time as LDM prints it: `20260131120000.250`.
pub(crate) fn creation_time(moment: WallMicros) -> String {
    let Civil { year, month, day, hour, minute, second, micros } = civil(moment);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}.{:03}", micros / 1_000)
}

/// Reads RFC 3339, a date, or microseconds since 1970; the error is a sentence.
pub(crate) fn parse(text: &str) -> Result<WallMicros, String> {
    if let Ok(micros) = text.parse() {
        return Ok(WallMicros(micros));
    }
    parse_rfc3339(text).ok_or_else(|| {
        format!("{text:?} is not a time; write 2026-01-31T12:00:00Z, 2026-01-31, or microseconds since 1970")
    })
}

struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

/// Years are counted from March here, so that the leap day is the last of its year.
fn civil(moment: WallMicros) -> Civil {
    let days = moment.0.div_euclid(DAY_MICROS) + DAYS_FROM_MARCH_0000_TO_1970;
    let of_day = moment.0.rem_euclid(DAY_MICROS);
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Civil {
        year: era * 400 + year_of_era + i64::from(month <= 2),
        month,
        day: of_year - (153 * march_month + 2) / 5 + 1,
        hour: of_day / HOUR_MICROS,
        minute: of_day / MINUTE_MICROS % 60,
        second: of_day / SECOND_MICROS % 60,
        micros: of_day % SECOND_MICROS,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * ERA_DAYS + of_era - DAYS_FROM_MARCH_0000_TO_1970
}

fn parse_rfc3339(text: &str) -> Option<WallMicros> {
    let form = Regex::new(RFC3339).ok()?;
    let parts = form.captures(text)?;
    let number = |name: &str| parts.name(name).map_or(Some(0), |part| part.as_str().parse::<i64>().ok());
    let (year, month, day) = (number("year")?, number("month")?, number("day")?);
    let (hour, minute, second) = (number("hour")?, number("minute")?, number("second")?);
    let days = days_since_1970(year, month, day);
    let midnight = days * DAY_MICROS;
    let back = civil(WallMicros(midnight));
    if (back.year, back.month, back.day) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = parts.name("fraction").map_or("", |part| part.as_str());
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let offset = number("offset_hour")? * HOUR_MICROS + number("offset_minute")? * MINUTE_MICROS;
    let offset = if parts.name("sign").is_some_and(|sign| sign.as_str() == "-") { -offset } else { offset };
    let of_day = hour * HOUR_MICROS + minute * MINUTE_MICROS + second * SECOND_MICROS + micros;
    Some(WallMicros(midnight + of_day - offset))
}

const RFC3339: &str = r"(?x)^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})
    (?:[Tt\ ](?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})(?:\.(?<fraction>[0-9]+))?)?
    (?:[Zz]|(?<sign>[+-])(?<offset_hour>[0-9]{2}):(?<offset_minute>[0-9]{2})))?$";
const SECOND_MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
/// Four hundred years.
const ERA_DAYS: i64 = 146_097;
const DAYS_FROM_MARCH_0000_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

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
