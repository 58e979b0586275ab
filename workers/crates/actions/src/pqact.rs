//! LDM's `pqact.conf`: feed types, a pattern and an action, separated by tabs. A line that begins with a
//! blank continues the one before.
//!
//! Supported rules do the same as in pqact; notes list the rest. An argument is a word of the rule: an id
//! with blanks stays one argument.
use downburst_ere::Ere;
use downburst_ldm6::FeedType;

use crate::{
    Action, Feeds, FileAction, Kind, Limits, PipeAction, Place, Problem, ProgramAction, Read, Rule, Rules,
    Shape, Template, Test,
};

/// Loads an included file; returns its name for messages, and its text.
pub type Load<'a> = &'a mut dyn FnMut(&str) -> Result<(String, String), String>;

/// Reads the text of a file; `load` returns the files that it includes.
pub fn read(file: &str, text: &str, load: Load<'_>) -> Read<Rules> {
    let mut reading = Reading { found: Read::nothing(), load, open: Vec::new() };
    reading.file(file, text);
    reading.found
}

struct Reading<'a> {
    found: Read<Rules>,
    load: Load<'a>,
    /// The files being read, outermost first.
    open: Vec<String>,
}

/// A parsed entry.
struct Entry {
    /// The rule. A rule with an unknown action still takes its products, so that no rule for the rest does.
    rule: Option<Rule>,
    wrong: Option<String>,
    notes: Vec<String>,
}

impl Reading<'_> {
    fn file(&mut self, file: &str, text: &str) {
        self.open.push(file.to_owned());
        let mut errors = Vec::new();
        for (place, entry) in entries(file, text, &mut errors) {
            match include(&entry) {
                Some(name) => self.include(&place, name),
                None => self.entry(&place, &entry),
            }
        }
        self.found.set_aside.append(&mut errors);
        self.found.set_aside.sort_by(|a, b| a.place.cmp(&b.place));
        self.open.pop();
    }

    fn include(&mut self, place: &Place, name: &str) {
        let found = (self.load)(name).and_then(|(file, text)| {
            if self.open.contains(&file) || self.open.len() >= DEEPEST {
                return Err(format!("{file} includes itself; remove one of the INCLUDE lines"));
            }
            Ok((file, text))
        });
        match found {
            Ok((file, text)) => self.file(&file, &text),
            Err(sentence) => self.found.errors.push(place.wrong(sentence)),
        }
    }

    fn entry(&mut self, place: &Place, entry: &str) {
        let Entry { rule, wrong, notes } = parse(place, entry);
        self.found.found.rules.extend(rule);
        self.found.set_aside.extend(wrong.map(|sentence| place.wrong(sentence)));
        self.found.notes.extend(notes.into_iter().map(|note| place.wrong(note)));
    }
}

/// Entries, their continuation lines joined by tabs. Comments and empty lines may separate the lines of an entry.
fn entries(file: &str, text: &str, errors: &mut Vec<Problem>) -> Vec<(Place, String)> {
    let mut entries: Vec<(Place, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = Place::new(file, number + 1);
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            entries.push((place, line.trim_end().to_owned()));
            continue;
        }
        match entries.last_mut() {
            Some((_, entry)) => {
                entry.push('\t');
                entry.push_str(line.trim());
            }
            None => errors.push(place.wrong(
                "the line begins with a blank but continues no entry; begin an entry in its first column",
            )),
        }
    }
    entries
}

/// The file that an entry includes; `None` if the entry is a rule.
fn include(entry: &str) -> Option<&str> {
    let (word, rest) = entry.split_once([' ', '\t'])?;
    word.eq_ignore_ascii_case("include").then(|| rest.trim().trim_matches('"'))
}

fn parse(place: &Place, entry: &str) -> Entry {
    let mut notes = Vec::new();
    let head = match head(entry, &mut notes) {
        Ok(head) => head,
        Err(sentence) => return Entry { rule: None, wrong: Some(sentence), notes },
    };
    let (kind, wrong) = match kind(&head, &mut notes) {
        Ok(kind) => (kind, None),
        Err(sentence) => (Kind::Nothing, Some(sentence)),
    };
    let Head { feeds, test, .. } = head;
    let action = Action { place: place.clone(), kind, limits: Limits::default() };
    check_groups(&test, &action, &mut notes);
    Entry { rule: Some(Rule { place: place.clone(), feeds, test, actions: vec![action] }), wrong, notes }
}

