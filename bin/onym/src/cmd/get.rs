//! `onym get`: fetch a segmented object.

use crate::cmd::cert;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::session;
use anyhow::Context as _;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use onym_client::blocking::Watch;
use onym_client::fetch::PipelineOptions;
use onym_client::window::{AimdOptions, CubicOptions, WindowLaw, WindowOptions};
use onym_client::{Anchors, FetchOptions, Find, Progress, Verify};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_wire::Name;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Fetch a file by its name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym get /example/film -o film.mkv
  onym get /example/film/v=1700000000000 > film.mkv
  onym get /example/film -o film.mkv --verify alice.ndncert --json
  onym get /example/film -o film.mkv --verify /alice
  onym get /alice/film -o film.mkv --anchor root.ndncert

The newest version is found by metadata (RDR), or else by whatever segment answers; a name that ends with
a version is fetched as it is. Objects of ndnputchunks, ndnd put, NDNts and python-ndn are understood.")]
pub(crate) struct Args {
    /// Name of the object, with or without version.
    name: Name,
    /// Where to write; without it, or with `-`, standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Take the name as the versioned name, whatever its last component.
    #[arg(long)]
    no_discovery: bool,
    /// Let caches answer with fresh segments only.
    #[arg(long)]
    fresh: bool,
    /// How segments are verified: integrity (digests), off, or whose key must have signed every
    /// segment: the file of a certificate, or the name of an identity, key or certificate of the
    /// key store.
    #[arg(long, value_name = "HOW", default_value = "integrity")]
    verify: String,
    /// Trust anchor: the file of a certificate, or a name in the key store. Every segment must be
    /// signed with a key whose identity is a prefix of the name and that a chain of certificates,
    /// fetched by their names, leads from to an anchor. May be given more than once.
    #[arg(long = "anchor", value_name = "CERT", conflicts_with = "verify")]
    anchors: Vec<String>,
    /// Law of the window.
    #[arg(long, value_enum, default_value_t = Law::Cubic, help_heading = "Pipeline")]
    pipeline: Law,
    /// Window of the fixed law, in segments.
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Pipeline")]
    window: u32,
    /// Initial window of the other laws, in segments.
    #[arg(long, value_name = "N", default_value_t = 2.0, help_heading = "Pipeline")]
    init_cwnd: f64,
    /// Slow-start threshold, in segments; without it unlimited.
    #[arg(long, value_name = "N", help_heading = "Pipeline")]
    init_ssthresh: Option<f64>,
    /// Lifetime of an Interest, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 4000, help_heading = "Pipeline")]
    lifetime: u64,
    /// Times a segment is asked for again.
    #[arg(long, value_name = "N", default_value_t = 15, help_heading = "Pipeline")]
    retries: u32,
    /// Do not slow down on congestion marks.
    #[arg(long, help_heading = "Pipeline")]
    ignore_marks: bool,
    /// No progress bar and no report.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Law {
    /// Always as many segments in flight as --window says.
    Fixed,
    /// Additive increase, multiplicative decrease.
    Aimd,
    /// CUBIC.
    Cubic,
}

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    bytes: u64,
    segments: u64,
    seconds: f64,
    goodput_bps: f64,
    interests: u64,
    retransmitted: u64,
    timeouts: u64,
    marks: u64,
    nacks: u64,
    window_cuts: u64,
    rtt_min_ms: Option<f64>,
    rtt_mean_ms: Option<f64>,
    rtt_max_ms: Option<f64>,
    unverified: u64,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let to_stdout = args.output.as_deref().is_none_or(|path| path == Path::new("-"));
    if cx.json && to_stdout {
        return Err(Failure::new(Exit::Usage, "--json would mix the report with the content")
            .next("say where the content goes: -o FILE")
            .into());
    }
    let options = options(&args)?;
    let anchors = args.anchors.iter().map(|what| certificate("--anchor", what));
    let anchors = anchors.collect::<anyhow::Result<Vec<_>>>()?;
    let anchors = (!anchors.is_empty()).then(|| Arc::new(Anchors::new(anchors)));
    let mut client = session::open(cx)?;
    let mut target = Target::open(args.output.as_deref().filter(|_| !to_stdout))?;
    let bar = bar(args.quiet);
    let start = Instant::now();
    let mut watch = |watch: Watch<'_>| match watch {
        Watch::Progress(progress) => show(&bar, progress),
        Watch::Notice(notice) => {
            bar.suspend(|| eprintln!("onym: {}", session::notice_text(&notice)))
        }
    };
    let fetched = match anchors {
        None => client.fetch(args.name, options, target.sink(), &mut watch),
        Some(anchors) => {
            client.fetch_trusted(&args.name, &options, &anchors, target.sink(), &mut watch)
        }
    };
    bar.finish_and_clear();
    let progress = fetched.map_err(session::failure)?;
    target.finish()?;
    let report = report(&progress, start.elapsed());
    if to_stdout || args.quiet {
        if !args.quiet && io::stderr().is_terminal() {
            eprint!("{}", text(&report));
        }
        return if cx.json { cx.print(&report, text) } else { Ok(()) };
    }
    cx.print(&report, text)
}

