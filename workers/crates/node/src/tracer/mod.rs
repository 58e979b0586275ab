//! `downburst-node tracer`: samples of the TCP connections of any process on this host, in a ring, and their limits.
pub(crate) mod file;
mod processes;
mod reading;
mod recording;
#[cfg(test)]
mod tests;
pub(crate) mod ticks;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use downburst_model::SiteName;
use downburst_tracer::{Connection, Prefix, Room, Sample, Selection, Table, TracerAnswer, Variable};

/// The connections to record or to read, and the output.
#[derive(Args, Debug)]
pub struct TracerArguments {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    output: Output,
    /// The file for the samples. The oldest give way to the newest; a later start goes on in the same file.
    #[arg(long, value_name = "FILE", default_value = "tracer.ring")]
    ring: PathBuf,
    /// The length of a new file: 512 bytes to 4 GiB, 256 for each sample.
    #[arg(long, value_name = "BYTES", default_value = None, conflicts_with = "read")]
    ring_bytes: Option<u64>,
    /// The time to record; without it, until Ctrl-C. With --read, the newest so many seconds of the file.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Milliseconds between two looks at the sockets.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(10..=2_000))]
    #[arg(conflicts_with = "read")]
    every_ms: u64,
    /// Record nothing: read the file, also while another process records into it. A node's file is node/tracer.ring in
    /// its data directory.
    #[arg(long)]
    read: bool,
}

// The choice of connections.
#[derive(Args, Debug)]
struct Chosen {
    /// Connections with one of these ports at either end.
    #[arg(long, value_name = "PORT,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Connections with an address at either end that is one of these, or begins so: 192.0.2.7, 2001:db8::/32.
    #[arg(long, value_name = "PREFIX,...", value_delimiter = ',')]
    address: Vec<Prefix>,
    /// Connections of these processes, by id or name. Needs the right to see their files.
    #[arg(long, value_name = "PID|NAME,...", value_delimiter = ',', conflicts_with = "read")]
    process: Vec<String>,
    /// Connections to this site, in a node's file.
    #[arg(long, value_name = "NAME", requires = "read")]
    site: Option<String>,
}

// The form of the output.
#[derive(Args, Debug)]
struct Output {
    /// Write the samples as lines with commas, as they are taken; "-" is standard output.
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,
    /// The variables to write, named as in the kernel's struct tcp_info. The file has all.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    variables: Vec<String>,
    /// Write the growth of counters, not their values.
    #[arg(long)]
    deltas: bool,
    /// Print the limits as JSON, with samples.
    #[arg(long)]
    json: bool,
    /// The most samples of each connection in the JSON; all are judged.
    #[arg(long, value_name = "NUMBER", default_value_t = 600, value_parser = points)]
    points: usize,
}

/// Records or reads: 0 if all went well, 1 after a failure, 2 after bad use.
pub async fn run(arguments: TracerArguments) -> ExitCode {
    let outcome = async {
        let wanted = Task::parse(&arguments)?;
        let answer = if arguments.read { reading::read(wanted)? } else { recording::record(wanted).await? };
        Ok(print(&arguments.output, &answer)?)
    };
    match outcome.await {
        Ok(()) | Err(Stop::NobodyReads) => ExitCode::SUCCESS,
        Err(Stop::Failed(sentence)) => told(1, &sentence),
        Err(Stop::BadUse(sentence)) => told(2, &sentence),
    }
}

/// The arguments, checked.
struct Task {
    selection: Selection,
    processes: Vec<processes::Process>,
    variables: Vec<Variable>,
    points: usize,
    csv: Option<(PathBuf, Table)>,
    ring: PathBuf,
    room: Option<Room>,
    seconds: Option<f64>,
    every_ms: u64,
}