/// The part of an entry before an action's words.
struct Head {
    feeds: Feeds,
    test: Test,
    action: String,
    arguments: String,
}

fn head(entry: &str, notes: &mut Vec<String>) -> Result<Head, String> {
    if entry.contains(char::REPLACEMENT_CHARACTER) {
        return Err("there are bytes in it that are not UTF-8; write the entry in UTF-8".to_owned());
    }
    let mut fields = entry.split('\t').filter(|field| !field.trim_matches(' ').is_empty());
    let (Some(feeds), Some(pattern), Some(action)) = (fields.next(), fields.next(), fields.next()) else {
        let blanks = if entry.contains('\t') { "" } else { " (there is no tab in it)" };
        return Err(format!(
            "an entry is feed types, pattern and action, separated by tabs; this one has too few fields{blanks}"
        ));
    };
    let feeds = feeds.trim_matches(' ');
    let types: FeedType = feeds.parse().map_err(|error| format!("{error}; correct {feeds:?}"))?;
    let (name, rest) = action.trim_matches(' ').split_once(' ').unwrap_or((action.trim_matches(' '), ""));
    let arguments = std::iter::once(rest).chain(fields).collect::<Vec<_>>().join("\t");
    let feeds = Feeds { names: Vec::new(), types };
    Ok(Head { feeds, test: test(pattern, notes)?, action: name.to_ascii_uppercase(), arguments })
}

fn test(pattern: &str, notes: &mut Vec<String>) -> Result<Test, String> {
    if pattern.trim_matches(' ') == ELSE {
        return Ok(Test::Rest);
    }
    if pattern.starts_with(' ') || pattern.ends_with(' ') {
        notes.push(format!("blanks before and behind a pattern are part of it: {pattern:?}"));
    }
    let vetted = vetted(pattern);
    if vetted != pattern {
        notes.push("the .* at the beginning of the pattern is left out, as by pqact".to_owned());
    }
    let (pattern, note) = Ere::compile(vetted).map_err(|error| error.to_string())?;
    notes.extend(note);
    Ok(Test::Id { pattern, unless: None })
}

/// A pattern without a leading `.*`, unless that is all of it.
fn vetted(pattern: &str) -> &str {
    let mut rest = pattern;
    while let Some(shorter) = rest.strip_prefix(".*").filter(|shorter| !shorter.is_empty()) {
        rest = shorter;
    }
    rest
}

fn kind(head: &Head, notes: &mut Vec<String>) -> Result<Kind, String> {
    let (name, words) = (head.action.as_str(), &words(&head.arguments)[..]);
    match name {
        "NOOP" => Ok(Kind::Nothing),
        "FILE" | "STDIOFILE" => file(name, words, notes),
        "PIPE" => pipe(words, notes),
        "EXEC" => exec(words),
        "DBFILE" | "SPIPE" | "XPIPE" => {
            notes.push(format!(
                "{name} is not supported, and the rule does nothing; write to a program by PIPE{}",
                if name == "DBFILE" { " that keeps the database" } else { "" }
            ));
            Ok(Kind::Nothing)
        }
        _ => Err(format!("{name:?} is not an action; use NOOP, FILE, STDIOFILE, PIPE or EXEC")),
    }
}

fn file(name: &str, words: &[&str], notes: &mut Vec<String>) -> Result<Kind, String> {
    let known = if name == "FILE" { &FILE_OPTIONS[..] } else { &STDIOFILE_OPTIONS };
    let (options, rest) = options(name, words, known, notes);
    let Some((path, before)) = rest.split_last() else { return Err(format!("{name} needs a path")) };
    if !before.is_empty() {
        notes.push(format!("a path is one word: {path:?} is taken; put the whole into double quotes"));
    }
    if options.contains(&"edex") {
        notes.push("-edex is not supported: the file is written, and EDEX is not notified".to_owned());
    }
    let has = |option: &str| options.contains(&option);
    Ok(Kind::File(FileAction {
        path: Template::parse(path)?,
        overwrite: has("overwrite"),
        close: has("close"),
        flush: has("flush"),
        log: has("log"),
        shape: shape(&options),
    }))
}

