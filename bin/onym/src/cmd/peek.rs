//! `onym peek`: one Interest, one Data.

use crate::output::{self, Context};
use crate::session;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onym_client::{Request, Verify};
use onym_wire::Name;
use onym_wire::data::Data;
use serde::Serialize;
use std::time::Duration;

/// Fetch one packet and show it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym peek /example/hello                      the content, as it is
  onym peek -P -f /example/film/32=metadata --verbose
  onym peek /example/hello --wire | xxd
  onym peek /example/hello --json

Exit code 5 when nothing answers in time or no route leads there.")]
pub(crate) struct Args {
    /// Name of the Data, or a prefix of it with -P.
    name: Name,
    /// Data under the name answer as well (CanBePrefix).
    #[arg(short = 'P', long, visible_alias = "can-be-prefix")]
    prefix: bool,
    /// Caches answer with fresh Data only (MustBeFresh).
    #[arg(short, long, visible_alias = "must-be-fresh")]
    fresh: bool,
    /// Lifetime of the Interest, in milliseconds.
    #[arg(short, long, value_name = "MS", default_value_t = 4000)]
    lifetime: u64,
    /// Interests sent again after a timeout.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// HopLimit: maximum number of hops.
    #[arg(short = 'H', long, value_name = "N")]
    hop_limit: Option<u8>,
    /// Delegation of a forwarding hint; may be given again, preferred first.
    #[arg(short = 'F', long, value_name = "NAME")]
    hint: Vec<Name>,
    /// ApplicationParameters: this text.
    #[arg(short = 'A', long, value_name = "TEXT")]
    parameters: Option<String>,
    /// Write the whole packet instead of its content.
    #[arg(long)]
    wire: bool,
    /// Show the fields of the packet on standard error.
    #[arg(short, long)]
    verbose: bool,
}

/// The packet, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    content_type: u64,
    freshness_ms: u64,
    final_block: Option<String>,
    signature_type: u64,
    key_locator: Option<String>,
    /// Whether the digest was checked; null when the signature is one by a key.
    integrity: Option<bool>,
    /// Base64.
    content: String,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let request = Request {
        can_be_prefix: args.prefix,
        must_be_fresh: args.fresh,
        lifetime: Duration::from_millis(args.lifetime),
        retries: args.retries,
        hop_limit: args.hop_limit,
        forwarding_hint: args.hint,
        parameters: args.parameters.map(String::into_bytes),
        ..Request::new(args.name)
    };
    let packet = session::open(cx)?.request(&request).map_err(session::failure)?;
    let data = packet.data();
    if args.verbose {
        output::tell(format_args!("{}", onym_wire::dump::Tree(packet.bytes())));
    }
    if cx.json {
        return output::write_json(&serde_json::to_string_pretty(&shown(&data))?);
    }
    output::write_raw(if args.wire { packet.bytes() } else { data.content })
}

fn shown(data: &Data<'_>) -> Shown {
    let info = &data.signature_info();
    let checked = Verify::Integrity.check(data);
    Shown {
        name: data.name.to_string(),
        content_type: data.content_type,
        freshness_ms: data.freshness_ms,
        final_block: data.final_block_id.map(|c| c.to_string()),
        signature_type: info.kind,
        key_locator: info.key_locator.and_then(|l| l.name()).map(|n| n.to_string()),
        integrity: match checked {
            Ok(onym_client::verify::Verified::Yes) => Some(true),
            Ok(onym_client::verify::Verified::No) => None,
            Err(_) => Some(false),
        },
        content: STANDARD.encode(data.content),
    }
}
