//! `onym get`: fetch a segmented object.

mod opened;
mod range;

use crate::cmd::cert;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::schema;
use crate::secrecy::Whose;
use crate::session;
use crate::stop;
use crate::target::Target;
use anyhow::Context as _;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use onym_client::blocking::Watch;
use onym_client::fetch::{FetchBounds, PipelineOptions};
use onym_client::window::{AimdOptions, CubicOptions, WindowLaw, WindowOptions};
use onym_client::{FetchOptions, Find, Progress, Schema, Verify};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_wire::Name;
use opened::{Plan, Take};
use range::Octets;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Fetch a file by its name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym get /example/film -o film.mkv
  onym get /example/film/v=1700000000000 > film.mkv
  onym get /example/film --range 1000000-1999999 > second-megabyte
  onym get /example/film -o film.mkv --verify alice.ndncert --json
  onym get /example/film -o film.mkv --verify /alice
  onym get /alice/film -o film.mkv --anchor root.ndncert
  onym get /alice/film -o film.mkv --anchor root.ndncert --trust site.lvs
  onym get /alice/film -o film.mkv --anchor root.ndncert --for /alice/NAC/friends

The newest version is found by metadata (RDR), or else by whatever segment answers; a name that ends with
a version is fetched as it is. What is encrypted for a group (`onym put --for`) is decrypted with the keys
of the key store, when --verify, --anchor or --trust say who must have signed it. Objects of ndnputchunks, ndnd put, NDNts and python-ndn are understood.")]
pub(crate) struct Args {
    /// Name of the object, with or without version.
    name: Name,
    /// Where to write; without it, or with `-`, standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Fetch these octets only: FIRST-LAST, counted from 0, FIRST- for all from there, -N for the last
    /// N. The metadata of the object says in which segments they are.
    #[arg(
        long,
        value_name = "OCTETS",
        conflicts_with = "no_discovery",
        allow_hyphen_values = true
    )]
    range: Option<Octets>,
    /// Take the name as the versioned name, whatever its last component.
    #[arg(long)]
    no_discovery: bool,
    /// Let caches answer with fresh segments only.
    #[arg(long)]
    fresh: bool,
    /// How segments are verified: integrity (digests), off, or whose key must have signed every
    /// segment: the file of a certificate, or the name of an identity, key or certificate of the
    /// key store.
    #[arg(long, value_name = "HOW", default_value = "integrity", conflicts_with = "trust")]
    verify: String,
    /// Trust anchor: the file of a certificate, or a name in the key store. Every segment must be
    /// signed with a key whose identity is a prefix of the name and that a chain of certificates,
    /// fetched by their names, leads from to an anchor. May be given more than once.
    #[arg(long = "anchor", value_name = "CERT", conflicts_with = "verify")]
    anchors: Vec<String>,
    #[command(flatten)]
    schema: schema::Options,
    /// Largest object that is taken, in octets: a number, or one with k, M, G or T; `none` for no
    /// bound. A segment counts as 64 octets at least.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = human::parse_size)]
    size_max: u64,
    /// Follow metadata that leads outside the name asked for, although nobody verified it. What
    /// --verify or --anchor vouch for is followed without it.
    #[arg(long)]
    follow: bool,
    /// Take only what is encrypted for this group, /PREFIX/NAC/DATASET.
    #[arg(long = "for", value_name = "GROUP", conflicts_with = "encrypted")]
    group: Option<Name>,
    /// Write encrypted content as it is.
    #[arg(long)]
    encrypted: bool,
    /// Congestion control of the window.
    #[arg(long, value_enum, default_value_t = Law::Cubic, help_heading = "Pipeline")]
    pipeline: Law,
    /// Window of `fixed`, in segments.
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Pipeline")]
    window: u32,
    /// Initial window of `aimd` and `cubic`, in segments.
    #[arg(long, value_name = "N", default_value_t = 2.0, help_heading = "Pipeline")]
    init_cwnd: f64,
    /// Slow-start threshold, in segments; without it unlimited.
    #[arg(long, value_name = "N", help_heading = "Pipeline")]
    init_ssthresh: Option<f64>,
    /// Lifetime of an Interest, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 4000, help_heading = "Pipeline")]
    lifetime: u64,
    /// How often a segment is requested again.
    #[arg(long, value_name = "N", default_value_t = 15, help_heading = "Pipeline")]
    retries: u32,
    /// Do not slow down on congestion marks.
    #[arg(long, help_heading = "Pipeline")]
    ignore_marks: bool,
    /// Print no progress bar and no report.
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