fn pipe(words: &[&str], notes: &mut Vec<String>) -> Result<Kind, String> {
    let (options, command) = options("PIPE", words, &PIPE_OPTIONS, notes);
    let command = program("PIPE", command)?;
    let shape = shape(&options).for_pipe();
    Ok(Kind::Pipe(PipeAction { command, close: options.contains(&"close"), shape }))
}

fn exec(words: &[&str]) -> Result<Kind, String> {
    let wait = words.first() == Some(&"-wait");
    let command = program("EXEC", words.get(usize::from(wait)..).unwrap_or_default())?;
    Ok(Kind::Program(ProgramAction { command, wait }))
}

fn program(name: &str, words: &[&str]) -> Result<Vec<Template>, String> {
    if words.is_empty() {
        return Err(format!("{name} needs a program"));
    }
    words.iter().map(|word| Template::parse(word)).collect()
}

fn shape(options: &[&str]) -> Shape {
    let has = |option: &str| options.contains(&option);
    Shape {
        strip: has("strip"),
        without_wmo_header: has("removewmo"),
        metadata: has("metadata"),
        data: !has("nodata"),
    }
}

/// The options before the last word, and the words after them. Two letters are enough, and unknown options
/// are ignored, as in pqact.
fn options<'a, 'w>(
    name: &str,
    words: &'w [&'a str],
    known: &[&'static str],
    notes: &mut Vec<String>,
) -> (Vec<&'static str>, &'w [&'a str]) {
    let mut options = Vec::new();
    let mut rest = words;
    while let [first, more @ ..] = rest
        && let Some(option) = first.strip_prefix('-')
        && !more.is_empty()
    {
        let begin = option.get(..2).unwrap_or(option);
        match known.iter().find(|known| begin.len() == 2 && known.starts_with(begin)) {
            Some(found) => options.push(*found),
            None => notes.push(format!(
                "{name} has no option {first}, so it is ignored; the options are -{}",
                known.join(", -")
            )),
        }
        rest = more;
    }
    (options, rest)
}

/// Words separated by blanks; double quotes keep blanks within a word, and are not part of it.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        if number % 2 == 1 {
            words.extend((!part.is_empty()).then_some(part));
        } else {
            words.extend(part.split([' ', '\t']).filter(|word| !word.is_empty()));
        }
    }
    words
}

/// Adds a note on groups that the pattern does not have.
pub(crate) fn check_groups(test: &Test, action: &Action, notes: &mut Vec<String>) {
    let there = if let Test::Id { pattern, .. } = test { pattern.group_count() } else { 0 };
    let last = action.templates().iter().map(Template::last_group).max().unwrap_or_default();
    if last > there {
        notes.push(format!(
            "\\{last} stands for nothing: the pattern has {there} groups; correct it, or the pattern"
        ));
    }
}

/// The pattern for products that no earlier rule took.
const ELSE: &str = "^_ELSE_$";
const DEEPEST: usize = 8;
const FILE_OPTIONS: [&str; 8] =
    ["overwrite", "flush", "close", "strip", "log", "metadata", "removewmo", "edex"];
const STDIOFILE_OPTIONS: [&str; 6] = ["overwrite", "flush", "close", "strip", "log", "removewmo"];
const PIPE_OPTIONS: [&str; 7] = ["strip", "flush", "close", "metadata", "nodata", "transient", "removewmo"];

#[cfg(test)]
mod tests {
    use downburst_model::{FeedName, ProductId, WallMicros};
    use proptest::prelude::*;

    use super::*;
    use crate::{Product, What};

    fn read_alone(text: &str) -> Read<Rules> {
        read("pqact.conf", text, &mut |name| Err(format!("{name} is not there")))
    }

    fn rules(text: &str) -> Rules {
        let read = read_alone(text);
        assert_eq!((&read.errors[..], &read.set_aside[..]), (&[][..], &[][..]), "{text}");
        read.found
    }

