//! `onym cert authority`: certifies keys for names that applicants show a right to.

use super::{Challenge, failure, find, read};
use crate::exit::{Exit, Failure};
use crate::invitations::Book;
use crate::output::{self, Context};
use crate::{network_folder, session, stop};
use onym_client::{Answer, Event, Incoming, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Signer, SystemEntropy};
use onym_frame::Buf;
use onym_ndncert::authority::{Kind, Redirect};
use onym_ndncert::{Authority, Now, Order, Reply, RequestId, Secret, Settings, dns};
use onym_wire::{Component, Name};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Mails that are being sent, at most; further ones are not sent, and said.
const MAILS_MAX: usize = 8;
/// How long the command that sends a mail may take.
const MAIL_TIME: Duration = Duration::from_secs(30);
/// How long a lookup may take; the Interest that waits lives 4 s.
const LOOKUP_TIME: Duration = Duration::from_secs(3);
/// Lookups at a time, at most; a further one finds nothing.
const LOOKUPS_MAX: usize = 32;
/// Longest answer of a resolver that is read, in octets.
const ANSWER_MAX: usize = 4096;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Identity of the key store whose names are given; without it the default identity.
    identity: Option<Name>,
    /// Folder of a network (`onym network init`): its key, certificate and invitations.
    #[arg(long, value_name = "DIR", conflicts_with = "identity")]
    folder: Option<PathBuf>,
    /// Challenges to offer, the preferred one first.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "pin,possession")]
    challenge: Vec<Challenge>,
    /// Longest validity, in days.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    max_days: u32,
    /// Description of the authority that applicants see.
    #[arg(long, default_value = "", value_name = "TEXT")]
    info: String,
    /// Parameters that an applicant must send when asking for a name, such as email.
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    probe: Vec<String>,
    /// Redirect applicants whose parameter KEY is VALUE: KEY=VALUE@NAME, the full name (with
    /// digest) of the other authority's certificate.
    #[arg(long, value_name = "RULE", value_parser = redirect)]
    redirect: Vec<Redirect>,
    /// Certificate (a file) of another issuer whose certificates count as proof of possession.
    #[arg(long, value_name = "FILE")]
    anchor: Vec<PathBuf>,
    /// Program that sends a mail: called with address, authority and identity, with the code on its
    /// standard input.
    #[arg(long, value_name = "PROGRAM")]
    mail_command: Option<PathBuf>,
    /// DNS resolver, such as 127.0.0.1:53.
    #[arg(long, value_name = "ADDRESS")]
    resolver: Option<SocketAddr>,
}

fn redirect(rule: &str) -> Result<Redirect, String> {
    let bad = || "write KEY=VALUE@/name/of/certificate/sha256digest=…".to_owned();
    let (key, rest) = rule.split_once('=').ok_or_else(bad)?;
    let (value, name) = rest.split_once('@').ok_or_else(bad)?;
    let authority: Name = name.parse().map_err(|e| format!("{e}"))?;
    if !authority.as_ref().last().is_some_and(Component::is_implicit_digest) {
        return Err(
            "the name does not end with a digest: clients would not follow the redirect".into()
        );
    }
    Ok(Redirect { authority, key: key.to_owned(), value: value.to_owned() })
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { prefix: String, certificate: String },
    Code { identity: String, code: String },
    Issued { certificate: String, not_after: String },
    Invited { identity: String },
    Stopped { issued: u64, refused: u64, silent: u64 },
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { prefix, certificate } => format!("ready: {prefix} by {certificate}"),
        Line::Code { identity, code } => format!("code {code} for {identity}"),
        Line::Issued { certificate, not_after } => format!("issued: {certificate} to {not_after}"),
        Line::Invited { identity } => format!("invitation used: {identity}"),
        Line::Stopped { issued, refused, silent } => {
            format!("stopped: {issued} issued, {refused} refused, {silent} not answered")
        }
    }
}

/// The authority with what it needs of the machine.
struct Desk {
    authority: Authority,
    start: Instant,
    book: Option<Book>,
    mail_command: Option<PathBuf>,
    mails: Vec<(Child, Instant)>,
    resolver: Option<SocketAddr>,
    found: Sender<(RequestId, Vec<String>)>,
    lookups: usize,
    waiting: BTreeMap<RequestId, Incoming>,
    cx: Context,
}

impl Desk {
    fn now(&self) -> Now {
        let tick_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now { unix_ms: unix_now_ms(), tick_ms }
    }

