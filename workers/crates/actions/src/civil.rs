//! Dates in UTC, in the forms of `strftime(3)` and of LDM's rules.
use downburst_model::WallMicros;
use time::{Duration, UtcDateTime};

/// A moment as a calendar date and a time of day, in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil(UtcDateTime);

impl Civil {
    pub(crate) fn of(moment: WallMicros) -> Self {
        // 64 bits of microseconds stay within the years of `UtcDateTime`.
        let found = UtcDateTime::from_unix_timestamp(moment.0.div_euclid(MICROS));
        Self(found.unwrap_or(UtcDateTime::UNIX_EPOCH))
    }

    /// The nearest moment that falls on a given day of a month, by LDM's rule: next month's if that is less
    /// than a day and a half ahead, else this month's, else last month's. The 31st of a shorter month is the
    /// 1st of the next.
    pub(crate) fn on_day(&self, day: i64) -> Self {
        let latest = self.0.saturating_add(Duration::hours(36));
        let this_month = self.0.replace_day(1).unwrap_or(self.0);
        let in_month = |first: UtcDateTime| first.saturating_add(Duration::days(day.saturating_sub(1)));
        let next_month = in_month(this_month.saturating_add(Duration::days(days_of(this_month))));
        let found = [next_month, in_month(this_month)].into_iter().find(|moment| *moment < latest);
        let last_month = || {
            let last_day = this_month.saturating_sub(Duration::DAY);
            in_month(last_day.replace_day(1).unwrap_or(last_day))
        };
        Self(found.unwrap_or_else(last_month))
    }

    /// The result of a conversion of `strftime(3)` in the C locale; `None` if there is no such conversion.
    pub(crate) fn format(&self, conversion: char) -> Option<String> {
        let (date, (hour, minute, second)) = (self.0.date(), self.0.as_hms());
        let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
        let (weekday, hour_of_12) = (date.weekday(), (hour + 11) % 12 + 1);
        Some(match conversion {
            'Y' => year.to_string(),
            'C' => format!("{:02}", year.div_euclid(100)),
            'y' => format!("{:02}", year.rem_euclid(100)),
            'm' => format!("{month:02}"),
            'd' => format!("{day:02}"),
            'e' => format!("{day:2}"),
            'H' => format!("{hour:02}"),
            'k' => format!("{hour:2}"),
            'I' => format!("{hour_of_12:02}"),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'j' => format!("{:03}", date.ordinal()),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'b' | 'h' => short(date.month()),
            'B' => date.month().to_string(),
            'a' => short(weekday),
            'A' => weekday.to_string(),
            'u' => weekday.number_from_monday().to_string(),
            'w' => weekday.number_days_from_sunday().to_string(),
            's' => self.0.unix_timestamp().to_string(),
            'D' => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
            'F' => format!("{year}-{month:02}-{day:02}"),
            'R' => format!("{hour:02}:{minute:02}"),
            'T' => format!("{hour:02}:{minute:02}:{second:02}"),
            'Z' => "GMT".to_owned(),
            'z' => "+0000".to_owned(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }

    /// The first three letters of its month, in lower case.
    pub(crate) fn short_month(&self) -> String {
        short(self.0.month()).to_lowercase()
    }
}

/// The first three letters of the name of a month or day.
fn short(name: impl ToString) -> String {
    name.to_string().chars().take(3).collect()
}

/// The number of days in a moment's month.
fn days_of(moment: UtcDateTime) -> i64 {
    i64::from(moment.month().length(moment.year()))
}

const MICROS: i64 = 1_000_000;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use time::{Date, Month};

    use super::*;

    /// Noon of a day.
    pub(crate) fn noon(year: i32, month: u8, day: u8) -> WallMicros {
        let date = Date::from_calendar_date(year, Month::try_from(month).unwrap(), day).unwrap();
        WallMicros(date.with_hms(12, 0, 0).unwrap().assume_utc().unix_timestamp() * MICROS)
    }

    #[test]
    fn conversions_are_those_of_strftime() {
        // `TZ=UTC date -u -d @1709251198 +...`
        let leap = Civil::of(WallMicros(1_709_251_198_999_999));
        let said =
            |text: &str| text.chars().map(|next| leap.format(next).unwrap()).collect::<Vec<_>>().join(" ");
        assert_eq!(said("YmdHMS"), "2024 02 29 23 59 58");
        assert_eq!(said("jyCeIpk"), "060 24 20 29 11 PM 23");
        assert_eq!(said("aAbBhuw"), "Thu Thursday Feb February Feb 4 4");
        assert_eq!(said("DFTRs"), "02/29/24 2024-02-29 23:59:58 23:59 1709251198");
        assert_eq!(leap.format('q'), None);
        assert_eq!(Civil::of(WallMicros(-1)).format('F').unwrap(), "1969-12-31");
    }

    #[test]
    fn a_day_of_the_month_is_completed_to_the_nearest_date() {
        for (now, day, wanted) in [
            ((2024, 6, 15), 15, "2024-06-15"),
            ((2024, 6, 15), 16, "2024-06-16"),
            ((2024, 6, 15), 17, "2024-05-17"),
            ((2024, 6, 30), 1, "2024-07-01"),
            ((2024, 7, 1), 30, "2024-06-30"),
            ((2023, 12, 31), 1, "2024-01-01"),
            ((2024, 1, 1), 31, "2023-12-31"),
            ((2023, 2, 28), 29, "2023-03-01"),
            ((2024, 2, 28), 29, "2024-02-29"),
            ((2024, 3, 1), 29, "2024-02-29"),
            ((2024, 5, 31), 2, "2024-05-02"),
        ] {
            let found = Civil::of(noon(now.0, now.1, now.2)).on_day(day).format('F').unwrap();
            assert_eq!(found, wanted, "{day} on {now:?}");
        }
    }

    proptest! {
        #[test]
        fn any_moment_is_a_date_and_comes_back(micros: i64, day in 0i64..100) {
            let civil = Civil::of(WallMicros(micros));
            let number = |conversion| civil.format(conversion).unwrap().parse::<i64>().unwrap();
            prop_assert_eq!(number('s'), micros.div_euclid(MICROS));
            prop_assert!((1..=12).contains(&number('m')) && (1..=366).contains(&number('j')));
            let _ = civil.on_day(day);
        }
    }
}
