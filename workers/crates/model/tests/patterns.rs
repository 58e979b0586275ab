//! Patterns in use with LDM, and the C library's result for the same ones: `tests/golden/patterns.json` lists
//! acceptance, matches, and the position of the error in a refused pattern; random patterns are compared with
//! `regcomp(3)` of the machine.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test that fails stops")]

use std::ffi::CString;

use downburst_model::Pattern;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    accepted: Vec<Accepted>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    pattern: String,
    matches: Vec<String>,
    passes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    pattern: String,
    position: usize,
    reason: String,
    /// True if the C library accepts it, with a meaning that people don't expect or that is not offered here.
    regcomp_accepts: bool,
}

#[test]
fn the_fields_patterns_mean_what_they_mean_to_regcomp() {
    for Accepted { pattern, matches, passes } in golden().accepted {
        let ours = Pattern::parse(&pattern).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        let theirs = Posix::compile(&pattern).unwrap_or_else(|| panic!("regcomp refuses {pattern:?}"));
        for id in &matches {
            assert!(ours.matches(id), "{pattern:?} should match {id:?}");
            assert!(theirs.matches(id), "regexec: {pattern:?} on {id:?}");
        }
        for id in &passes {
            assert!(!ours.matches(id), "{pattern:?} should not match {id:?}");
            assert!(!theirs.matches(id), "regexec: {pattern:?} on {id:?}");
        }
    }
}

#[test]
fn what_is_refused_is_refused_at_its_place() {
    for Refused { pattern, position, reason, regcomp_accepts } in golden().refused {
        let error = Pattern::parse(&pattern).expect_err(&pattern);
        assert_eq!(error.position, position, "{pattern:?}: {error}");
        assert!(error.reason.contains(&reason), "{pattern:?}: {error}");
        assert_eq!(Posix::compile(&pattern).is_some(), regcomp_accepts, "regcomp of {pattern:?}");
    }
}

#[test]
fn no_pattern_exhausts_anything() {
    for pattern in ["((a{1000}){1000}){1000}", &"(".repeat(100_000), &"a*".repeat(50_000), &"*".repeat(1_000)]
    {
        let _ = Pattern::parse(pattern);
    }
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(Pattern::parse(&deep).unwrap_err().reason.contains("too large"));
    assert!(Pattern::parse(&format!("a{}", "*".repeat(5_000))).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// If both accept a pattern, both find the same matches; patterns that only the C library accepts are refused
    /// here deliberately.
    #[test]
    fn random_patterns_match_what_regexec_matches(
        pattern in pattern(),
        ids in prop::collection::vec("[ab1 _.^$*(){}\\[\\]|+?\\\\-]{0,8}", 1..8),
    ) {
        match (Pattern::parse(&pattern), Posix::compile(&pattern)) {
            (Ok(ours), Some(theirs)) => {
                for id in &ids {
                    prop_assert_eq!(ours.matches(id), theirs.matches(id), "{:?} on {:?}", &pattern, id);
                }
            }
            (Err(_), None) => {}
            (Ok(_), None) => prop_assert!(false, "{:?} is accepted here alone", &pattern),
            (Err(error), Some(_)) => {
                let on_purpose = DELIBERATE.iter().any(|reason| error.reason.contains(reason));
                prop_assert!(on_purpose, "{:?} is refused here alone: {}", &pattern, error);
            }
        }
    }
}

/// Random concatenations of pieces of patterns.
fn pattern() -> impl Strategy<Value = String> {
    let one_of = |pieces: &'static [&'static str]| prop::sample::select(pieces).prop_map(str::to_owned);
    let piece = prop_oneof![
        6 => one_of(&["a", "b", "1", " ", "_", ".", "ab"]),
        4 => one_of(&["*", "+", "?", "|", "(", ")", "^", "$", "]", "}", "-"]),
        2 => one_of(&["{2}", "{0,1}", "{,2}", "{1,}", "{", "{}", "{2,1}", "{a"]),
        2 => one_of(&[r"\.", r"\*", r"\\", r"\w", r"\W", r"\s", r"\S", r"\{", r"\)", r"\-", r"\1", r"\d"]),
        1 => one_of(&[r"\b", r"\<", r"\>", r"\`", r"\'"]),
        3 => r"\[\^?\]?[ab1^\-\\.*]{0,4}(\[:(digit|alpha|space|punct|none):\])?[ab\-]{0,2}\]?",
        2 => r"\((a|b|\|){0,3}\)",
    ];
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../../tests/golden/patterns.json")).unwrap()
}

/// A pattern compiled by the C library.
struct Posix(Box<libc::regex_t>);

impl Posix {
    fn compile(pattern: &str) -> Option<Self> {
        let text = CString::new(pattern).unwrap();
        let mut compiled = Box::new(std::mem::MaybeUninit::<libc::regex_t>::zeroed());
        // SAFETY: the text ends in a NUL, and the buffer is that of a `regex_t`, which `regcomp` fills if it
        // returns 0.
        let answer = unsafe {
            libc::regcomp(compiled.as_mut_ptr(), text.as_ptr(), libc::REG_EXTENDED | libc::REG_NOSUB)
        };
        // SAFETY: `regcomp` filled it; it stays in the box in which it was compiled.
        (answer == 0).then(|| Self(unsafe { compiled.assume_init() }))
    }

    fn matches(&self, id: &str) -> bool {
        let text = CString::new(id).unwrap();
        // SAFETY: the pattern was compiled, the text ends in a NUL, and no match positions are requested.
        unsafe { libc::regexec(&raw const *self.0, text.as_ptr(), 0, std::ptr::null_mut(), 0) == 0 }
    }
}

impl Drop for Posix {
    fn drop(&mut self) {
        // SAFETY: it was compiled, and is freed once.
        unsafe { libc::regfree(&raw mut *self.0) }
    }
}

/// Reasons for deliberate refusals of patterns that the C library accepts.
const DELIBERATE: [&str; 4] =
    ["back-reference", "locale", "is not part of extended regular expressions", "too large"];
