//! Texts with substitutions: parts of the id, of the creation time, or of the date given by a day of the month.
use downburst_model::WallMicros;

use crate::civil::Civil;

/// A text with placeholders for the properties of a product.
///
/// Placeholders are recognized only in the rule's own text: an id that contains `%Y` or `\1` is inserted
/// unchanged, and a text stays one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// The values of a product that a template substitutes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Substitutions<'a> {
    /// The matches of the pattern's groups; the whole match first.
    pub(crate) groups: &'a [Option<&'a str>],
    pub(crate) created: WallMicros,
    pub(crate) sequence: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The match of a group of the pattern; 0 is the whole match.
    Group(usize),
    /// A conversion of `strftime(3)`, applied to the creation time.
    Time(char),
    /// A part of the date given by a day of the month.
    Date {
        day: Vec<Piece>,
        part: String,
    },
    Sequence,
}

impl Template {
    /// Parses a text; the error describes the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reading = Reading { chars: text.chars().collect(), at: 0, pieces: Vec::new() };
        while let Some(next) = reading.next() {
            reading.take(next)?;
        }
        Ok(Self { text: text.to_owned(), pieces: reading.pieces })
    }

    /// The text as written in the rule.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The highest group that it refers to.
    pub(crate) fn last_group(&self) -> usize {
        let group = |piece: &Piece| match piece {
            Piece::Group(number) => *number,
            Piece::Date { day, .. } => day.iter().map(group_of).max().unwrap_or_default(),
            _ => 0,
        };
        self.pieces.iter().map(group).max().unwrap_or_default()
    }

    pub(crate) fn resolve(&self, known: &Substitutions<'_>) -> String {
        resolve(&self.pieces, known)
    }

    /// The path with its substitutions. No id can make it absolute or lead out of a directory that the rule names.
    pub(crate) fn resolve_path(&self, known: &Substitutions<'_>) -> Result<String, String> {
        let path = self.resolve(known);
        let climbs = |text: &str| text.split('/').filter(|part| *part == "..").count();
        if path.is_empty() || path.ends_with('/') {
            return Err(format!("the path {path:?} names no file; correct the rule's path {:?}", self.text));
        }
        if climbs(&path) > climbs(&self.text) || (path.starts_with('/') && !self.text.starts_with('/')) {
            return Err(format!(
                "the id leads the path {path:?} out of the directory that {:?} names; narrow the pattern",
                self.text
            ));
        }
        if path.contains('\0') {
            return Err("the path holds a zero byte; correct the rule's path".to_owned());
        }
        Ok(path)
    }
}

fn group_of(piece: &Piece) -> usize {
    if let Piece::Group(number) = piece { *number } else { 0 }
}

fn resolve(pieces: &[Piece], known: &Substitutions<'_>) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Group(number) => {
                text.push_str(known.groups.get(*number).copied().flatten().unwrap_or_default());
            }
            Piece::Time(conversion) => {
                text.push_str(&Civil::of(known.created).format(*conversion).unwrap_or_default());
            }
            Piece::Date { day, part } => text.push_str(&date(&resolve(day, known), part, known.created)),
            Piece::Sequence => text.push_str(&known.sequence.to_string()),
        }
    }
    text
}

/// As in LDM: 00 is the day of the creation time, a day above 31 leaves the part's name, and a word that is
/// not a day stays unchanged.
fn date(day: &str, part: &str, created: WallMicros) -> String {
    let two_digits = day.len() == 2 && day.bytes().all(|byte| byte.is_ascii_digit());
    let Some(number) = day.parse::<i64>().ok().filter(|_| two_digits) else {
        return format!("({day}:{part})");
    };
    let now = Civil::of(created);
    let date = match number {
        0 => now,
        1..=31 => now.on_day(number),
        _ => return part.to_owned(),
    };
    let conversion = match part {
        "yyyy" => 'Y',
        "yy" => 'y',
        "mmm" => return date.short_month(),
        "mm" => 'm',
        "ddd" => 'j',
        "dd" => 'd',
        _ => 'H',
    };
    date.format(conversion).unwrap_or_default()
}

