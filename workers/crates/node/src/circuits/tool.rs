//! `downburst-node circuits`.
use std::process::ExitCode;

use clap::Subcommand;

/// The commands about circuits.
#[derive(Debug, Subcommand)]
pub enum CircuitTool {
    /// Try the parts of a circuit: tunnels, tags, shaping. Nothing is left behind.
    #[command(after_help = PROBE_HOST_EXAMPLES)]
    ProbeHost {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Runs a command.
pub fn run(tool: &CircuitTool) -> ExitCode {
    match tool {
        CircuitTool::ProbeHost { json } => probe_host(*json),
    }
}

/// Ends with 1 where circuits can't be made.
fn probe_host(json: bool) -> ExitCode {
    let found = super::describe_host();
    let needed = ["net_admin", "vxlan", "htb"];
    if json {
        println!("{found}");
    } else {
        for (part, ability) in found.as_object().into_iter().flatten() {
            let word = |name: &str| ability.get(name).and_then(|word| word.as_str()).unwrap_or_default();
            match ability.get("able").and_then(|able| able.as_bool()) {
                Some(true) => println!("{part}: yes"),
                _ => println!("{part}: no: {}; {}", word("sentence"), word("remedy")),
            }
        }
    }
    let able =
        |part: &&str| found.pointer(&format!("/{part}/able")).and_then(|able| able.as_bool()) == Some(true);
    ExitCode::from(u8::from(!needed.iter().all(able)))
}

const PROBE_HOST_EXAMPLES: &str = "Examples:
  downburst-node circuits probe-host
  downburst-node circuits probe-host --json

The exit code is 0 where tunnels and shaping work, else 1; tags are of use where the network knows VLANs.";
