//! `onym face`: the faces of the node.

use crate::cmd::kernel;
use crate::cmd::nfdc::{self, Format};
use crate::exit::{Exit, Failure};
use crate::human;
use crate::node_words as words;
use crate::output::{Context, write_line};
use crate::plain;
use crate::session;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::mgmt::{
    ControlParameters, ControlResponse, FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS,
    FACE_RELIABILITY, FaceQueryFilter, FaceStatus, Persistency,
};
use serde::Serialize;

/// List, create, change and destroy faces.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym face list
  onym face create udp4://192.0.2.1:6363
  onym face create udp://router.example --persistency permanent --reliability on
  onym face update 263 --congestion-marking off
  onym face show 263
  onym face destroy udp4://192.0.2.1:6363")]
pub(crate) struct Args {
    /// The kernel stack of this network namespace (nnet.ko) instead of a node.
    #[arg(long, global = true)]
    kernel: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List faces, all or those that match.
    #[command(after_help = "Example:\n  onym face list --scheme udp4")]
    List {
        /// Only faces whose remote URI is this one.
        #[arg(long, value_name = "URI")]
        remote: Option<String>,
        /// Only faces whose local URI is this one.
        #[arg(long, value_name = "URI")]
        local: Option<String>,
        /// Only faces with this scheme, such as udp4.
        #[arg(long, value_name = "TEXT")]
        scheme: Option<String>,
        /// How the faces are printed, without --json.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Show one face with its counters.
    #[command(after_help = "Example:\n  onym face show 263")]
    Show {
        /// Face id, or remote URI.
        face: String,
    },
    /// Create a face; one that exists is kept.
    #[command(after_help = "Example:\n  onym face create udp://router.example")]
    Create {
        /// Remote URI, such as udp4://192.0.2.1:6363; host names are resolved.
        uri: String,
        /// Local URI, for Ethernet: dev://eth0.
        #[arg(long, value_name = "URI")]
        local: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change a face.
    #[command(after_help = "Example:\n  onym face update 263 --persistency permanent")]
    Update {
        /// Face id, or remote URI.
        face: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Destroy a face and its routes.
    #[command(after_help = "Example:\n  onym face destroy 263")]
    Destroy {
        /// Face id, or remote URI.
        face: String,
    },
}

/// What is meant without a command.
const LIST: Command =
    Command::List { remote: None, local: None, scheme: None, format: Format::Table };

#[derive(Debug, clap::Args)]
struct Settings {
    /// Persistency: when the node closes the face by itself.
    #[arg(long, value_parser = persistency())]
    persistency: Option<Persistency>,
    /// Tell local applications the incoming face of a packet, and let them choose the next hop.
    #[arg(long, value_enum, value_name = "on|off")]
    local_fields: Option<Switch>,
    /// Retransmit lost frames on this link; the other end must do it as well.
    #[arg(long, value_enum, value_name = "on|off")]
    reliability: Option<Switch>,
    /// Mark packets when the send queue stays long.
    #[arg(long, value_enum, value_name = "on|off")]
    congestion_marking: Option<Switch>,
    /// How long the queue must stay long before the first mark, in milliseconds.
    #[arg(long, value_name = "MS")]
    marking_interval: Option<u64>,
    /// Queue length above which packets are marked, in octets.
    #[arg(long, value_name = "N")]
    marking_threshold: Option<u64>,
    /// MTU: longest frame, in octets.
    #[arg(long, value_name = "N")]
    mtu: Option<u64>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// What [`Persistency`] is called here.
fn persistency() -> impl TypedValueParser<Value = Persistency> {
    let value = |p: Persistency, help| PossibleValue::new(p.word()).help(help);
    let words = [
        value(Persistency::Persistent, "On an error of its socket"),
        value(Persistency::Permanent, "Never"),
        value(Persistency::OnDemand, "Also when it was idle for some time"),
    ];
    PossibleValuesParser::new(words)
        .map(|word| Persistency::from_word(&word).expect("invariant: one of the words above"))
}

impl Settings {
    /// Refuses what the kernel stack has not.
    fn is_for_kernel(&self) -> anyhow::Result<()> {
        let said = [
            (self.persistency.is_some(), "persistency of faces"),
            (self.reliability.is_some(), "link reliability"),
            (self.congestion_marking.is_some(), "congestion marking"),
            (self.marking_interval.is_some(), "congestion marking"),
            (self.marking_threshold.is_some(), "congestion marking"),
        ];
        match said.iter().find(|(said, _)| *said) {
            Some((_, what)) => Err(kernel::unknown(what)),
            None => Ok(()),
        }
    }

    fn fill(&self, parameters: &mut ControlParameters) {
        let flags = [
            (self.local_fields, FACE_LOCAL_FIELDS),
            (self.reliability, FACE_RELIABILITY),
            (self.congestion_marking, FACE_CONGESTION_MARKING),
        ];
        (parameters.flags, parameters.mask) = flags_and_mask(&flags);
        parameters.face_persistency = self.persistency;
        parameters.base_congestion_marking_interval_ns =
            self.marking_interval.map(|ms| ms.saturating_mul(1_000_000));
        parameters.default_congestion_threshold = self.marking_threshold;
        parameters.mtu = self.mtu;
    }
}

/// Flags and their mask, from what was said about each bit; both absent when nothing was said.
pub(crate) fn flags_and_mask(said: &[(Option<Switch>, u64)]) -> (Option<u64>, Option<u64>) {
    let (mut flags, mut mask) = (0, 0);
    for (switch, bit) in said {
        if let Some(switch) = switch {
            mask |= bit;
            flags |= if *switch == Switch::On { *bit } else { 0 };
        }
    }
    if mask == 0 { (None, None) } else { (Some(flags), Some(mask)) }
}

/// A face, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    id: u64,
    remote: String,
    local: String,
    scope: &'static str,
    persistency: &'static str,
    link: &'static str,
    expires_ms: Option<u64>,
    mtu: Option<u64>,
    flags: Vec<&'static str>,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    in_bytes: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    out_bytes: u64,
}

impl Shown {
    pub(crate) fn of(face: &FaceStatus) -> Self {
        Self {
            id: face.face_id,
            remote: face.uri.clone(),
            local: face.local_uri.clone(),
            scope: face.face_scope.word(),
            persistency: face.face_persistency.word(),
            link: face.link_type.word(),
            expires_ms: face.expiration_period_ms,
            mtu: face.mtu,
            flags: words::face_flags(face.flags),
            in_interests: face.in_interests,
            in_data: face.in_data,
            in_nacks: face.in_nacks,
            in_bytes: face.in_bytes,
            out_interests: face.out_interests,
            out_data: face.out_data,
            out_nacks: face.out_nacks,
            out_bytes: face.out_bytes,
        }
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.kernel {
        return on_kernel(args.command, cx);
    }
    let mut client = session::open(cx)?;
    let client = &mut client;
    match args.command.unwrap_or(LIST) {
        Command::List { remote, local, scheme, format } => {
            let filter = FaceQueryFilter {
                uri: remote,
                local_uri: local,
                uri_scheme: scheme,
                ..Default::default()
            };
            let faces = if filter == FaceQueryFilter::default() {
                mgmt::faces(client)
            } else {
                mgmt::faces_query(client, &filter)
            };
            let faces = faces.map_err(session::failure)?;
            if format == Format::Nfdc && !cx.json {
                let lines: Vec<_> = faces.iter().map(nfdc::text::face).collect();
                return write_line(&lines.join("\n"));
            }
            let faces: Vec<_> = faces.iter().map(Shown::of).collect();
            cx.print(&faces, |faces| list_text(faces))
        }
        Command::Show { face } => {
            let face = words::find_face(client, &face)?;
            cx.print(&Shown::of(&face), show_text)
        }
        Command::Create { uri, local, settings } => {
            let mut wanted = ControlParameters {
                uri: Some(words::canonical_uri(&uri)?),
                local_uri: local,
                ..ControlParameters::default()
            };
            settings.fill(&mut wanted);
            changed(cx, &create(client, &wanted)?)
        }
        Command::Update { face, settings } => update(client, cx, &face, &settings),
        Command::Destroy { face } => changed(cx, &destroy(client, &face)?),
    }
}

/// Makes the face that `wanted` describes, or finds it.
pub(crate) fn create(client: &mut Client, wanted: &ControlParameters) -> anyhow::Result<Changed> {
    let created = mgmt::create_face(client, wanted).map_err(session::failure)?;
    let result = if created.is_new { "created" } else { "exists" };
    Ok(Changed::of(result, &created.face))
}

/// Destroys the face that `face` names.
pub(crate) fn destroy(client: &mut Client, face: &str) -> anyhow::Result<Changed> {
    let face = words::find_face(client, face)?;
    let parameters =
        ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
    client.command(["faces", "destroy"], &parameters).map_err(session::failure)?;
    Ok(Changed::of("destroyed", &ControlParameters { uri: Some(face.uri), ..parameters }))
}

/// The same for the kernel stack; what only a daemon has is refused.
fn on_kernel(command: Option<Command>, cx: &Context) -> anyhow::Result<()> {
    match command.unwrap_or(LIST) {
        Command::List { remote: None, local: None, scheme: None, format: Format::Table } => {
            kernel::faces(cx, |_| true)
        }
        Command::List { .. } => Err(kernel::unknown("filters of faces")),
        Command::Show { face } => {
            let found = kernel::find(&mut kernel::open()?, &face)?;
            kernel::faces(cx, |f| f.id == found.id)
        }
        Command::Create { uri, local, settings } => {
            settings.is_for_kernel()?;
            kernel::face_create(cx, &uri, local.as_deref(), settings.mtu)
        }
        Command::Update { face, settings } => {
            settings.is_for_kernel()?;
            let fields = settings.local_fields.map(|s| s == Switch::On);
            kernel::face_update(cx, &face, settings.mtu, fields)
        }
        Command::Destroy { face } => kernel::face_destroy(cx, &face),
    }
}

fn update(
    client: &mut Client,
    cx: &Context,
    face: &str,
    settings: &Settings,
) -> anyhow::Result<()> {
    let face = words::find_face(client, face)?;
    let mut parameters =
        ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
    settings.fill(&mut parameters);
    let answer =
        client.command_response(["faces", "update"], &parameters).map_err(session::failure)?;
    if !answer.is_success() {
        return Err(refused(&face, answer));
    }
    let done = answer.body.unwrap_or_default();
    let done = ControlParameters { uri: Some(face.uri), ..done };
    changed(cx, &Changed::of("updated", &done))
}

/// Why a face was not changed: the node's answer names the properties that it does not take.
fn refused(face: &FaceStatus, answer: ControlResponse) -> anyhow::Error {
    let wrong = answer.body.as_ref().map(offending).unwrap_or_default();
    if wrong.is_empty() {
        let command = "faces/update".to_owned();
        let (code, text) = (answer.code, answer.text);
        return session::failure(onym_client::Error::Refused { command, code, text });
    }
    let which = wrong.iter().map(|(option, _)| *option).collect::<Vec<_>>().join(" and ");
    let why = wrong.iter().map(|(_, why)| *why).collect::<Vec<_>>().join("; ");
    let uri = plain::line(&face.uri).into_owned();
    Failure::new(Exit::Refused, format!("face {} ({uri}) refused {which}", face.face_id))
        .why(why)
        .next("`onym face show` prints its current settings")
        .into()
}

/// The options whose values the node named as wrong, and what they take.
fn offending(body: &ControlParameters) -> Vec<(&'static str, &'static str)> {
    let mask = body.mask.unwrap_or(0);
    let all = [
        (
            body.face_persistency.is_some(),
            "--persistency",
            "a face that was asked for is persistent or permanent, one that a peer opened cannot be permanent",
        ),
        (body.mtu.is_some(), "--mtu", "only datagram faces have one, of 64 octets and more"),
        (
            mask & FACE_LOCAL_FIELDS != 0,
            "--local-fields",
            "only faces to programs of the node's machine have them",
        ),
        (mask & FACE_RELIABILITY != 0, "--reliability", "this face cannot retransmit"),
        (mask & FACE_CONGESTION_MARKING != 0, "--congestion-marking", "this face cannot mark"),
        (
            body.base_congestion_marking_interval_ns.is_some(),
            "--marking-interval",
            "the value is not allowed",
        ),
        (
            body.default_congestion_threshold.is_some(),
            "--marking-threshold",
            "the value is not allowed",
        ),
    ];
    all.iter().filter(|(is, ..)| *is).map(|(_, option, why)| (*option, *why)).collect()
}

/// What became of a face.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    result: &'static str,
    face: u64,
    uri: String,
}

impl Changed {
    fn of(result: &'static str, face: &ControlParameters) -> Self {
        let uri = face.uri.clone().unwrap_or_default();
        Self { result, face: face.face_id.unwrap_or(0), uri }
    }
}

fn changed(cx: &Context, changed: &Changed) -> anyhow::Result<()> {
    cx.print(changed, |c| format!("face {} {} {}", c.face, c.result, plain::line(&c.uri)))
}

pub(crate) fn list_text(faces: &[Shown]) -> String {
    let row = |f: &Shown| {
        vec![
            f.id.to_string(),
            f.remote.clone(),
            f.local.clone(),
            f.scope.into(),
            f.persistency.into(),
            format!(
                "{}i {}d {}n {}",
                f.in_interests,
                f.in_data,
                f.in_nacks,
                human::bytes(f.in_bytes)
            ),
            format!(
                "{}i {}d {}n {}",
                f.out_interests,
                f.out_data,
                f.out_nacks,
                human::bytes(f.out_bytes)
            ),
        ]
    };
    let rows: Vec<_> = faces.iter().map(row).collect();
    human::table(&["FACE", "REMOTE", "LOCAL", "SCOPE", "PERSISTENCY", "IN", "OUT"], &rows)
}

fn show_text(f: &Shown) -> String {
    let optional = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string());
    let flags = if f.flags.is_empty() { "-".into() } else { f.flags.join(" ") };
    format!(
        "face         {}\nremote       {}\nlocal        {}\nscope        {}\npersistency  {}\nlink         {}\n\
         flags        {flags}\nmtu          {}\nexpires      {}\n\
         in           {} Interests, {} Data, {} Nacks, {}\nout          {} Interests, {} Data, {} Nacks, {}",
        f.id,
        plain::line(&f.remote),
        plain::line(&f.local),
        f.scope,
        f.persistency,
        f.link,
        optional(f.mtu),
        f.expires_ms.map_or_else(|| "-".into(), human::duration_ms),
        f.in_interests,
        f.in_data,
        f.in_nacks,
        human::bytes(f.in_bytes),
        f.out_interests,
        f.out_data,
        f.out_nacks,
        human::bytes(f.out_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_in_the_mask() {
        assert_eq!(flags_and_mask(&[(None, 1), (None, 2)]), (None, None));
        let said = [(Some(Switch::On), 1), (None, 2), (Some(Switch::Off), 4)];
        assert_eq!(flags_and_mask(&said), (Some(1), Some(5)));
    }
}
