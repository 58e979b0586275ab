//! The selection of old files to delete: by age, by total size, by free space.
use std::time::Duration;

use downburst_model::WallMicros;

use crate::{Place, Problem, Read, glob, units};

/// A rule that selects files of a directory for deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScourRule {
    /// Its line in the file.
    pub place: Place,
    /// The directory; the rule applies to its files and those of its subdirectories.
    pub directory: String,
    /// A shell pattern for their names.
    pub files: String,
    /// Files not modified for this time are deleted.
    pub older_than: Option<Duration>,
    /// The oldest files are deleted until the rest have at most this many bytes.
    pub at_most_bytes: Option<u64>,
    /// The oldest files are deleted until this much of the file system is free.
    pub keep_free: Option<KeepFree>,
    /// True to delete directories that are empty afterwards.
    pub remove_empty_directories: bool,
}

/// The space of a file system to keep free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFree {
    /// In bytes.
    Bytes(u64),
    /// In percent of the total.
    Percent(u8),
}

/// A file selected by directory and pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aged {
    /// Its size.
    pub bytes: u64,
    /// The time of its last modification.
    pub modified: WallMicros,
}

/// The space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free space.
    pub free: u64,
    /// Total space.
    pub total: u64,
}

/// Reads LDM's `scour.conf`: a directory, an age `[D][-hh[:mm]]`, and a shell pattern, separated by blanks.
pub fn read(file: &str, text: &str) -> Read<Vec<ScourRule>> {
    let mut read: Read<Vec<ScourRule>> = Read::nothing();
    for (number, line) in text.lines().enumerate() {
        let place = Place::new(file, number + 1);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        match parse(&place, line) {
            Ok(rule) => read.found.push(rule),
            Err(sentence) => read.set_aside.push(place.wrong(sentence)),
        }
    }
    read
}

fn parse(place: &Place, line: &str) -> Result<ScourRule, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (directory, days, files) = match words[..] {
        [directory, days] => (directory, days, "*"),
        [directory, days, files] => (directory, days, files),
        _ => {
            return Err("a line is a directory, days and, if not all files are meant, a pattern".to_owned());
        }
    };
    let rule = ScourRule {
        place: place.clone(),
        directory: directory.to_owned(),
        files: files.to_owned(),
        older_than: Some(age(days)?),
        at_most_bytes: None,
        keep_free: None,
        remove_empty_directories: false,
    };
    rule.checked()
}

/// Reads `[D][-hh[:mm]]`, days, hours and minutes: `2`, `2-12`, `2-12:30`, `-06`, `-06:30`. This follows
/// LDM's manual; its scour program reads hours as minutes, and subtracts them from the days as hours.
fn age(text: &str) -> Result<Duration, String> {
    let (days, of_day) = text.split_once('-').map_or((text, None), |(days, of_day)| (days, Some(of_day)));
    let seconds = of_day.map_or(Some(0), seconds_of_day);
    let days = match (days, of_day) {
        ("", Some(_)) => Some(0),
        _ => number(days).filter(|days| *days <= MOST_DAYS),
    };
    match (days, seconds) {
        (Some(days), Some(seconds)) => Ok(Duration::from_secs(days * 86_400 + seconds)),
        (Some(_), None) => Err(wrong_age(text, old_form(of_day.unwrap_or_default()))),
        _ => Err(wrong_age(text, None)),
    }
}

/// Reads `hh` or `hh:mm`.
fn seconds_of_day(text: &str) -> Option<u64> {
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "00"));
    let two_digits = |part: &str| number(part).filter(|_| part.len() == 2);
    Some(two_digits(hours)? * 3_600 + two_digits(minutes)? * 60)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn wrong_age(text: &str, meant: Option<String>) -> String {
    match meant {
        Some(meant) => {
            let days = text.split('-').next().unwrap_or_default();
            format!(
                "{text:?} is the form of LDM up to 6.14.4, which later releases ignore; write {days}-{meant}"
            )
        }
        None => format!("{text:?} is not an age; write [days][-hh[:mm]], for example 2, 1-12:30 or -06"),
    }
}

/// The present form of `HHMM` and `HHMMSS`, the former notation of hours. It has no seconds any more.
fn old_form(of_day: &str) -> Option<String> {
    let is_old = matches!(of_day.len(), 4 | 6) && of_day.bytes().all(|byte| byte.is_ascii_digit());
    is_old
        .then(|| format!("{}:{}", of_day.get(..2).unwrap_or_default(), of_day.get(2..4).unwrap_or_default()))
}