impl Task {
    fn parse(arguments: &TracerArguments) -> Result<Self, Stop> {
        let TracerArguments { chosen, output, ring, ring_bytes, seconds, every_ms, .. } = arguments;
        let variables = Variable::chosen(&output.variables).map_err(Stop::BadUse)?;
        let site = chosen.site.as_deref().map(SiteName::parse).transpose();
        let table = Table::new(variables.clone(), output.deltas);
        Ok(Self {
            selection: Selection {
                ports: chosen.port.iter().copied().collect(),
                addresses: chosen.address.clone(),
                site: site.map_err(|error| Stop::BadUse(error.to_string()))?,
            },
            processes: chosen.process.iter().map(|text| processes::Process::parse(text)).collect(),
            variables,
            points: output.points,
            csv: output.csv.clone().map(|file| (file, table)),
            ring: ring.clone(),
            room: ring_bytes.map(room).transpose()?,
            seconds: *seconds,
            every_ms: *every_ms,
        })
    }
}

/// Why the tool ends early.
#[derive(Debug)]
enum Stop {
    BadUse(String),
    Failed(String),
    /// The reader of the output went, as `head` does.
    NobodyReads,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Failed(format!("the output can't be written: {error}; check where it goes")),
        }
    }
}

/// The lines of samples, on their way to a file.
struct Lines {
    table: Table,
    out: Box<dyn io::Write>,
}

impl Lines {
    /// Writes the head.
    fn begin((file, table): (PathBuf, Table)) -> Result<Self, Stop> {
        let mut out: Box<dyn io::Write> = if is_stdout(&file) {
            Box::new(io::stdout())
        } else {
            let created = std::fs::File::create(&file);
            let unable = |error| format!("{} can't be written: {error}; name another --csv", file.display());
            Box::new(created.map_err(|error| Stop::Failed(unable(error)))?)
        };
        writeln!(out, "{}", table.head())?;
        Ok(Self { table, out: Box::new(io::BufWriter::new(out)) })
    }

    fn add(&mut self, connection: &Connection, sample: &Sample) -> io::Result<()> {
        self.table.line(connection, sample).map_or(Ok(()), |line| writeln!(self.out, "{line}"))
    }
}

/// Lines of samples on standard output leave the limits to standard error.
fn print(output: &Output, answer: &TracerAnswer) -> io::Result<()> {
    let to_stderr = output.csv.as_ref().is_some_and(|file| is_stdout(file));
    let mut out: Box<dyn io::Write> =
        if to_stderr { Box::new(io::stderr()) } else { Box::new(io::stdout().lock()) };
    if output.json {
        return writeln!(out, "{}", serde_json::to_string(answer)?);
    }
    answer.lines().iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn room(bytes: u64) -> Result<Room, Stop> {
    Room::of_bytes(bytes).ok_or_else(|| {
        Stop::BadUse(format!(
            "--ring-bytes {bytes} is not within 512 bytes and 4 GiB; write 67108864, for example"
        ))
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|seconds| (0.1..=MOST_SECONDS).contains(seconds));
    found.ok_or_else(|| format!("write a number of seconds between 0.1 and {MOST_SECONDS}"))
}

fn points(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|points| (2..=MOST_POINTS).contains(points));
    found.ok_or_else(|| format!("write a number between 2 and {MOST_POINTS}"))
}

/// Names the failure of `sock_diag`.
pub(crate) fn no_report(error: &dyn std::fmt::Display) -> String {
    format!("the kernel does not report sockets: {error}; load its module (modprobe tcp_diag)")
}

fn told(code: u8, sentence: &str) -> ExitCode {
    eprintln!("downburst-node: {sentence}");
    ExitCode::from(code)
}

const MOST_SECONDS: f64 = 31_536_000.0;
const MOST_POINTS: usize = 20_000;

/// Examples for the command line.
pub const EXAMPLES: &str = "Examples:
  downburst-node tracer --port 5001 --seconds 30
  downburst-node tracer --process 4711 --address 192.0.2.0/24 --ring-bytes 1000000 --csv samples.csv
  downburst-node tracer --process pqact,ldmd --variables bytes_acked,total_retrans --deltas --csv -
  downburst-node tracer --read --ring tracer.ring --port 5001 --seconds 60
  downburst-node tracer --read --ring /var/lib/downburst/node/tracer.ring --site unl.edu --csv unl.csv

At the end, or with --read immediately, the limits of each connection are printed with their share of the time, and
stalls.
Connections of another network namespace: nsenter --net=/proc/PID/ns/net downburst-node tracer ...";
