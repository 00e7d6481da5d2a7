//! `onym-testkit --subject core [FILE…]`: runs packet scripts and prints one line for each.

use anyhow::{Context, Result, bail};
use onym_testkit::daemon::Daemon;
use onym_testkit::deviations::Deviations;
use onym_testkit::foreign::Foreign;
use onym_testkit::in_process::InProcess;
use onym_testkit::kernel::Kernel;
use onym_testkit::script::Script;
use onym_testkit::socket::{Reach, control};
use onym_testkit::subject::Bench;
use onym_testkit::{core, files, index, report};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "onym-testkit [--subject SUBJECT] [OPTION…] [FILE…]
onym-testkit --index

Runs packet scripts (all of spec/conformance/pull when no FILE is given), prints one line for each
and a summary; exits with 1 when one failed.

  --subject core         the forwarding core in memory, in virtual time (default)
  --subject node         a node in this process for each script, behind sockets on loopback
  --subject daemon       `onym daemon`, started for each script (the binary beside this, or ONYM_BIN)
  --subject kernel       the kernel stack (nnet.ko) of this network namespace; with --threads 1
  --subject unix:PATH    a running forwarder, by its Unix socket; scripts for any forwarder only
  --subject udp:ADDR     the same by UDP alone; routes by /localhop/nfd/rib/register of each face
  --udp ADDR             with unix: its UDP listener; default 127.0.0.1:6363
  --tcp ADDR             with unix: its TCP listener; default none
  --deviations NAME      known deviations, spec/conformance/deviations/NAME.toml
  --settle MS            time given to the forwarder to digest what a face sent; default 10
  --shards N             with daemon: shards where a script does not say; default 1
  --slow                 with daemon: also scripts that wait longer than two seconds
  --factor N             stretches all waits; default 1
  --pause MS             with node: waited before each packet, to find scripts that a slow machine fails
  --brief                prints failures, deviations and the summary only
  --threads N            scripts at once; default 8
  --index                print spec/conformance/README.md
";

struct Args {
    subject: String,
    udp: SocketAddr,
    tcp: Option<SocketAddr>,
    deviations: Option<String>,
    settle_ms: u64,
    shards: usize,
    slow: bool,
    factor: u32,
    brief: bool,
    pause_ms: u64,
    threads: usize,
    files: Vec<PathBuf>,
    index: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self {
            subject: "core".into(),
            udp: SocketAddr::from(([127, 0, 0, 1], 6363)),
            tcp: None,
            deviations: None,
            settle_ms: 10,
            shards: 1,
            slow: false,
            factor: 1,
            brief: false,
            pause_ms: 0,
            threads: 8,
            files: Vec::new(),
            index: false,
        }
    }
}

fn args() -> Result<Option<Args>> {
    let mut args = Args::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} requires a value"));
        match word.as_str() {
            "--subject" => args.subject = value()?,
            "--udp" => args.udp = value()?.parse().context("--udp wants address:port")?,
            "--tcp" => args.tcp = Some(value()?.parse().context("--tcp wants address:port")?),
            "--deviations" => args.deviations = Some(value()?),
            "--settle" => args.settle_ms = value()?.parse().context("--settle wants a number")?,
            "--shards" => args.shards = value()?.parse().context("--shards wants a number")?,
            "--slow" => args.slow = true,
            "--pause" => args.pause_ms = value()?.parse().context("--pause wants a number")?,
            "--brief" => args.brief = true,
            "--factor" => args.factor = value()?.parse().context("--factor wants a number")?,
            "--threads" => args.threads = value()?.parse().context("--threads wants a number")?,
            "--index" => args.index = true,
            "--help" | "-h" => return Ok(None),
            flag if flag.starts_with('-') => bail!("unknown option {flag}; see --help"),
            file => args.files.push(file.into()),
        }
    }
    Ok(Some(args))
}

fn bench(args: &Args) -> Result<Box<dyn Bench>> {
    let reach = match args.subject.split_once(':') {
        None if args.subject == "core" => return Ok(Box::new(core::Core::default())),
        None if args.subject == "daemon" => {
            let daemon = Daemon::find().map_err(anyhow::Error::msg)?;
            let (shards, factor, slow) = (args.shards, args.factor, args.slow);
            return Ok(Box::new(Daemon { shards, factor, slow, ..daemon }));
        }
        None if args.subject == "node" => {
            return Ok(Box::new(InProcess {
                shards: args.shards,
                slow: args.slow,
                pause_ms: args.pause_ms,
            }));
        }
        None if args.subject == "kernel" => return Ok(Box::new(Kernel::new(args.factor))),
        Some(("unix", path)) => {
            Reach { unix: Some(path.into()), udp: args.udp, tcp: args.tcp, ws: None }
        }
        Some(("udp", addr)) => {
            let udp = addr.parse().context("udp: wants address:port")?;
            Reach { unix: None, udp, tcp: None, ws: None }
        }
        _ => bail!(
            "unknown subject {}; allowed: core, node, daemon, kernel, unix:PATH, udp:ADDR",
            args.subject
        ),
    };
    let run = control::now_ms();
    Ok(Box::new(Foreign::new(reach, args.factor, args.settle_ms, run)))
}

fn main() -> Result<ExitCode> {
    let Some(args) = args()? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let folder =
        std::env::var_os("ONYM_CONFORMANCE").map_or_else(files::conformance, PathBuf::from);
    let loaded = if args.files.is_empty() {
        files::load_all(&folder.join("pull"))
    } else {
        files::load(&args.files)
    };
    let scripts = match loaded {
        Ok(scripts) => scripts,
        Err(errors) => {
            for error in &errors {
                eprintln!("{error}");
            }
            bail!("{} scripts cannot be used", errors.len());
        }
    };
    if args.index {
        let sections = std::fs::read_to_string(folder.join("sections.txt"))?;
        print!("{}", index::index(&scripts, &index::sections(&sections)));
        return Ok(ExitCode::SUCCESS);
    }
    let known = match &args.deviations {
        None => Deviations::default(),
        Some(name) => {
            let path = folder.join("deviations").join(format!("{name}.toml"));
            Deviations::read(&path).map_err(anyhow::Error::msg)?
        }
    };
    let forbidden = |script: &Script| known.forbids(&script.name).map(str::to_owned);
    let bench = bench(&args)?;
    let mut report = report::run_but(bench.as_ref(), &scripts, args.threads, &forbidden);
    let notes = known.apply(&mut report);
    print!("{}{notes}", if args.brief { report.remarks() } else { report.lines() });
    println!("{}", report.summary());
    Ok(if report.counts().1 == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
