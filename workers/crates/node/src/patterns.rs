//! `downburst-node patterns`: a hub's verdict on the patterns of LDM's files. `downburst import ldm` calls
//! it, so that there is one verdict.
use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use downburst_model::Pattern;
use serde_json::{Value, json};

/// Reads patterns from standard input, one per line, and prints a JSON object for each. Ends with 1 if any is
/// refused, with 2 if there is no text to read.
pub fn run() -> ExitCode {
    let mut well = true;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let Ok(pattern) = line else {
            eprintln!("downburst-node: the patterns are not UTF-8; write them in UTF-8");
            return ExitCode::from(2);
        };
        let judged = judged(&pattern);
        well &= judged.get("refused").is_some_and(Value::is_null);
        if writeln!(out, "{judged}").is_err() {
            break;
        }
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `refused`: the reason why a hub refuses it. `differs`: the ids on which it differs from LDM's matching.
fn judged(pattern: &str) -> Value {
    let refused = Pattern::parse(pattern).err().map(|error| error.to_string());
    let differs = Pattern::difference(pattern).filter(|_| refused.is_none());
    json!({ "pattern": pattern, "refused": refused, "differs": differs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_26_what_differs_from_ldm_is_said_of_each_pattern() {
        assert_eq!(judged("^S[AP]"), json!({"pattern": "^S[AP]", "refused": null, "differs": null}));
        let refused = judged(r"^(.)\1")["refused"].to_string();
        assert!(refused.contains("a back-reference") && refused.contains("character 5"), "{refused}");
        assert!(judged("^[[=a=]]")["refused"].to_string().contains("locale"));
        assert!(judged("^Ä.$")["differs"].to_string().contains("LDM matches the bytes"));
    }
}