    fn answer(&mut self, incoming: &Incoming) -> Answer {
        if let Some(book) = &mut self.book {
            match book.read() {
                Ok(Some(invitations)) => self.authority.set_invitations(invitations),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the invitations cannot be read"),
            }
        }
        let now = self.now();
        let reply = self.authority.receive(now, incoming.interest().wire, &mut SystemEntropy);
        let done = self.obey();
        match reply {
            Reply::Data(_) if !done => Answer::Nothing,
            Reply::Data(wire) => Answer::Shared(Buf::copy_from(&wire)),
            Reply::Later(id) => {
                self.waiting.insert(id, incoming.clone());
                Answer::Nothing
            }
            Reply::Nothing(why) => {
                tracing::debug!(name = %incoming.interest().name, ?why, "not answered");
                Answer::Nothing
            }
        }
    }

    /// Does what the authority orders; whether its reply may go out.
    fn obey(&mut self) -> bool {
        let mut done = true;
        while let Some(order) = self.authority.poll_order() {
            match order {
                Order::Show { identity, code } => self.tell(&Line::Code {
                    identity: identity.to_string(),
                    code: code.reveal().to_owned(),
                }),
                Order::Mail { address, code, identity } => self.mail(&address, &code, &identity),
                Order::Lookup { id, name } => self.look_up(id, name),
                Order::Spent(invitation) => {
                    let struck = self.book.as_mut().map_or(Ok(()), |book| book.strike(&invitation));
                    match struck {
                        Ok(()) => {
                            let identity = invitation.identity.to_string();
                            self.tell(&Line::Invited { identity });
                        }
                        Err(error) => {
                            // A token that could be used again must not be answered.
                            tracing::error!(%error, "an invitation cannot be marked as used");
                            done = false;
                        }
                    }
                }
                Order::Issued(certificate) => self.tell(&Line::Issued {
                    certificate: certificate.name().to_string(),
                    not_after: super::date(certificate.validity().not_after.0),
                }),
                _ => {}
            }
        }
        done
    }

    fn tell(&self, line: &Line) {
        // Nobody reads it: that is no reason to stop.
        let _ = self.cx.event(line, text);
    }

    /// Hands a code to the command that sends it, by its standard input.
    fn mail(&mut self, address: &str, code: &Secret, identity: &Name) {
        let Some(program) = &self.mail_command else { return };
        if self.mails.len() >= MAILS_MAX {
            tracing::warn!("mail not sent: {MAILS_MAX} are being sent already");
            return;
        }
        let child = Command::new(program)
            .arg(address)
            .arg(self.authority.prefix().to_string())
            .arg(identity.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        match child {
            Ok(mut child) => {
                if let Some(mut to) = child.stdin.take() {
                    let _ = writeln!(to, "{}", code.reveal());
                }
                self.mails.push((child, Instant::now()));
            }
            Err(error) => tracing::error!(program = %program.display(), %error, "mail not sent"),
        }
    }

    /// Asks in a thread of its own.
    fn look_up(&mut self, id: RequestId, name: String) {
        self.lookups += 1;
        let resolver = self.resolver.filter(|_| self.lookups <= LOOKUPS_MAX);
        let found = self.found.clone();
        let ask = move || {
            let texts = resolver.and_then(|resolver| records(resolver, &name)).unwrap_or_default();
            let _ = found.send((id, texts));
        };
        if let Err(error) = thread::Builder::new().name("lookup".into()).spawn(ask) {
            tracing::error!(%error, "cannot start a thread for a DNS lookup");
            let _ = self.found.send((id, Vec::new()));
        }
    }

    /// Ends mails that take too long.
    fn reap(&mut self) {
        self.mails.retain_mut(|(child, since)| match child.try_wait() {
            Ok(None) if since.elapsed() < MAIL_TIME => true,
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                false
            }
            _ => false,
        });
    }

    /// The Interest that waited for these records, and its Data.
    fn looked_up(&mut self, id: RequestId, texts: &[String]) -> Option<(Incoming, Vec<u8>)> {
        self.lookups = self.lookups.saturating_sub(1);
        let now = self.now();
        let data = self.authority.records(now, id, texts);
        let done = self.obey();
        let incoming = self.waiting.remove(&id)?;
        Some((incoming, data.filter(|_| done)?))
    }
}

/// The texts of a name's records; nothing when the resolver does not answer.
fn records(resolver: SocketAddr, name: &str) -> Option<Vec<String>> {
    let id = u16::try_from(onym_crypto::edge::random_u64() & 0xFFFF).ok()?;
    let question = dns::question(id, name)?;
    let any = if resolver.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(resolver).ok()?;
    socket.send(&question).ok()?;
    let until = Instant::now() + LOOKUP_TIME;
    let mut answer = vec![0; ANSWER_MAX];
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        socket.set_read_timeout(Some(left)).ok()?;
        let len = socket.recv(&mut answer).ok()?;
        if let Some(texts) = dns::texts(&question, answer.get(..len)?) {
            return Some(texts);
        }
    }
}