    /// The actions done: `FILE path`, `PIPE word|word`.
    fn done(rules: &Rules, feed: &str, id: &str) -> Vec<String> {
        let (feed, id) = (FeedName::parse(feed).unwrap(), ProductId::parse(id).unwrap());
        let types = feed.as_str().parse().unwrap_or_default();
        let created = WallMicros(1_709_251_198_000_000);
        let product = Product { feed: &feed, types, id: &id, created, sequence: 12 };
        let text = |what| match what {
            What::Nothing => "NOOP".to_owned(),
            What::File(path) => format!("FILE {path}"),
            What::Pipe(words) => format!("PIPE {}", words.join("|")),
            What::Program(words) => format!("EXEC {}", words.join("|")),
            What::Publish => "PUBLISH".to_owned(),
        };
        rules.due(&product).into_iter().map(|due| due.what.map_or_else(|error| error, text)).collect()
    }

    const EXAMPLE: &str = "# what LDM's own example does
DDPLUS|IDS	^S[AP]US.. .... ([0-3][0-9])([0-2][0-9])
	FILE	-close	data/surface/(\\1:yyyy)(\\1:mm)\\1\\2.wmo

WMO-HDS	^S[AP]
# between its lines
	PIPE	-close	decoders/dcmetr -v \"a b\" -d data/%Y%m%d.log
	-m \\(1)
NEXRAD3	^SDUS5. (K...) ([0-3][0-9])([0-2][0-9])([0-6][0-9]).*/p(...)(...)
	FILE	-overwrite -close	data/radar/\\6/\\5/\\5_(\\2:yyyy)(\\2:mm)\\2_\\3\\4
NEXRAD3	/pN0R	EXEC	-wait touch \"data/radar/new one\"
ANY	^_ELSE_$	FILE	data/rest/%j/(seq)
ANY	^_ELSE_$	NOOP
";

    #[test]
    fn entries_do_what_pqact_does() {
        let rules = rules(EXAMPLE);
        assert_eq!(
            done(&rules, "IDS|DDPLUS", "SAUS70 KWBC 291200"),
            [
                "FILE data/surface/202402291 2.wmo".replace("1 2", "12"),
                "PIPE decoders/dcmetr|-v|a b|-d|data/20240229.log|-m|".to_owned()
            ]
        );
        assert_eq!(
            done(&rules, "NEXRAD3", "SDUS54 KOUN 281540 /pN0RTLX"),
            ["FILE data/radar/TLX/N0R/N0R_20240228_1540", "EXEC touch|data/radar/new one"]
        );
        assert_eq!(done(&rules, "HDS", "anything"), ["FILE data/rest/060/12"]);
        assert_eq!(done(&rules, "HDS", "_BEGIN_"), [""; 0], "LDM's own");
        assert_eq!(done(&rules, "radar", "x"), ["FILE data/rest/060/12"], "ANY is any");
    }

    #[test]
    fn options_are_read_by_their_first_letters() {
        let text = "ANY\t.*\tFILE\t-ov -cl -fl -lo -st -me\tx\nANY\t.*\tPIPE\t-nodata -metadata p\nANY\t.\tFILE\t-x\n";
        let read = read_alone(text);
        assert_eq!(read.errors, []);
        let [file, pipe, odd] = &read.found.rules[..] else { panic!("three") };
        let Kind::File(file) = &file.actions[0].kind else { panic!("a file") };
        assert!(file.overwrite && file.close && file.flush && file.log);
        assert!(file.shape.strip && file.shape.metadata && file.shape.data);
        let Kind::Pipe(pipe) = &pipe.actions[0].kind else { panic!("a pipe") };
        assert!(pipe.shape.metadata && !pipe.shape.data && !pipe.close);
        let Kind::File(odd) = &odd.actions[0].kind else { panic!("a file") };
        assert_eq!(odd.path.text(), "-x", "the last word is the path");
    }

