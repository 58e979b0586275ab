//! POSIX extended regular expressions, as used in LDM subscriptions, translated to the syntax of the `regex` crate.
//!
//! Everything that `regcomp(3)` accepts is accepted with the same meaning, GNU's `\w \W \s \S \b \B \< \>`
//! and the two buffer anchors included, with these exceptions, which are refused: back-references (they can't
//! be matched in linear time), equivalence classes and collating symbols (their meaning depends on a locale),
//! and a backslash before any other letter or digit (`regcomp` drops the backslash, so that `\d` is the
//! letter d, which is never intended). A character is a Unicode character; classes such as `[:alpha:]` and
//! ranges are those of the C locale.

use crate::PatternError;

/// Translates the expression to the syntax of the `regex` crate. If `remembered`, its groups have the numbers of
/// the original.
pub(crate) fn translate(text: &str, remembered: bool) -> Result<String, PatternError> {
    let chars = text.chars().collect();
    let (group, out) = (if remembered { "(" } else { "(?:" }, String::new());
    Translation { chars, at: 0, out, group, groups: Vec::new(), last: Last::Nothing }.run()
}

struct Translation {
    chars: Vec<char>,
    /// The next character to read.
    at: usize,
    out: String,
    /// The text that opens a group.
    group: &'static str,
    groups: Vec<Group>,
    last: Last,
}

/// An open group.
struct Group {
    /// The position of its opening, counted from 1.
    position: usize,
    /// The start of its translation.
    start: usize,
}

/// The operand of a following repetition.
#[derive(Clone, Copy)]
enum Last {
    /// No operand: an expression, a group or an alternative begins here, or the last element was an anchor.
    Nothing,
    /// The translation from this offset on.
    From(usize),
}

