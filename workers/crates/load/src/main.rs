//! Load for measurements, and the figures that prove what became of it.
//!
//! `fill` makes a log before its node starts. `agent` stands between an agent and its hub and plays a schedule of
//! products by the hub's own `ingest` lines, so that no slower language takes part. `stamps` reads logs of stopped
//! nodes, `receipts` what sites without a log told a hub. `probe` tells how late the machine itself was. `blast` and
//! `tls-fan-out` are peers: multicast at the limit of the machine without any repair, and today's way of a connection
//! for each site.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)] // A source of load is a shell: it reads the clock and has threads.

mod agent;
mod blast;
mod content;
mod fill;
mod ldm_receive;
mod play;
mod probe;
mod receipts;
mod schedule;
mod stamps;
mod tls_fan_out;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Why a command could not do its work, as a sentence.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Parser)]
#[command(
    name = "downburst-load",
    version,
    about = "Load for measurements of a hub and its sites",
    after_help = EXAMPLES
)]
enum Command {
    /// Append products to a feed's log while no node has it open; prints how many and how large.
    Fill(fill::Fill),
    /// Run a hub's node, pass the agent's lines through, and play schedules when a line asks for it.
    Agent {
        /// The node's command line.
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<String>,
    },
    /// Check every product of these logs and print its stamps: a line of JSON, then rows of six 64-bit integers.
    Stamps {
        /// A node's directory of logs.
        #[arg(required = true)]
        logs: PathBuf,
    },
    /// Print what sites stored by a hub's raw receipts: a line of JSON, then rows of seven 64-bit integers.
    Receipts {
        /// The directory of raw receipts of a hub that has ended.
        #[arg(required = true)]
        directory: PathBuf,
    },
    /// Ask an LDM server for products over several connections, count them, and keep nothing.
    LdmReceive(ldm_receive::LdmReceive),
    /// Sleep a millisecond at a time until stdin ends; print how much longer the sleeps were.
    Probe,
    /// Multicast a file in trains of datagrams, without any repair: what the machine can do at all.
    #[command(subcommand)]
    Blast(blast::Blast),
    /// Bring a file to each receiver over a TLS connection of its own, with its digest.
    #[command(subcommand)]
    TlsFanOut(tls_fan_out::TlsFanOut),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Fill(fill) => fill.run(),
        Command::Agent { command } => agent::run(&command),
        Command::Stamps { logs } => stamps::print(&logs),
        Command::Receipts { directory } => receipts::print(&directory),
        Command::LdmReceive(receive) => receive.run(),
        Command::Probe => probe::run(),
        Command::Blast(blast) => blast.run(),
        Command::TlsFanOut(fan_out) => fan_out.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("downburst-load: {error}");
            ExitCode::FAILURE
        }
    }
}

const EXAMPLES: &str = "Examples:
  downburst-load fill --log hub/data/log/NGRID --feed NGRID --products 100000 --bytes 2000
  downburst-load agent -- downburst-node hub
  downburst-load stamps site/log
  downburst-load receipts hub/data/receipts
  downburst-load ldm-receive --from 127.0.0.1:388 --feed NGRID --connections 8 --products 100000
  downburst-load blast receive --group 239.1.2.3:7400 --bytes 24000000 --file copy --seal --hash
  downburst-load blast send --group 239.1.2.3:7400 --file original --seal
  downburst-load tls-fan-out send --listen 10.0.0.1:7401 --certificate hub.der --receivers 7 --file original
  downburst-load tls-fan-out receive --from 10.0.0.1:7401 --certificate hub.der --file copy";