/// A shorter time without any segment is not worth a line.
const GAP_TOLD_MS: f64 = 200.0;

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
    /// Longest time between two segments that came.
    gap_max_ms: f64,
    unverified: u64,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let to_stdout = args.output.as_deref().is_none_or(|path| path == Path::new("-"));
    if cx.json && to_stdout {
        return Err(Failure::new(
            Exit::Usage,
            "with --json the report would be mixed with the content on standard output",
        )
        .next("write the content to a file: -o FILE")
        .into());
    }
    let options = options(&args)?;
    let anchors = args.anchors.iter().map(|what| certificate("--anchor", what));
    let anchors = anchors.collect::<anyhow::Result<Vec<_>>>()?;
    let whose = whose(&args, anchors)?;
    let group = args.group.clone();
    let opened = if args.encrypted { Take::AsItIs } else { Take::Opened(group) };
    let mut plan = Plan::new(args.name.clone(), options, whose, opened)?;
    let mut client = session::open(cx)?;
    if let Some(octets) = args.range {
        plan.narrow(&mut client, octets)?;
    }
    let mut target = Target::open(args.output.as_deref().filter(|_| !to_stdout))?;
    if matches!(target, Target::File(_)) {
        // So that no half file is left; what is written elsewhere ends as any program does.
        client.stop_when(stop::on_signal()?.flag());
    }
    let bar = bar(args.quiet);
    let start = Instant::now();
    let mut watch = |watch: Watch<'_>| match watch {
        Watch::Progress(progress) => show(&bar, progress),
        Watch::Notice(notice) => bar.suspend(|| {
            crate::output::tell(format_args!("onym: {}", session::notice_text(&notice)))
        }),
    };
    let fetched = plan.run(&mut client, target.sink(), &mut watch);
    bar.finish_and_clear();
    let progress = fetched?;
    target.finish()?;
    let report = report(&progress, start.elapsed());
    if to_stdout || args.quiet {
        if !args.quiet && io::stderr().is_terminal() {
            crate::output::tell(text(&report));
        }
        return if cx.json { cx.print(&report, text) } else { Ok(()) };
    }
    cx.print(&report, text)
}

/// Who must have signed every segment; nobody when only damage is looked for.
fn whose(args: &Args, anchors: Vec<Certificate>) -> anyhow::Result<Option<Whose>> {
    if !matches!(args.verify.as_str(), "integrity" | "off") {
        let certificate = certificate("--verify", &args.verify)?;
        return Ok(Some(Whose::Key(Box::new(certificate.public_key().clone()))));
    }
    believed(&args.schema, anchors)
}

/// By whose word something is believed: the rules of `--trust`, or the hierarchy under `--anchor`.
pub(super) fn believed(
    options: &schema::Options,
    anchors: Vec<Certificate>,
) -> anyhow::Result<Option<Whose>> {
    Ok(believed_by(options, anchors)?.map(Whose::Schema))
}

/// The same as a schema.
pub(super) fn believed_by(
    options: &schema::Options,
    anchors: Vec<Certificate>,
) -> anyhow::Result<Option<Arc<Schema>>> {
    let not_taken = |error| {
        Failure::new(Exit::Failed, "the schema does not accept the trust anchor").why(error)
    };
    let Some((loaded, own)) = options.load()? else {
        if anchors.is_empty() {
            return Ok(None);
        }
        let schema = Schema::hierarchy(anchors).map_err(not_taken)?;
        return Ok(Some(Arc::new(schema)));
    };
    let anchors: Vec<Certificate> = anchors.into_iter().chain(own).collect();
    if anchors.is_empty() && !loaded.policy.allows_anything() {
        return Err(Failure::new(Exit::Usage, "--trust has no trust anchor")
            .next("add one: --anchor CERT")
            .into());
    }
    let schema = Schema::new(loaded.policy, anchors).map_err(not_taken)?;
    if let Some(revoked) = options.revoked()? {
        schema.set_revoked(revoked);
    }
    schema.set_records(options.records());
    Ok(Some(Arc::new(schema)))
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
    let bounds =
        FetchBounds { size_max: args.size_max, follow: args.follow, ..FetchBounds::default() };
    let must_be_fresh = args.fresh;
    Ok(FetchOptions { pipeline, find, must_be_fresh, verify, bounds, ..FetchOptions::default() })
}

/// A key is believed while its certificate is valid. Anchors are checked where a chain reaches them.
fn check_dates(certificate: &Certificate, now_ms: u64) -> anyhow::Result<()> {
    certificate.check_valid_at(now_ms).map_err(|why| {
        Failure::new(Exit::Failed, "--verify: the certificate cannot be used")
            .why(why)
            .next("use one that is valid now; `onym cert self-sign NAME` creates one for your own key")
            .into()
    })
}

/// The certificate that an option names: a file, or something in the key store.
pub(super) fn certificate(option: &str, what: &str) -> anyhow::Result<Certificate> {
    let wrong = |why: String| {
        let words = if option == "--verify" { "integrity, off, " } else { "" };
        Failure::new(Exit::Usage, format!("{option}: {what} is not a certificate")).why(why).next(
            format!("give {words}a file (`onym cert export NAME -o FILE`) or a name from `onym cert list`"),
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
        gap_max_ms: ms(progress.gap),
        unverified: progress.unverified,
    }
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} in {}, {:.3} s, {}\n{}, {} retransmitted, {}, {}, {}",
        report.name,
        human::bytes(report.bytes),
        human::count(report.segments, "segment"),
        report.seconds,
        human::bits_per_second(report.goodput_bps),
        human::count(report.interests, "Interest"),
        report.retransmitted,
        human::count(report.timeouts, "timeout"),
        human::count(report.marks, "mark"),
        human::count(report.nacks, "Nack"),
    );
    if let (Some(min), Some(mean), Some(max)) =
        (report.rtt_min_ms, report.rtt_mean_ms, report.rtt_max_ms)
    {
        text += &format!("\nround trip {min:.3} / {mean:.3} / {max:.3} ms (least, mean, greatest)");
    }
    if report.gap_max_ms >= GAP_TOLD_MS {
        text += &format!("\nnothing came for {:.3} s once", report.gap_max_ms / 1e3);
    }
    if report.unverified > 0 {
        text += &format!(
            "\n{} signed with a key that nobody checked: see --verify and --anchor",
            human::count(report.unverified, "segment")
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
        assert!(format!("{refused:?}").contains("cannot be used"), "{refused:?}");
    }
}
