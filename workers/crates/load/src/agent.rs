//! Relays the lines between an agent and its hub, and plays schedules into the hub with lines of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Outcome;
use crate::play::{Answers, Prepared};

/// The hub's stdin, closed when the agent's lines end.
pub(crate) type ToHub = Arc<Mutex<Option<ChildStdin>>>;

/// Runs the hub until it ends, which it does when stdin ends.
///
/// Two of the agent's lines are for the player. `{"id", "do": "load-prepare", "schedule", "spool"}` is
/// answered once the spool files exist. `{"id", "do": "load-play", "window"}` is answered without delay, and
/// `{"event": "load-done", ...}` follows when the hub has answered for every product. The very first line is
/// `{"event": "load-ready", "hub_pid"}`.
pub(crate) fn run(command: &[String]) -> Outcome {
    let (program, arguments) = command.split_first().ok_or("name the node's command line")?;
    let mut hub = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program} can't be started: {error}"))?;
    say(&json!({"event": "load-ready", "hub_pid": hub.id()}))?;
    let to_hub: ToHub = Arc::new(Mutex::new(hub.stdin.take()));
    let from_hub = hub.stdout.take().ok_or("the node has no stdout")?;
    let answers = Arc::new(Answers::default());
    let taken = (Arc::clone(&to_hub), Arc::clone(&answers));
    // Not joined: the hub may end by itself, and a read of stdin can't be cancelled.
    std::thread::spawn(move || {
        let ended = pass_jobs(std::io::stdin().lock(), &taken.0, &taken.1);
        lock(&taken.0).take();
        if let Err(error) = ended {
            eprintln!("downburst-load: the agent's lines ended: {error}");
        }
    });
    pass_answers(BufReader::with_capacity(1 << 16, from_hub), &answers)?;
    let status = hub.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the node ended with {status}").into()) }
}

/// Writes one or more lines to the hub.
pub(crate) fn write(to_hub: &ToHub, lines: &[u8]) -> Outcome {
    let mut stdin = lock(to_hub);
    let stdin = stdin.as_mut().ok_or("the agent's lines have ended")?;
    Ok(stdin.write_all(lines)?)
}

/// Prints a line for the agent.
pub(crate) fn say(line: &Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn pass_jobs(jobs: impl BufRead, to_hub: &ToHub, answers: &Arc<Answers>) -> Outcome {
    let mut prepared = None;
    for line in jobs.lines() {
        let line = line?;
        match own_job(&line) {
            Some((id, job)) => say(&answer(id, take(&job, &mut prepared, to_hub, answers)))?,
            None => write(to_hub, format!("{line}\n").as_bytes())?,
        }
    }
    Ok(())
}

/// The id and the fields of a line for the player.
fn own_job(line: &str) -> Option<(u64, Value)> {
    let job: Value = serde_json::from_str(line).ok()?;
    let is_own = job.get("do")?.as_str()?.starts_with("load-");
    is_own.then_some((job.get("id")?.as_u64()?, job))
}

fn take(
    job: &Value,
    prepared: &mut Option<Prepared>,
    to_hub: &ToHub,
    answers: &Arc<Answers>,
) -> Outcome<Value> {
    let text =
        |name: &str| job.get(name).and_then(Value::as_str).ok_or_else(|| format!("the job lacks '{name}'"));
    if job.get("do").and_then(Value::as_str) == Some("load-prepare") {
        let ready = Prepared::new(text("schedule")?.as_ref(), text("spool")?.as_ref())?;
        let products = ready.products();
        *prepared = Some(ready);
        return Ok(json!({"products": products}));
    }
    let ready = prepared.take().ok_or("nothing is prepared; send load-prepare first")?;
    let window = job.get("window").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let (to_hub, answers) = (Arc::clone(to_hub), Arc::clone(answers));
    std::thread::spawn(move || {
        let done =
            ready.play(&to_hub, &answers, window).unwrap_or_else(|error| json!({"error": error.to_string()}));
        let mut event = json!({"event": "load-done"});
        if let (Some(event), Value::Object(done)) = (event.as_object_mut(), done) {
            event.extend(done);
        }
        let _ = say(&event);
    });
    Ok(json!({}))
}

fn answer(id: u64, result: Outcome<Value>) -> Value {
    let mut line =
        result.unwrap_or_else(|error| json!({"ok": false, "code": "load", "error": error.to_string()}));
    if let Some(fields) = line.as_object_mut() {
        fields.entry("ok").or_insert(json!(true));
        fields.insert("answer".to_owned(), json!(id));
    }
    line
}

fn pass_answers(mut from_hub: impl BufRead, answers: &Answers) -> Outcome {
    let mut line = String::new();
    loop {
        line.clear();
        if from_hub.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if !answers.take(&line) {
            let mut out = std::io::stdout().lock();
            out.write_all(line.as_bytes())?;
            out.flush()?;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_players_lines_are_kept() {
        assert_eq!(own_job(r#"{"id": 4, "do": "load-play", "window": 9}"#).unwrap().0, 4);
        for other in
            [r#"{"id": 4, "do": "ingest", "path": "load-play"}"#, "not json", r#"{"do": "load-play"}"#]
        {
            assert!(own_job(other).is_none(), "{other}");
        }
    }

    #[test]
    fn an_answer_has_the_form_of_the_nodes() {
        assert_eq!(answer(3, Ok(json!({"products": 2}))), json!({"answer": 3, "ok": true, "products": 2}));
        let refused = answer(4, Err("no".into()));
        assert_eq!(refused, json!({"answer": 4, "ok": false, "code": "load", "error": "no"}));
    }

    #[test]
    fn playing_needs_something_prepared() {
        let to_hub: ToHub = Arc::new(Mutex::new(None));
        let refused = take(&json!({"do": "load-play"}), &mut None, &to_hub, &Arc::new(Answers::default()));
        assert!(refused.unwrap_err().to_string().contains("load-prepare"));
    }
}