impl ScourRule {
    /// Returns the rule; refuses one that would delete more than intended.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let directory = self.directory.trim_end_matches('/');
        let parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let wide = parts.is_empty()
            || (self.directory.starts_with('/') && parts.len() < 2)
            || (self.directory.starts_with('~') && parts.len() < 2);
        if wide {
            return Err(format!("{:?} holds more than data; name a directory further down", self.directory));
        }
        if parts.contains(&"..") {
            return Err(format!("{:?} leads upwards; write the directory itself", self.directory));
        }
        if self.files.contains('/') || self.files.is_empty() {
            return Err(format!(
                "{:?} is not a pattern for a file name; put directories into the directory",
                self.files
            ));
        }
        Ok(self)
    }

    /// True if the rule applies to files of this name.
    pub fn fits(&self, name: &str) -> bool {
        glob::fits(&self.files, name)
    }

    /// True if a file is deleted because of its age.
    pub fn is_old(&self, now: WallMicros, modified: WallMicros) -> bool {
        let age = |limit: Duration| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX);
        self.older_than.is_some_and(|limit| now.0.saturating_sub(modified.0) > age(limit))
    }

    /// True if the rule needs the list of all files before it decides.
    pub fn counts(&self) -> bool {
        self.at_most_bytes.is_some() || self.keep_free.is_some()
    }

    /// The number of these files, oldest first, to delete because of their total size or too little free space.
    pub fn surplus(&self, files: &[Aged], space: Space) -> usize {
        let all: u64 = files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes));
        let over = self.at_most_bytes.map_or(0, |limit| all.saturating_sub(limit));
        let wanted = match self.keep_free {
            None => 0,
            Some(KeepFree::Bytes(bytes)) => bytes,
            Some(KeepFree::Percent(percent)) => (space.total / 100).saturating_mul(u64::from(percent)),
        };
        let to_free = over.max(wanted.saturating_sub(space.free));
        let mut freed = 0u64;
        let goes = |file: &&Aged| {
            let goes = freed < to_free;
            freed = freed.saturating_add(file.bytes);
            goes
        };
        files.iter().take_while(goes).count()
    }
}

/// Reads `10%` or a number of bytes.
pub(crate) fn keep_free(text: &str) -> Result<KeepFree, String> {
    let Some(percent) = text.strip_suffix('%') else { return units::bytes(text).map(KeepFree::Bytes) };
    match percent.trim().parse() {
        Ok(percent @ 0..=99) => Ok(KeepFree::Percent(percent)),
        _ => Err(format!("{text:?} is not a share; write 0% to 99%")),
    }
}

/// Notes on rules for the same files as an earlier rule.
pub fn notes(rules: &[ScourRule]) -> Vec<Problem> {
    let doubled = |(number, rule): (usize, &ScourRule)| {
        let earlier = rules.iter().take(number);
        let mut same = earlier.filter(|other| other.directory == rule.directory && other.files == rule.files);
        let other = same.next()?;
        Some(rule.place.wrong(format!("{} names the same files; both rules apply", other.place)))
    };
    rules.iter().enumerate().filter_map(doubled).collect()
}