struct Reading {
    chars: Vec<char>,
    at: usize,
    pieces: Vec<Piece>,
}

impl Reading {
    fn next(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        Some(next)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn take(&mut self, next: char) -> Result<(), String> {
        match next {
            '&' => self.pieces.push(Piece::Group(0)),
            '\\' => self.backslash(),
            '%' => self.time()?,
            '(' => self.parenthesis()?,
            literal => self.literal(literal),
        }
        Ok(())
    }

    fn literal(&mut self, literal: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(literal),
            _ => self.pieces.push(Piece::Text(literal.to_string())),
        }
    }

    fn backslash(&mut self) {
        match self.peek(0) {
            Some(escaped @ ('\\' | '&')) => {
                self.at += 1;
                self.literal(escaped);
            }
            Some('(') => match self.bracketed_number() {
                Some(number) => self.pieces.push(Piece::Group(number)),
                None => self.literal('\\'),
            },
            Some(digit) if digit.is_ascii_digit() => {
                self.at += 1;
                self.pieces.push(Piece::Group(digit.to_digit(10).unwrap_or_default() as usize));
            }
            _ => self.literal('\\'),
        }
    }

    /// Reads `(12)` and moves past it.
    fn bracketed_number(&mut self) -> Option<usize> {
        let digits: String =
            self.chars.iter().skip(self.at + 1).take_while(|next| next.is_ascii_digit()).take(4).collect();
        let number = digits.parse().ok()?;
        if self.peek(1 + digits.len()) != Some(')') {
            return None;
        }
        self.at += digits.len() + 2;
        Some(number)
    }

    fn time(&mut self) -> Result<(), String> {
        let Some(conversion) = self.next() else {
            self.literal('%');
            return Ok(());
        };
        if Civil::of(WallMicros(0)).format(conversion).is_none() {
            return Err(format!(
                "%{conversion} is not part of a time; write %% for a percent sign, or one of %Y %m %d %H %M %S %j \
                 %b and the like"
            ));
        }
        self.pieces.push(Piece::Time(conversion));
        Ok(())
    }

    /// Reads `(seq)`, `(\1:yyyy)`, or a plain parenthesis.
    fn parenthesis(&mut self) -> Result<(), String> {
        let rest: String = self.chars.iter().skip(self.at).take(SEQUENCE.len()).collect();
        if rest == SEQUENCE {
            self.at += SEQUENCE.len();
            self.pieces.push(Piece::Sequence);
            return Ok(());
        }
        let begin = self.at;
        let outer = std::mem::take(&mut self.pieces);
        let found = self.date();
        let inner = std::mem::replace(&mut self.pieces, outer);
        match found {
            Some(part) if PARTS.contains(&part.as_str()) => {
                self.pieces.push(Piece::Date { day: inner, part });
                Ok(())
            }
            Some(part) => Err(format!(
                "({}:{part}) names no part of a date; the parts are {}",
                self.chars.iter().skip(begin).take_while(|next| **next != ':').collect::<String>(),
                PARTS.join(", ")
            )),
            None => {
                self.at = begin;
                self.literal('(');
                Ok(())
            }
        }
    }

    /// Reads a day, a colon, letters and a parenthesis; returns the part's name and leaves the day in the pieces.
    fn date(&mut self) -> Option<String> {
        while let Some(next) = self.next() {
            match next {
                ':' => break,
                '\\' => self.backslash(),
                '%' => self.time().ok()?,
                digit if digit.is_ascii_digit() => self.literal(digit),
                _ => return None,
            }
        }
        let mut part = String::new();
        while let Some(letter) = self.next().filter(|next| *next != ')') {
            if !letter.is_ascii_alphabetic() {
                return None;
            }
            part.push(letter.to_ascii_lowercase());
        }
        let closed = self.chars.get(self.at.checked_sub(1)?) == Some(&')');
        let day = !self.pieces.is_empty() && !part.is_empty();
        (closed && day).then_some(part)
    }
}

