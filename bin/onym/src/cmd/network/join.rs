//! `onym network join` and `renew`.

use super::invitation::Invitation;
use super::{
    absent, check_names, config, key_name, network_of, router_certificate, routing_identity,
};
use crate::enrol::{self, Proof, Wanted};
use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use crate::network_folder::{
    self as files, make, read_certificate, read_key, write, write_key, write_new,
};
use crate::output::Context;
use crate::session;
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_crypto::{Certificate, KeyType, PrivateKey, Signer};
use onym_ndncert::Secret;
use onym_ndncert::message::Profile;
use onym_ndncert::renew;
use onym_wire::Name;
use serde::Serialize;
use std::path::Path;

#[derive(Debug, Serialize)]
struct Joined {
    router: String,
    certificate: String,
    not_after: String,
    folder: String,
    config: String,
}

pub(super) fn join(file: &Path, folder: &Path, cx: &Context) -> anyhow::Result<()> {
    let text = zeroize::Zeroizing::new(read_text(file)?);
    let invitation = Invitation::read(&text)?;
    let network = network_of(&invitation.router);
    check(&invitation, &network)?;
    make(folder)?;
    for file in [files::ANCHOR, files::ROUTER_CERT, files::SCHEMA, files::CONFIG] {
        absent(&folder.join(file))?;
    }
    let key_file = folder.join(files::ROUTER_KEY);
    // One that a try of before left: its token may be used already, its key is as good.
    if !key_file.exists() {
        write_key(&key_file, &PrivateKey::generate(KeyType::Ecdsa).map_err(failure)?)?;
    }
    let key = read_key(&key_file)?;
    let name = key_name(&routing_identity(&invitation.router));
    let (mut client, profile) = reached(&invitation, cx)?;
    let validity = enrol::validity(&profile, None);
    let mut once = Some(invitation.token.clone());
    let mut ask = |_: &str| token(&mut once, &invitation.router);
    let proof = Proof::Code { address: None, ask: &mut ask };
    let wanted = Wanted { key_name: name.as_ref(), key, validity };
    let issued = enrol::enrol(&mut client, &invitation.anchor, wanted, proof)?;
    write_new(&folder.join(files::ROUTER_CERT), issued.to_text().as_bytes(), 0o644)?;
    write_new(&folder.join(files::ANCHOR), invitation.anchor.to_text().as_bytes(), 0o644)?;
    write_new(&folder.join(files::SCHEMA), invitation.schema.as_bytes(), 0o644)?;
    let config = config(&network, &invitation.router, folder, &invitation.neighbours);
    write_new(&folder.join(files::CONFIG), config.as_bytes(), 0o644)?;
    let joined = joined(&invitation.router, &issued, folder);
    cx.print(&joined, |joined| {
        format!(
            "{} has joined\n  certificate  {}\n  valid to     {}\nNext:\n  onym daemon --config {}    \
             renews the certificate by itself, too",
            joined.router, joined.certificate, joined.not_after, joined.config
        )
    })
}

fn joined(router: &Name, certificate: &Certificate, folder: &Path) -> Joined {
    let not_after = u64::try_from(certificate.validity().not_after.0).unwrap_or(0);
    Joined {
        router: router.to_string(),
        certificate: certificate.name().to_string(),
        not_after: crate::human::moment_ms(not_after.saturating_mul(1000)),
        folder: folder.display().to_string(),
        config: folder.join(files::CONFIG).display().to_string(),
    }
}

/// The token, once: a second question means that it was wrong.
fn token(once: &mut Option<Secret>, router: &Name) -> anyhow::Result<Secret> {
    once.take().ok_or_else(|| {
        let what = format!("the authority refused the invitation of {router}");
        Failure::new(Exit::Refused, what)
            .why("it was used, has expired, or was revoked")
            .next("ask for a new one: `onym network invite`")
            .into()
    })
}