const MOST_DAYS: u64 = 36_500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(line: &str) -> ScourRule {
        let read = read("scour.conf", line);
        assert_eq!(read.set_aside, [], "{line}");
        read.found.into_iter().next().unwrap()
    }

    fn aged(bytes: u64) -> Aged {
        Aged { bytes, modified: WallMicros(0) }
    }

    #[test]
    fn lines_of_ldm_are_read() {
        let read =
            read("scour.conf", "# Directory Days Pattern\n\n~ldm/var/data\t2\t*.gdbm\ndata/GRIB 1-06:30\n");
        assert_eq!((read.found.len(), read.set_aside.len()), (2, 0));
        assert_eq!(
            (read.found[0].directory.as_str(), read.found[0].files.as_str()),
            ("~ldm/var/data", "*.gdbm")
        );
        assert_eq!(read.found[1].older_than, Some(Duration::from_secs(86_400 + 6 * 3_600 + 30 * 60)));
        assert!(read.found[1].fits("a.nc") && !read.found[1].fits(".scour"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (line, part) in [
            ("data", "a line is"),
            ("data x", "not an age"),
            ("data 3-", "not an age"),
            ("data 3-0", "not an age"),
            ("data -", "not an age"),
            ("data 3-12:3", "not an age"),
            ("data 3-12:30:00", "not an age"),
            ("data 3:30", "not an age"),
            ("data +3", "not an age"),
            ("data 3-+1", "not an age"),
            ("data 99999999999999999999", "not an age"),
            ("data 1-1230", "write 1-12:30"),
            ("data 2-113055", "write 2-11:30"),
            ("/ 2", "further down"),
            ("~ 2", "further down"),
            ("~ldm 2", "further down"),
            ("/etc/ 2", "further down"),
            (". 2", "further down"),
            ("data/../../etc 2", "leads upwards"),
            ("data 2 a/*", "not a pattern"),
        ] {
            let errors = read("scour.conf", &format!("\n{line}")).set_aside;
            assert!(errors[0].to_string().starts_with("scour.conf:2: "), "{errors:?}");
            assert!(errors[0].sentence.contains(part), "{line}: {errors:?}");
        }
    }

    #[test]
    fn finding_25_ages_are_days_hours_and_minutes_as_scour_conf_has_them() {
        for (age, minutes) in [
            ("2", 2 * 1_440),
            ("0", 0),
            ("1-12", 36 * 60),
            ("1-12:30", 36 * 60 + 30),
            ("0-09:30", 9 * 60 + 30),
            ("-06", 6 * 60),
            ("-06:15", 6 * 60 + 15),
            ("010-08:09", 10 * 1_440 + 8 * 60 + 9),
        ] {
            let wanted = Some(Duration::from_secs(minutes * 60));
            assert_eq!(rule(&format!("data {age} *.nc")).older_than, wanted, "{age}");
        }
        let read = read("scour.conf", "data/a 1-1230\ndata/b 2\n");
        assert_eq!(read.set_aside[0].to_string(), OLD_FORM);
        assert_eq!(read.found.len(), 1, "the other line is read");
    }

    #[test]
    fn age_is_counted_from_the_last_change() {
        let rule = rule("data 0-01");
        let hour = 3_600_000_000;
        assert!(!rule.is_old(WallMicros(hour), WallMicros(0)));
        assert!(rule.is_old(WallMicros(hour + 1), WallMicros(0)));
        assert!(!rule.is_old(WallMicros(0), WallMicros(hour)), "a file of the future stays");
    }

    #[test]
    fn the_oldest_go_until_there_is_room() {
        let room = Space { free: 100, total: 1_000 };
        let with = |at_most_bytes, keep_free| ScourRule { at_most_bytes, keep_free, ..rule("data 1") };
        let files = [aged(10), aged(20), aged(30), aged(40)];
        assert_eq!(with(Some(100), None).surplus(&files, room), 0);
        assert_eq!(with(Some(99), None).surplus(&files, room), 1);
        assert_eq!(with(Some(70), None).surplus(&files, room), 2);
        assert_eq!(with(None, Some(KeepFree::Bytes(131))).surplus(&files, room), 3);
        assert_eq!(with(None, Some(KeepFree::Percent(90))).surplus(&files, room), 4, "all that there are");
        assert_eq!(
            with(Some(90), Some(KeepFree::Bytes(131))).surplus(&files, room),
            3,
            "the stricter counts"
        );
    }

    #[test]
    fn two_rules_for_the_same_files_are_noted() {
        let rules = read("s", "data 1\ndata 2\ndata 2 *.nc").found;
        assert!(
            notes(&rules)[0].to_string().contains("s:2: s:1 names the same files"),
            "{:?}",
            notes(&rules)
        );
        assert_eq!(notes(&rules).len(), 1);
    }

    const OLD_FORM: &str = "scour.conf:1: \"1-1230\" is the form of LDM up to 6.14.4, which later releases \
        ignore; write 1-12:30";

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,80}|([a-z/~.]{1,9} [0-9-]{1,9} [*a-z]{0,4}\n){0,4}") {
            let _ = read("scour.conf", &text);
        }

        #[test]
        fn no_more_goes_than_has_to(sizes in proptest::collection::vec(0u64..100, 0..20), limit in 0u64..500) {
            let files: Vec<Aged> = sizes.iter().map(|bytes| aged(*bytes)).collect();
            let rule = ScourRule { at_most_bytes: Some(limit), ..rule("data 1") };
            let gone = rule.surplus(&files, Space { free: 0, total: 0 });
            let left: u64 = sizes[gone..].iter().sum();
            prop_assert!(left <= limit);
            prop_assert!(gone == 0 || left + sizes[gone - 1] > limit);
        }
    }
}
