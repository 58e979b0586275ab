//! Shell patterns for the names of files.

/// True if a shell pattern matches a name. As in the shell, a leading dot in the name requires a dot in the
/// pattern.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    fits_here(&pattern, &name)
}

/// Backtracks to the last star only, so the time is bounded by the product of both lengths.
fn fits_here(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(next) = name.get(from) {
        match step(pattern.get(at..).unwrap_or_default(), *next) {
            Step::Star => {
                star = Some((at + 1, from));
                at += 1;
            }
            Step::Fits(length) => (at, from) = (at + length, from + 1),
            Step::Fails => {
                let Some((behind, begin)) = star else { return false };
                star = Some((behind, begin + 1));
                (at, from) = (behind, begin + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|left| *left == '*')
}

enum Step {
    Star,
    /// This many characters at the start of the pattern fit the character.
    Fits(usize),
    Fails,
}

fn step(pattern: &[char], next: char) -> Step {
    match pattern {
        ['*', ..] => Step::Star,
        ['?', ..] => Step::Fits(1),
        ['\\', literal, ..] if *literal == next => Step::Fits(2),
        ['\\', _, ..] | [] => Step::Fails,
        ['[', rest @ ..] => match bracket(rest, next) {
            Some((true, length)) => Step::Fits(length + 1),
            Some((false, _)) => Step::Fails,
            None if next == '[' => Step::Fits(1),
            None => Step::Fails,
        },
        [literal, ..] if *literal == next => Step::Fits(1),
        _ => Step::Fails,
    }
}

/// True if the character is in the set, and the set's length including its end; `None` for a set without an end.
fn bracket(set: &[char], next: char) -> Option<(bool, usize)> {
    let not = matches!(set.first(), Some('!' | '^'));
    let begin = usize::from(not);
    let close = set.iter().skip(begin + 1).position(|end| *end == ']')? + begin + 1;
    let mut members = set.get(begin..close)?;
    let mut found = false;
    while let Some(first) = members.first() {
        if let [low, '-', high, rest @ ..] = members {
            found |= (*low..=*high).contains(&next);
            members = rest;
        } else {
            found |= *first == next;
            members = members.get(1..)?;
        }
    }
    Some((found != not, close + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_are_those_of_the_shell() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.nc", "eta.nc"),
            ("*eta.nc", "eta.nc"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("*a*b*", "xxaxxb"),
            (".scour*", ".scour1"),
            ("\\*", "*"),
            ("[]]", "]"),
            ("[", "["),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*", ".hidden"),
            ("?x", ".x"),
            ("*.nc", "eta.ncx"),
            ("[a-c]x", "dx"),
            ("a", "ab"),
            ("", "a"),
            ("\\*", "a"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern in "[a*?\\[\\]!\\\\-]{0,30}", name in "[a\\[\\]-]{0,60}") {
            let _ = fits(&pattern, &name);
        }

        #[test]
        fn a_name_fits_itself_and_a_star(name in "[a-z0-9_-]{1,20}") {
            let around = format!("*{name}*");
            prop_assert!(fits(&name, &name) && fits("*", &name) && fits(&around, &name));
        }
    }
}
