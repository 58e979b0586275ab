//! Which old files go: by age, by how much there is, by how much room is left.
use std::time::Duration;

use downburst_model::WallMicros;

use crate::{Place, Problem, Read, glob, units};

/// Which files of a directory go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScourRule {
    /// Where it stands.
    pub place: Place,
    /// Files here and in the directories below.
    pub directory: String,
    /// A pattern of the shell that their names fit.
    pub files: String,
    /// Those that were not changed for so long go.
    pub older_than: Option<Duration>,
    /// The oldest go until the others have no more bytes than this.
    pub at_most_bytes: Option<u64>,
    /// The oldest go until so much of the file system is free.
    pub keep_free: Option<KeepFree>,
    /// Directories that are empty then go too.
    pub remove_empty_directories: bool,
}

/// How much of a file system is to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFree {
    /// So many bytes.
    Bytes(u64),
    /// So much of all.
    Percent(u8),
}

/// A file that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aged {
    /// Its bytes.
    pub bytes: u64,
    /// When it was changed last.
    pub modified: WallMicros,
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free.
    pub free: u64,
    /// In all.
    pub total: u64,
}

/// Reads LDM's `scour.conf`: a directory, days (and `-HHMMSS`), and a pattern of the shell, separated by blanks.
pub fn read(file: &str, text: &str) -> Read<Vec<ScourRule>> {
    let mut read = Read { found: Vec::new(), errors: Vec::new(), notes: Vec::new() };
    for (number, line) in text.lines().enumerate() {
        let place = Place::new(file, number + 1);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        match parse(&place, line) {
            Ok(rule) => read.found.push(rule),
            Err(sentence) => read.errors.push(place.wrong(sentence)),
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

/// Reads `2`, `2-12`, `2-1230`, `2-123000`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no age; write days, or days-HHMMSS, for example 2 or 0-1230");
    let (days, of_day) = text.split_once('-').unwrap_or((text, "00"));
    let days: u64 = days.parse().ok().filter(|days| *days <= MOST_DAYS).ok_or_else(wrong)?;
    if !matches!(of_day.len(), 2 | 4 | 6) || !of_day.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let part = |from: usize| of_day.get(from..from + 2).map_or(Ok(0), |digits| digits.parse::<u64>());
    let seconds =
        || -> Result<u64, std::num::ParseIntError> { Ok(part(0)? * 3_600 + part(2)? * 60 + part(4)?) };
    Ok(Duration::from_secs(days * 86_400 + seconds().map_err(|_| wrong())?))
}

impl ScourRule {
    /// The rule, unless it would empty more than anybody means.
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
                "{:?} is no pattern for the name of a file; put directories into the directory",
                self.files
            ));
        }
        Ok(self)
    }

    /// True if it is for files of this name.
    pub fn fits(&self, name: &str) -> bool {
        glob::fits(&self.files, name)
    }

    /// True if a file goes because of its age.
    pub fn is_old(&self, now: WallMicros, modified: WallMicros) -> bool {
        let age = |limit: Duration| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX);
        self.older_than.is_some_and(|limit| now.0.saturating_sub(modified.0) > age(limit))
    }

    /// True if it has to know all files at once.
    pub fn counts(&self) -> bool {
        self.at_most_bytes.is_some() || self.keep_free.is_some()
    }

    /// How many of these files go because there are too many bytes or too little is free; the oldest come first.
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
        _ => Err(format!("{text:?} is no share; write 0% to 99%")),
    }
}

/// A note where a rule that stands later is for the same directory.
pub fn notes(rules: &[ScourRule]) -> Vec<Problem> {
    let doubled = |(number, rule): (usize, &ScourRule)| {
        let earlier = rules.iter().take(number);
        let mut same = earlier.filter(|other| other.directory == rule.directory && other.files == rule.files);
        let other = same.next()?;
        Some(rule.place.wrong(format!("{} is for the same files; both are done", other.place)))
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
        assert_eq!(read.errors, [], "{line}");
        read.found.into_iter().next().unwrap()
    }

    fn aged(bytes: u64) -> Aged {
        Aged { bytes, modified: WallMicros(0) }
    }

    #[test]
    fn lines_of_ldm_are_read() {
        let read =
            read("scour.conf", "# Directory Days Pattern\n\n~ldm/var/data\t2\t*.gdbm\ndata/GRIB 1-0630\n");
        assert_eq!((read.found.len(), read.errors.len()), (2, 0));
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
            ("data x", "no age"),
            ("data 3-", "no age"),
            ("data 3-0", "no age"),
            ("/ 2", "further down"),
            ("~ 2", "further down"),
            ("~ldm 2", "further down"),
            ("/etc/ 2", "further down"),
            (". 2", "further down"),
            ("data/../../etc 2", "leads upwards"),
            ("data 2 a/*", "no pattern"),
        ] {
            let errors = read("scour.conf", &format!("\n{line}")).errors;
            assert!(errors[0].to_string().starts_with("scour.conf:2: "), "{errors:?}");
            assert!(errors[0].sentence.contains(part), "{line}: {errors:?}");
        }
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
            notes(&rules)[0].to_string().contains("s:2: s:1 is for the same files"),
            "{:?}",
            notes(&rules)
        );
        assert_eq!(notes(&rules).len(), 1);
    }

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