fn options(args: &Args) -> anyhow::Result<FetchOptions> {
    let window = WindowOptions {
        initial: args.init_cwnd.max(1.0),
        threshold: args.init_ssthresh.unwrap_or(f64::INFINITY),
        ..WindowOptions::default()
    };
    let law = match args.pipeline {
        Law::Fixed => WindowLaw::Fixed(args.window),
        Law::Aimd => WindowLaw::Aimd(AimdOptions { window, ..AimdOptions::default() }),
        Law::Cubic => WindowLaw::Cubic(CubicOptions { window, ..CubicOptions::default() }),
    };
    let pipeline = PipelineOptions {
        law,
        lifetime: Duration::from_millis(args.lifetime),
        retries_max: args.retries,
        ignore_marks: args.ignore_marks,
        ..PipelineOptions::default()
    };
    let verify = match args.verify.as_str() {
        "integrity" => Verify::Integrity,
        "off" => Verify::Off,
        what => {
            let certificate = certificate("--verify", what)?;
            check_dates(&certificate, unix_now_ms())?;
            Verify::With(Arc::new(certificate.public_key().clone()))
        }
    };
    let find = if args.no_discovery { Find::Nothing } else { Find::Auto };
    Ok(FetchOptions { pipeline, find, must_be_fresh: args.fresh, verify })
}

/// A key is believed while its certificate is valid. Anchors are checked where a chain reaches them.
fn check_dates(certificate: &Certificate, now_ms: u64) -> anyhow::Result<()> {
    certificate.check_valid_at(now_ms).map_err(|why| {
        Failure::new(Exit::Failed, "--verify: the certificate does not count")
            .why(why)
            .next("take one that is valid now, or `onym cert self-sign NAME` makes one of your own key")
            .into()
    })
}

/// The certificate that an option names: a file, or something in the key store.
fn certificate(option: &str, what: &str) -> anyhow::Result<Certificate> {
    let wrong = |why: String| {
        let words = if option == "--verify" { "integrity, off, " } else { "" };
        Failure::new(Exit::Usage, format!("{option}: {what} is no certificate")).why(why).next(
            format!("write {words}a file (`onym cert export NAME -o FILE`) or a name in `onym cert list`"),
        )
    };
    let path = Path::new(what);
    if path.exists() || !what.starts_with('/') {
        let text = fs::read(path).map_err(|e| wrong(e.to_string()))?;
        let text = String::from_utf8(text).map_err(|_| wrong("the file is no text".into()))?;
        return Ok(Certificate::from_text(&text).map_err(|e| wrong(e.to_string()))?);
    }
    let name: Name = what.parse().map_err(|e: onym_wire::name::UriError| wrong(e.to_string()))?;
    let store = KeyStore::of_user().context("cannot open the key store")?;
    cert::find(&store, Some(name.as_ref())).map_err(|e| wrong(e.to_string()).into())
}

/// Where the content goes. A file appears under its name only when it is whole.
enum Target {
    Stdout(io::Stdout),
    /// Something that exists and is no regular file, such as a pipe or /dev/null.
    Special(BufWriter<File>),
    File {
        file: BufWriter<File>,
        part: PathBuf,
        path: PathBuf,
    },
}

const BUFFER: usize = 256 << 10;

