//! Dates in UTC.
use downburst_model::WallMicros;

/// A moment as people write it, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// Since 1970.
    days: i64,
}

impl Civil {
    pub(crate) fn of(moment: WallMicros) -> Self {
        Self::of_seconds(moment.0.div_euclid(MICROS))
    }

    fn of_seconds(seconds: i64) -> Self {
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        // Years are counted from March here, so that the leap day is the last of its year.
        let march = days + FROM_MARCH_0000_TO_1970;
        let (era, of_era) = (march.div_euclid(ERA), march.rem_euclid(ERA));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Self {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: of_year - (153 * march_month + 2) / 5 + 1,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            days,
        }
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        self.days * DAY + self.hour * 3_600 + self.minute * 60 + self.second
    }

    /// From 1.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.days - days_since_1970(self.year, 1, 1) + 1
    }

    /// Sunday is 0.
    pub(crate) fn day_of_week(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// The nearest moment that falls on a given day of a month, by LDM's rule: next month's if that is less
    /// than a day and a half ahead, else this month's, else last month's. The 31st of a shorter month is the
    /// 1st of the next.
    pub(crate) fn on_day(&self, day: i64) -> Self {
        let of_day = self.hour * 3_600 + self.minute * 60 + self.second;
        let latest = self.seconds() + DAY * 3 / 2;
        let in_month = |months: i64| {
            let month = self.month - 1 + months;
            let first = days_since_1970(self.year + month.div_euclid(12), month.rem_euclid(12) + 1, 1);
            (first + day - 1) * DAY + of_day
        };
        let found = [1, 0].into_iter().map(in_month).find(|seconds| *seconds < latest);
        Self::of_seconds(found.unwrap_or_else(|| in_month(-1)))
    }

    /// What `strftime(3)` makes of a conversion in the C locale; `None` if there is no such conversion.
    pub(crate) fn format(&self, conversion: char) -> Option<String> {
        let hour_of_12 = (self.hour + 11) % 12 + 1;
        Some(match conversion {
            'Y' => self.year.to_string(),
            'C' => format!("{:02}", self.year.div_euclid(100)),
            'y' => format!("{:02}", self.year.rem_euclid(100)),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'H' => format!("{:02}", self.hour),
            'k' => format!("{:2}", self.hour),
            'I' => format!("{hour_of_12:02}"),
            'M' => format!("{:02}", self.minute),
            'S' => format!("{:02}", self.second),
            'j' => format!("{:03}", self.day_of_year()),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'b' | 'h' => self.month_name().chars().take(3).collect(),
            'B' => self.month_name().to_owned(),
            'a' => self.day_name().chars().take(3).collect(),
            'A' => self.day_name().to_owned(),
            'u' => ((self.day_of_week() + 6) % 7 + 1).to_string(),
            'w' => self.day_of_week().to_string(),
            's' => self.seconds().to_string(),
            'D' => format!("{:02}/{:02}/{:02}", self.month, self.day, self.year.rem_euclid(100)),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'R' => format!("{:02}:{:02}", self.hour, self.minute),
            'T' => format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            'Z' => "GMT".to_owned(),
            'z' => "+0000".to_owned(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }

    /// The first three letters of its month, in small letters.
    pub(crate) fn short_month(&self) -> String {
        self.month_name().to_lowercase().chars().take(3).collect()
    }

    fn month_name(&self) -> &'static str {
        let at = usize::try_from(self.month - 1).unwrap_or_default();
        MONTHS.get(at).copied().unwrap_or_default()
    }

    fn day_name(&self) -> &'static str {
        let at = usize::try_from(self.day_of_week()).unwrap_or_default();
        DAYS.get(at).copied().unwrap_or_default()
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * ERA + of_era - FROM_MARCH_0000_TO_1970
}

const MICROS: i64 = 1_000_000;
/// Seconds.
const DAY: i64 = 86_400;
/// The days of four hundred years.
const ERA: i64 = 146_097;
const FROM_MARCH_0000_TO_1970: i64 = 719_468;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Noon of a day.
    pub(crate) fn noon(year: i64, month: i64, day: i64) -> WallMicros {
        WallMicros((days_since_1970(year, month, day) * DAY + DAY / 2) * MICROS)
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
            prop_assert_eq!(civil.seconds(), micros.div_euclid(MICROS));
            prop_assert!((1..=12).contains(&civil.month) && (1..=366).contains(&civil.day_of_year()));
            let _ = civil.on_day(day);
        }
    }
}