/// Certificate and key of the authority, and its invitations.
fn opened(args: &Args, store: &KeyStore) -> anyhow::Result<(Certificate, Signer, Option<Book>)> {
    if let Some(folder) = &args.folder {
        let (certificate, key) = network_folder::authority(folder)?;
        let locator = certificate.name().to_name();
        return Ok((certificate, Signer::key(key, locator), Some(Book::new(folder))));
    }
    let certificate = find(store, args.identity.as_ref().map(Name::as_ref))?;
    let key = store.key(certificate.key_name()).map_err(failure)?;
    let locator = certificate.name().to_name();
    Ok((certificate, Signer::key(key, locator), None))
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let missing = |challenge: &str, option: &str| {
        let what = format!("the challenge {challenge} needs {option}");
        Failure::new(Exit::Usage, what).next("see `onym cert authority --help`")
    };
    let mut challenges = Vec::new();
    for challenge in &args.challenge {
        challenges.push(match challenge {
            Challenge::Pin => Kind::Pin,
            Challenge::Possession => Kind::Possession,
            Challenge::Email if args.mail_command.is_some() => Kind::Email,
            Challenge::Email => return Err(missing("email", "--mail-command").into()),
            Challenge::Dns if args.resolver.is_some() => Kind::Dns,
            Challenge::Dns => return Err(missing("dns", "--resolver").into()),
        });
    }
    let anchors = args.anchor.iter().map(|file| read(file)).collect::<anyhow::Result<_>>()?;
    Ok(Settings {
        info: args.info.clone(),
        probe_keys: args.probe.clone(),
        max_validity_s: u64::from(args.max_days) * 86_400,
        challenges,
        anchors,
        redirects: args.redirect.clone(),
        ..Settings::default()
    })
}

pub(super) fn run(args: &Args, store: &KeyStore, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let settings = settings(args)?;
    let (certificate, signer, book) = opened(args, store)?;
    if let Err(error) = certificate.check_valid_at(unix_now_ms()) {
        return Err(failure(error));
    }
    let ready = Line::Ready {
        prefix: certificate.identity().to_string(),
        certificate: certificate.name().to_string(),
    };
    let start = Instant::now();
    let now = Now { unix_ms: unix_now_ms(), tick_ms: 0 };
    let authority =
        Authority::new(certificate, signer, settings, now).map_err(crate::enrol::failure)?;
    let prefix = authority.prefix().to_name();
    let (found, results) = mpsc::channel();
    let desk = Arc::new(Mutex::new(Desk {
        authority,
        start,
        book,
        mail_command: args.mail_command.clone(),
        mails: Vec::new(),
        resolver: args.resolver,
        found,
        lookups: 0,
        waiting: BTreeMap::new(),
        cx: cx.clone(),
    }));
    let mut client = session::open_forever(cx)?;
    let of_client = Arc::clone(&desk);
    let respond = move |incoming: &Incoming, _: &mut Vec<u8>| locked(&of_client).answer(incoming);
    // Certificates that were issued are asked for by their own names, with the hint `/prefix/CA`.
    client.respond(prefix.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
    for word in ["CA", "KEY"] {
        let mut name = prefix.clone();
        name.append_generic(word);
        client.register(name, RouteOptions::default()).map_err(session::failure)?;
    }
    cx.event(&ready, text)?;
    while !stop.is_set() {
        turn(&mut client, &desk, &results)?;
    }
    let counters = locked(&desk).authority.counters();
    let (issued, refused, silent) = (counters.issued, counters.refused, counters.silent);
    cx.event(&Line::Stopped { issued, refused, silent }, text)
}

fn locked(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn turn(
    client: &mut onym_client::blocking::Client,
    desk: &Mutex<Desk>,
    results: &Receiver<(RequestId, Vec<String>)>,
) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_millis(100);
    if let Some(Event::NotRegistered(_, why)) = client.step(until).map_err(session::failure)? {
        output::tell(format_args!("onym: not registered: {why}"));
    }
    while let Ok((id, texts)) = results.try_recv() {
        let answered = locked(desk).looked_up(id, &texts);
        if let Some((incoming, data)) = answered {
            let now = client.now();
            client.endpoint().reply(now, &incoming, Buf::copy_from(&data));
        }
    }
    locked(desk).reap();
    Ok(())
}