impl Target {
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(io::stdout())) };
        let cannot = || format!("cannot write {}", path.display());
        if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let file = File::options().write(true).open(path).with_context(cannot)?;
            return Ok(Self::Special(BufWriter::with_capacity(BUFFER, file)));
        }
        let name = path.file_name().with_context(cannot)?.to_string_lossy().into_owned();
        let part = path.with_file_name(format!(".{name}.part-{}", std::process::id()));
        let file = File::create(&part).with_context(cannot)?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self::File { file, part, path: path.to_owned() })
    }

    fn sink(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(out) => out,
            Self::Special(file) | Self::File { file, .. } => file,
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        if let Self::File { part, path, .. } = &mut self {
            fs::rename(&*part, &*path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            part.clear();
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Self::File { part, .. } = self
            && !part.as_os_str().is_empty()
        {
            // A half file is of no use to anybody.
            let _ = fs::remove_file(part);
        }
    }
}

fn bar(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {percent:>3}% {pos}/{len} segments  {msg}";
    let style =
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_length(progress.segments_total.unwrap_or(0));
    bar.set_position(progress.segments);
    let rate = progress.bytes as f64 * 8.0 / bar.elapsed().as_secs_f64().max(1e-3);
    bar.set_message(format!("{}  {}", human::bytes(progress.bytes), human::bits_per_second(rate)));
}

fn report(progress: &Progress, took: Duration) -> Report {
    let counters = progress.counters;
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    Report {
        name: progress.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        bytes: progress.bytes,
        segments: progress.segments,
        seconds: took.as_secs_f64(),
        goodput_bps: progress.bytes as f64 * 8.0 / took.as_secs_f64().max(1e-9),
        interests: counters.sent,
        retransmitted: counters.retransmitted,
        timeouts: counters.timeouts,
        marks: counters.marks,
        nacks: counters.nacks,
        window_cuts: counters.cuts,
        rtt_min_ms: progress.rtt.map(|r| ms(r.0)),
        rtt_mean_ms: progress.rtt.map(|r| ms(r.1)),
        rtt_max_ms: progress.rtt.map(|r| ms(r.2)),
        unverified: progress.unverified,
    }
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} in {} segments, {:.3} s, {}\n{} Interests, {} retransmitted, {} timeouts, {} marks, {} Nacks",
        report.name,
        human::bytes(report.bytes),
        report.segments,
        report.seconds,
        human::bits_per_second(report.goodput_bps),
        report.interests,
        report.retransmitted,
        report.timeouts,
        report.marks,
        report.nacks,
    );
    if let (Some(min), Some(mean), Some(max)) =
        (report.rtt_min_ms, report.rtt_mean_ms, report.rtt_max_ms)
    {
        text += &format!("\nround trip {min:.3} / {mean:.3} / {max:.3} ms (least, mean, greatest)");
    }
    if report.unverified > 0 {
        text += &format!(
            "\n{} segments are signed with a key that nobody checked: see --verify and --anchor",
            report.unverified
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_counts_between_its_dates() {
        let key = onym_crypto::PrivateKey::generate(onym_crypto::KeyType::Ed25519).unwrap();
        let name: Name = "/alice/KEY/1".parse().unwrap();
        let now = 1_700_000_000_000;
        let validity = onym_crypto::cert::validity_of_days(now, 1);
        let certificate = Certificate::self_signed_for(name.as_ref(), &key, now, validity).unwrap();
        check_dates(&certificate, now + 1000).unwrap();
        let days = |n: u64| now + n * 86_400_000;
        let refused = check_dates(&certificate, days(2)).unwrap_err();
        assert!(format!("{refused:?}").contains("does not count"), "{refused:?}");
    }

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let files = || fs::read_dir(directory.path()).unwrap().count();
        let mut target = Target::open(Some(&path)).unwrap();
        target.sink().write_all(b"half").unwrap();
        drop(target);
        assert_eq!(files(), 0);
        let mut target = Target::open(Some(&path)).unwrap();
        target.sink().write_all(b"whole").unwrap();
        target.sink().flush().unwrap();
        target.finish().unwrap();
        assert_eq!((files(), fs::read(&path).unwrap()), (1, b"whole".to_vec()));
    }
}