impl Translation {
    fn run(mut self) -> Result<String, PatternError> {
        while let Some(next) = self.next() {
            match next {
                '(' => self.open(),
                ')' if !self.groups.is_empty() => self.close(),
                '|' => {
                    self.out.push('|');
                    self.last = Last::Nothing;
                }
                '^' => self.anchor(r"\A"),
                '$' => self.anchor(r"\z"),
                '.' => self.atom(ANY),
                '*' | '+' | '?' => self.repeat(&next.to_string(), self.at)?,
                '{' => self.interval()?,
                '[' => self.bracket()?,
                '\\' => self.escape()?,
                literal => self.literal(literal),
            }
        }
        match self.groups.last() {
            Some(group) => Err(refused("a group is not closed", group.position)),
            None => Ok(self.out),
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn open(&mut self) {
        self.groups.push(Group { position: self.at, start: self.out.len() });
        self.out.push_str(self.group);
        self.last = Last::Nothing;
    }

    fn close(&mut self) {
        self.out.push(')');
        self.last = self.groups.pop().map_or(Last::Nothing, |group| Last::From(group.start));
    }

    fn anchor(&mut self, translation: &str) {
        self.out.push_str(translation);
        self.last = Last::Nothing;
    }

    fn atom(&mut self, translation: &str) {
        self.last = Last::From(self.out.len());
        self.out.push_str(translation);
    }

    fn literal(&mut self, literal: char) {
        self.atom(&escaped(literal));
    }

    /// Repeats the last operand: `+?` repeats twice, and is not the `regex` crate's lazy repetition.
    fn repeat(&mut self, operator: &str, position: usize) -> Result<(), PatternError> {
        let Last::From(start) = self.last else {
            return Err(refused("nothing that could be repeated stands before a repetition", position));
        };
        self.out.insert_str(start, "(?:");
        self.out.push(')');
        self.out.push_str(operator);
        Ok(())
    }

    fn interval(&mut self) -> Result<(), PatternError> {
        let position = self.at;
        let (low, digits) = self.number(position)?;
        let comma = self.skip(',');
        let (high, more) = if comma { self.number(position)? } else { (low, digits) };
        if !self.skip('}') || !(digits || comma) {
            return Err(refused(
                "a repetition in braces is not {n}, {n,} or {n,m}; a brace itself is \\{",
                position,
            ));
        }
        if more && low > high {
            return Err(refused("a repetition's first number is greater than its second", position));
        }
        let operator = if more { format!("{{{low},{high}}}") } else { format!("{{{low},}}") };
        self.repeat(&operator, position)
    }

    /// Reads a number; returns it, or 0 if there is none, and true if there was one.
    fn number(&mut self, position: usize) -> Result<(u32, bool), PatternError> {
        let (mut number, begin) = (0, self.at);
        while let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) {
            self.at += 1;
            number = number * 10 + digit;
            if number > MOST_REPETITIONS {
                return Err(refused("a repetition of more than 32767", position));
            }
        }
        Ok((number, self.at > begin))
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let position = self.at;
        let Some(next) = self.next() else {
            return Err(refused("a backslash stands at the end", position));
        };
        match next {
            'w' => self.atom(WORD),
            'W' => self.atom(NO_WORD),
            's' => self.atom(SPACE),
            'S' => self.atom(NO_SPACE),
            'b' => self.anchor(r"(?-u:\b)"),
            'B' => self.anchor(r"(?-u:\B)"),
            '<' => self.anchor(r"(?-u:\b{start})"),
            '>' => self.anchor(r"(?-u:\b{end})"),
            '`' => self.anchor(r"\A"),
            '\'' => self.anchor(r"\z"),
            '1'..='9' => return Err(refused("a back-reference, which is not offered", position)),
            'd' => {
                return Err(refused(
                    r"\d is not part of extended regular expressions; write [0-9]",
                    position,
                ));
            }
            letter if letter.is_alphanumeric() => {
                let reason = format!("\\{letter} is not part of extended regular expressions");
                return Err(refused(&reason, position));
            }
            literal => self.literal(literal),
        }
        Ok(())
    }

    fn bracket(&mut self) -> Result<(), PatternError> {
        let opened = self.at;
        let mut class = String::from(if self.skip('^') { "[^" } else { "[" });
        let mut first = true;
        while first || self.peek() != Some(']') {
            self.element(opened, first, &mut class)?;
            first = false;
        }
        self.at += 1;
        class.push(']');
        self.atom(&class);
        Ok(())
    }

    /// A character, a range or a class. A hyphen stands for itself at the beginning and at the end only.
    fn element(&mut self, opened: usize, first: bool, class: &mut String) -> Result<(), PatternError> {
        let unclosed = || refused("a bracket is not closed", opened);
        let position = self.at + 1;
        let begin = self.next().ok_or_else(unclosed)?;
        if begin == '[' && self.skip(':') {
            return self.named_class(position, class);
        }
        self.refuse_collation(begin, position)?;
        if begin == '-' && !first && self.peek() != Some(']') {
            return Err(refused("a hyphen in the middle of a bracket; put it first or last", position));
        }
        class.push_str(&escaped(begin));
        let after = self.chars.get(self.at + 1).copied();
        if self.peek() == Some('-') && after != Some(']') {
            self.at += 1;
            let position = self.at + 1;
            let end = self.next().ok_or_else(unclosed)?;
            self.refuse_collation(end, position)?;
            if end == '[' && self.peek() == Some(':') {
                return Err(refused("a range ends in a class", position));
            }
            if end < begin {
                return Err(refused("a range ends before it begins", position));
            }
            class.push('-');
            class.push_str(&escaped(end));
        }
        Ok(())
    }

    fn named_class(&mut self, position: usize, class: &mut String) -> Result<(), PatternError> {
        let begin = self.at;
        while self.peek().is_some_and(|next| next.is_ascii_lowercase()) {
            self.at += 1;
        }
        let name: String = self.chars.iter().skip(begin).take(self.at - begin).collect();
        if !(CLASSES.contains(&name.as_str()) && self.skip(':') && self.skip(']')) {
            return Err(refused(
                "an unknown class; there are [:alpha:], [:digit:], [:alnum:] and the like",
                position,
            ));
        }
        class.push_str(&format!("[:{name}:]"));
        Ok(())
    }

    fn refuse_collation(&self, begin: char, position: usize) -> Result<(), PatternError> {
        match self.peek().filter(|_| begin == '[') {
            Some('=') => Err(refused("an equivalence class, which depends on a locale", position)),
            Some('.') => Err(refused("a collating symbol, which depends on a locale", position)),
            _ => Ok(()),
        }
    }
}

fn refused(reason: &str, position: usize) -> PatternError {
    PatternError { reason: reason.to_owned(), position }
}

/// The character as a code point, so that no character and no pair of them (`&&` in a class) has a special meaning.
fn escaped(literal: char) -> String {
    if literal.is_alphanumeric() { literal.to_string() } else { format!("\\x{{{:x}}}", u32::from(literal)) }
}

/// Any character except the NUL that terminates a C string.
const ANY: &str = r"[^\x00]";
const WORD: &str = "[_[:alnum:]]";
const NO_WORD: &str = "[^_[:alnum:]]";
const SPACE: &str = "[[:space:]]";
const NO_SPACE: &str = "[^[:space:]]";

const CLASSES: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
    "xdigit",
];

/// `RE_DUP_MAX` of the GNU C library.
const MOST_REPETITIONS: u32 = 32_767;