fn check(invitation: &Invitation, network: &Name) -> anyhow::Result<()> {
    check_names(network, &invitation.router)?;
    let now_ms = unix_now_ms();
    if invitation.until_s < now_ms / 1000 {
        let what = format!("the invitation of {} has expired", invitation.router);
        return Err(Failure::new(Exit::Refused, what)
            .next("check the clock; if it is right, ask for a new one: `onym network invite`")
            .into());
    }
    invitation.anchor.check_valid_at(now_ms).map_err(failure)?;
    if invitation.anchor.identity() != *network {
        let what = format!(
            "the trust anchor belongs to {}, not to {network}",
            invitation.anchor.identity()
        );
        return Err(Failure::new(Exit::Failed, what).next("ask for a new invitation").into());
    }
    Ok(())
}

/// The network by the first neighbour over which its authority answers, or by `--node`.
fn reached(invitation: &Invitation, cx: &Context) -> anyhow::Result<(Client, Profile)> {
    let places = match &cx.node {
        Some(node) => vec![node.clone()],
        None => invitation.neighbours.clone(),
    };
    let mut last = None;
    for node in places {
        let options = ClientOptions { node: Some(node.clone()), ..ClientOptions::default() };
        let tried = Client::open(options).map_err(session::failure).and_then(|mut client| {
            let profile = enrol::profile(&mut client, &invitation.anchor)?;
            Ok((client, profile))
        });
        match tried {
            Ok(reached) => return Ok(reached),
            Err(error) => {
                crate::output::tell(format_args!("onym: the authority is not reached by {node}"));
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("the invitation names no neighbour")))
}

/// When a certificate is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Due,
    Now,
}

pub(super) fn renew(when: When, folder: &Path, cx: &Context) -> anyhow::Result<()> {
    let old = read_certificate(&folder.join(files::ROUTER_CERT))?;
    let router = old.identity().drop_last(1).to_name();
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    if when == When::Due && !is_due(&old, now_s) {
        return cx.print(&joined(&router, &old, folder), |joined| {
            format!("not due: {} is valid to {}", joined.certificate, joined.not_after)
        });
    }
    let new = renew_router(folder, || session::open(cx))?;
    cx.print(&joined(&router, &new, folder), |joined| {
        format!("renewed: {} is valid to {}", joined.certificate, joined.not_after)
    })
}

/// Whether a certificate is to be renewed.
pub(crate) fn is_due(certificate: &Certificate, now_s: i64) -> bool {
    now_s >= renew::due(certificate.validity(), seed(certificate))
}

/// Renews the certificate of the router in `folder` by the one that it has. The machine that has the
/// authority's key makes it; another asks the authority, by a client that `open` opens.
pub(crate) fn renew_router(
    folder: &Path,
    open: impl FnOnce() -> anyhow::Result<Client>,
) -> anyhow::Result<Certificate> {
    let file = folder.join(files::ROUTER_CERT);
    let old = read_certificate(&file)?;
    let key = read_key(&folder.join(files::ROUTER_KEY))?;
    let new = if folder.join(files::AUTHORITY_KEY).exists() {
        let (anchor, authority) = files::authority(folder)?;
        let now_ms = unix_now_ms();
        anchor.check_valid_at(now_ms).map_err(failure)?;
        let signer = Signer::key(authority, anchor.name().to_name());
        router_certificate(old.key_name(), &key, &signer, now_ms)?
    } else {
        let anchor = read_certificate(&folder.join(files::ANCHOR))?;
        let mut client = open()?;
        let profile = enrol::profile(&mut client, &anchor)?;
        let proof = Proof::Possession { certificate: &old, key: &key };
        let validity = enrol::validity(&profile, None);
        let wanted = Wanted { key_name: old.key_name(), key: key.clone(), validity };
        enrol::enrol(&mut client, &anchor, wanted, proof)?
    };
    write(&file, new.to_text().as_bytes(), 0o644)?;
    Ok(new)
}

/// The same for the same certificate, so that calls of a timer agree on when it is due.
fn seed(certificate: &Certificate) -> u64 {
    let digest = certificate.public_key().key_digest();
    let seed = digest.first_chunk::<8>().map(|octets| u64::from_be_bytes(*octets));
    seed.unwrap_or_else(random_u64)
}