    #[test]
    fn errors_name_file_line_and_what_to_do() {
        for (text, line, part) in [
            ("\tFILE\tx", 1, "first column"),
            ("ANY .* FILE x", 1, "there is no tab"),
            ("#\n\nANY\t.*", 3, "too few fields"),
            ("ANNY\t.*\tNOOP", 1, "no feed is called ANNY"),
            ("ANY\t(\tNOOP", 1, "not closed at character 1"),
            ("ANY\t.*\tFIEL\tx", 1, "use NOOP"),
            ("ANY\t.*\tFILE", 1, "needs a path"),
            ("ANY\t.*\tPIPE\t", 1, "needs a program"),
            ("ANY\t.*\tEXEC\t-wait", 1, "needs a program"),
            ("ANY\t.*\tFILE\tx%Q", 1, "%%"),
            ("ANY\t\u{fffd}\tNOOP", 1, "not UTF-8"),
            ("INCLUDE \"other.conf\"", 1, "other.conf is not there"),
        ] {
            let read = read_alone(text);
            let errors = [read.errors, read.set_aside].concat();
            assert_eq!(errors.len(), 1, "{text:?}: {errors:?}");
            assert_eq!(errors[0].place, Place::new("pqact.conf", line), "{text:?}");
            assert!(errors[0].to_string().contains(part), "{}", errors[0]);
        }
    }

    #[test]
    fn all_errors_of_a_file_are_found_at_once() {
        let read = read_alone("X\t.*\tNOOP\nANY\t(\tNOOP\nANY\t.*\tNOOP");
        assert_eq!((read.set_aside.len(), read.found.rules.len()), (2, 1));
    }