const SEQUENCE: &str = "seq)";
const PARTS: [&str; 7] = ["yyyy", "yy", "mmm", "mm", "ddd", "dd", "hh"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::civil::tests::noon;

    fn resolved(template: &str, groups: &[Option<&str>]) -> String {
        let known = Substitutions { groups, created: noon(2024, 3, 1), sequence: 77 };
        Template::parse(template).unwrap().resolve(&known)
    }

    const GROUPS: [Option<&str>; 13] = [
        Some("SAUS70 KWBC 291200"),
        Some("29"),
        Some("12"),
        None,
        Some("a b"),
        Some("%Y"),
        Some("45"),
        None,
        None,
        Some("9"),
        None,
        None,
        Some("twelve"),
    ];

    #[test]
    fn every_substitution_of_pqact_is_made() {
        for (template, wanted) in [
            ("data/\\1/x", "data/29/x"),
            ("\\2\\1\\3|", "1229|"),
            ("\\(12)-\\(1)", "twelve-29"),
            ("\\(12", "\\(12"),
            ("&", "SAUS70 KWBC 291200"),
            ("a\\&b\\\\c\\d", "a&b\\c\\d"),
            ("%Y%m%d_%H%M.%%", "20240301_1200.%"),
            ("(\\1:yyyy)(\\1:mm)(\\1:dd)(\\1:mmm)(\\1:ddd)(\\1:yy)(\\1:hh)", "20240229feb0602412"),
            ("(\\1:YYYY)", "2024"),
            ("(29:mm)(00:dd)(%d:dd)", "020101"),
            ("(\\6:yyyy)", "yyyy"),
            ("(\\4:yyyy)", "(a b:yyyy)"),
            ("(seq).(see)(", "77.(see)("),
            ("f(x) (a:b) 100%", "f(x) (a:b) 100%"),
            ("\\4 \\5", "a b %Y"),
            ("\\8\\9", "9"),
        ] {
            assert_eq!(resolved(template, &GROUPS), wanted, "{template}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_there_is() {
        assert!(Template::parse("x%Q").unwrap_err().contains("%%"));
        let error = Template::parse("data/(\\1:yyymm)").unwrap_err();
        assert!(error.contains("(\\1:yyymm)") && error.contains("ddd"), "{error}");
    }

    #[test]
    fn an_id_leads_nowhere_else() {
        let path = |template: &str, found: &str| {
            let known = Substitutions { groups: &[None, Some(found)], created: WallMicros(0), sequence: 0 };
            Template::parse(template).unwrap().resolve_path(&known)
        };
        assert_eq!(path("data/\\1", "a/b").unwrap(), "data/a/b");
        assert_eq!(path("../data/\\1", "a").unwrap(), "../data/a");
        assert_eq!(path("/data/\\1", "/a").unwrap(), "/data//a");
        for (template, found) in
            [("data/.\\1", "./x"), ("\\1", "/etc/passwd"), ("data/\\1", ".."), ("a/\\1", "b/")]
        {
            assert!(path(template, found).is_err(), "{template} {found}");
        }
    }

    #[test]
    fn the_highest_group_is_known() {
        assert_eq!(Template::parse("\\1(\\(12):dd)\\3").unwrap().last_group(), 12);
        assert_eq!(Template::parse("plain").unwrap().last_group(), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\\\%():a-y0-9&seq]{0,40}|.{0,40}", group in ".{0,9}") {
            if let Ok(template) = Template::parse(&text) {
                let groups = &[Some(group.as_str()), Some(group.as_str())];
                let known = Substitutions { groups, created: WallMicros(5), sequence: 1 };
                let _ = template.resolve(&known);
                if let Ok(path) = template.resolve_path(&known) {
                    prop_assert!(path.split('/').filter(|part| *part == "..").count()
                        <= text.split('/').filter(|part| *part == "..").count());
                }
            }
        }
    }
}
