//! `ldm ping`: checks whether a server answers, as `ldmping` does.
use std::io::{self, Write as _};
use std::time::Duration;

use downburst_clock::Clock;
use downburst_ldm6::{Probe, ProbeInput, ProbeOutput, Version};
use downburst_model::{Machine as _, Micros};

use super::wire::{self, Came};
use super::{Outcome, PingArguments, Stop};

pub(super) fn run(arguments: &PingArguments) -> Outcome {
    if !(arguments.timeout > 0.0 && arguments.timeout <= LONGEST_SECONDS) {
        return Err(Stop::BadUse(format!(
            "--timeout takes more than 0 and at most {LONGEST_SECONDS} seconds"
        )));
    }
    let within = Duration::from_secs_f64(arguments.timeout);
    let clock = Clock::start(0);
    let mut stream = wire::connect(&arguments.server, within)?;
    let connected = clock.monotonic();
    let until = Micros(u64::try_from(within.as_micros()).unwrap_or(u64::MAX));
    let mut probe = Probe::new(clock.now(), FIRST_XID);
    loop {
        while let Some(output) = probe.poll(clock.now()) {
            match output {
                ProbeOutput::Send(bytes) if wire::send(&mut stream, &bytes) => {}
                ProbeOutput::Send(_) => probe.handle(clock.now(), ProbeInput::Disconnected),
                ProbeOutput::Answers(version) => {
                    return said(arguments, version, connected, clock.monotonic().since(connected));
                }
                ProbeOutput::Ended(why) => {
                    return Err(Stop::Failed(format!("{} does not answer as LDM: {why}", arguments.server)));
                }
            }
        }
        if clock.monotonic() >= until {
            let seconds = arguments.timeout;
            return Err(Stop::Failed(format!("{} did not answer within {seconds} s", arguments.server)));
        }
        match wire::wait(&mut stream, clock.now(), Some(until)) {
            Came::Bytes(bytes) => probe.handle(clock.now(), ProbeInput::Received(bytes)),
            Came::End => probe.handle(clock.now(), ProbeInput::Disconnected),
            Came::Nothing => {}
        }
    }
}

fn said(arguments: &PingArguments, version: Version, connected: Micros, answered: Micros) -> Outcome {
    let mut out = io::stdout().lock();
    let (server, version) = (&arguments.server, version.number());
    if arguments.json {
        let told = serde_json::json!({
            "server": server, "version": version, "connect_us": connected.0, "answer_us": answered.0,
        });
        writeln!(out, "{told}")?;
    } else {
        let millis = |length: Micros| length.0 as f64 / 1e3;
        let (connect_ms, answer_ms) = (millis(connected), millis(answered));
        writeln!(
            out,
            "{server} answers LDM {version}: connected in {connect_ms:.1} ms, answer in {answer_ms:.1} ms"
        )?;
    }
    Ok(out.flush()?)
}

/// A call is answered within 60 s or never.
const LONGEST_SECONDS: f64 = 60.0;
const FIRST_XID: u32 = 1;