    #[test]
    fn finding_21_what_is_no_option_is_noted_and_the_rule_works() {
        let text = "ANY\t^a\tFILE\t-shut -close one\nANY\t^a\tPIPE\t-q -close two -x\nANY\t^a\tSTDIOFILE\t-nodata \
            -lo three\n";
        let read = read_alone(text);
        assert_eq!((&read.errors[..], &read.set_aside[..]), (&[][..], &[][..]));
        assert_eq!(done(&read.found, "IDS", "a"), ["FILE one", "PIPE two|-x", "FILE three"]);
        let notes: Vec<String> = read.notes.iter().map(Problem::to_string).collect();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with(
            "pqact.conf:1: FILE has no option -shut, so it is ignored; the options are -overwrite"
        ));
        assert!(notes[1].starts_with("pqact.conf:2: PIPE has no option -q"));
        let Kind::File(file) = &read.found.rules[2].actions[0].kind else { panic!("a file") };
        assert!(file.log && file.shape.data);
    }

    #[test]
    fn finding_21_a_rule_that_cannot_be_understood_is_set_aside_and_the_others_work() {
        let text = "ANY\t^a\tFILE\tone\nANNY\t^a\tFILE\ttwo\nANY\t^b\tFIEL\tthree\n\
            ANY\t^a(\tNOOP\nANY\t^_ELSE_$\tFILE\trest\n";
        let read = read_alone(text);
        let lines: Vec<usize> = read.set_aside.iter().map(|problem| problem.place.line).collect();
        assert_eq!((lines, read.errors.len()), (vec![2, 3, 4], 0));
        assert_eq!(done(&read.found, "IDS", "a"), ["FILE one"]);
        assert_eq!(done(&read.found, "IDS", "b"), ["NOOP"], "its products are not those of the rest");
        assert_eq!(done(&read.found, "IDS", "c"), ["FILE rest"]);
    }

    #[test]
    fn finding_23_pipe_without_data_has_the_metadata() {
        for (entry, data, metadata) in [
            ("PIPE\t-nodata p", false, true),
            ("PIPE\t-nodata -metadata p", false, true),
            ("PIPE\t-metadata p", true, true),
            ("PIPE\tp", true, false),
        ] {
            let rules = rules(&format!("ANY\t.\t{entry}"));
            let Kind::Pipe(pipe) = &rules.rules[0].actions[0].kind else { panic!("a pipe") };
            assert_eq!((pipe.shape.data, pipe.shape.metadata), (data, metadata), "{entry}");
        }
    }

    #[test]
    fn finding_26_file_names_are_those_of_the_longest_alternative() {
        let rules = rules(
            "ANY\t (KW|KWBC) ([0-3][0-9])\tFILE\t\\1/\\2\nANY\t^(SA|SAUS)\tFILE\t\\1\nANY\t.*(B.)\tFILE\t&\n",
        );
        assert_eq!(done(&rules, "IDS", "SAUS70 KWBC 291200"), ["FILE KWBC/29", "FILE SAUS", "FILE BC"]);
        let read = read_alone("ANY\t^(.)\\1\tFILE\ttwice\nANY\t\\d\tFILE\tletter");
        assert_eq!(done(&read.found, "IDS", "AAd"), ["FILE twice", "FILE letter"]);
        let notes: Vec<&str> = read.notes.iter().map(|note| note.sentence.as_str()).collect();
        assert!(notes[0].starts_with("the back-reference at character 5"), "{notes:?}");
        assert!(notes[1].contains("is the letter d"), "{notes:?}");
    }

    #[test]
    fn blanks_of_a_pattern_are_part_of_it() {
        let read = read_alone("ANY\t^SAUS \tFILE\tx\nANY \t^_ELSE_$ \t FILE\ty");
        assert_eq!(done(&read.found, "IDS", "SAUS70"), ["FILE y"]);
        assert_eq!(done(&read.found, "IDS", "SAUS 70"), ["FILE x"]);
        assert!(read.notes[0].sentence.contains("are part of it"), "{:?}", read.notes);
    }

    #[test]
    fn what_is_not_done_as_written_is_noted() {
        for (entry, part) in [
            ("DBFILE\tx", "PIPE that keeps the database"),
            ("FILE\t-edex x", "EDEX is not notified"),
            ("FILE\ta b", "double quotes"),
            ("FILE\t\\2", "has 1 groups"),
            ("FILE\t-nodata x", "FILE has no option -nodata, so it is ignored"),
            ("STDIOFILE\t-metadata x", "STDIOFILE has no option -metadata"),
        ] {
            let read = read_alone(&format!("ANY\t(.)\t{entry}"));
            assert_eq!(read.set_aside, [], "{entry}");
            assert!(read.notes[0].to_string().contains(part), "{:?}", read.notes);
        }
        assert_eq!(done(&rules("ANY\t.\tDBFILE\tx\nANY\t^_ELSE_$\tFILE\ty"), "IDS", "a"), ["NOOP"]);
    }

    #[test]
    fn included_files_stand_where_they_are_included() {
        let mut load = |name: &str| match name {
            "a" => Ok(("a".to_owned(), "INCLUDE b\nANY\t.\tFILE\ta".to_owned())),
            "b" => Ok(("b".to_owned(), "ANY\t.\tFILE\tb".to_owned())),
            _ => Ok(("top".to_owned(), String::new())),
        };
        let found = read("top", "INCLUDE \"a\"\nANY\t.\tFILE\ttop", &mut load);
        assert_eq!(done(&found.found, "IDS", "x"), ["FILE b", "FILE a", "FILE top"]);
        assert_eq!(found.found.rules[0].place, Place::new("b", 1));
        let circle = read("top", "INCLUDE top", &mut load);
        assert!(circle.errors[0].sentence.contains("includes itself"));
    }

    #[test]
    fn an_id_with_blanks_and_quotes_stays_one_word() {
        let rules = rules("ANY\t^(.*)$\tEXEC\tprogram \\1 last");
        assert_eq!(done(&rules, "IDS", "a b\" -c"), ["EXEC program|a b\" -c|last"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "([A-Z|~-]{0,8}[\t ]{1,2}[a-z.()^$*\\\\\\[\\]0-9]{0,9}\t\
                (FILE|PIPE|EXEC|NOOP|DBFILE)[\t ][-a-z\\\\%(:\" )0-9]{0,20}\n?){0,4}|(?s).{0,80}",
            id in "[ -~]{1,30}",
        ) {
            let read = read_alone(&text);
            if let Ok(id) = ProductId::parse(&id) {
                let feed = FeedName::parse("IDS").unwrap();
                let types = FeedType::ANY;
                let product = Product { feed: &feed, types, id: &id, created: WallMicros(0), sequence: 1 };
                let _ = read.found.due(&product);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read_alone(&String::from_utf8_lossy(&bytes));
        }
    }
}
