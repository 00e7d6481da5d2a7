//! `onym repo run` in a sync group of ndnd's library: its example `std/examples/svs/alo-history`, where
//! it is on PATH under that name, asks `/ndnd/repo` to join its group.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::aio::{self, Believe};
use onym_client::blocking::Client;
use onym_client::metadata::Metadata;
use onym_client::{Answer, ClientOptions, Incoming, Request, RouteOptions};
use onym_crypto::Signer;
use onym_crypto::signer::write_digest_data;
use onym_frame::Buf;
use onym_repo::ndnd;
use onym_sync::alo::{AloConfig, Snapshots};
use onym_wire::{Component, DataBuilder, NackReason, Name, tlv};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use support::{Place, Running, wait_until};

struct Theirs {
    running: Running,
    keys: ChildStdin,
}

impl Theirs {
    /// A member with a folder of its own.
    fn join(place: &Place, name: &str) -> Self {
        let folder = place.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("alo-history");
        command.arg(format!("/{name}")).current_dir(folder);
        let node = format!("unix://{}", place.path("nfd.sock").display());
        command.env("NDN_CLIENT_TRANSPORT", node);
        let (reader, writer) = std::io::pipe().unwrap();
        let running = Running::start(command.stdin(Stdio::from(reader)));
        Self { running, keys: ChildStdin::from(std::os::fd::OwnedFd::from(writer)) }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    fn heard(&self, line: &str) -> bool {
        self.running.out.text().lines().any(|l| l == line)
    }
}

fn is_there() -> bool {
    let found = Command::new("alo-history").stdin(Stdio::null()).output().is_ok();
    if !found {
        println!("skipped: alo-history of ndnd is not on PATH");
    }
    found
}

fn repo(place: &Place, more: &[&str]) -> Running {
    let base = ["repo", "run", "--store", "data", "--name", "/ndnd/repo"];
    let mut run = place.start(&[&base[..], more].concat());
    run.wait_for("ready: ");
    run
}

/// Law: what members of a group published, and blobs that they asked to be kept, are there for members
/// who come when all others have gone, also after a restart of the repository.
#[test]
fn a_group_of_ndnds_library_outlives_its_members() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let mut run = repo(&place, &["--allow-everybody"]);
    let mut first = Theirs::join(&place, "first");
    wait_until("the command's answer", || {
        first.running.err.text().contains("Repo joined SVS group")
    });
    first.say("hello from first");
    // A hundred lines: the next bundle of its history.
    first.say("!!");
    first.say("+a blob");
    let packets = || place.json(&["repo", "stats", "--store", "data"])["packets"].as_u64().unwrap();
    // Its first line, hello, a hundred lines, the command for the blob; two bundles of history, at
    // least one index of them, and the blob.
    wait_until("everything is kept", || packets() >= 107);
    first.running.kill();
    run.kill();
    let _run = repo(&place, &["--allow-everybody"]);
    let routes = || place.run(&["route", "list"]).out;
    wait_until("it takes part again", || routes().contains("/ndn/svs/32=svs"));
    let second = Theirs::join(&place, "second");
    for line in ["Entered the chat room", "hello from first", "Message 1", "Message 100"] {
        let line = format!("/first: {line}");
        wait_until(&line, || second.heard(&line));
    }
}

/// Law: who may not command does not have the repository join.
#[test]
fn a_group_is_joined_for_who_is_admitted_only() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let _run = repo(&place, &[]);
    let mut first = Theirs::join(&place, "first");
    // Their member notes that there was an answer, and does not read it.
    wait_until("an answer", || first.running.err.text().contains("Repo joined SVS group"));
    first.say("hello");
    let mut second = Theirs::join(&place, "second");
    wait_until("others hear it", || second.heard("/first: hello"));
    second.say("hello");
    wait_until("it hears others", || first.heard("/second: hello"));
    assert_eq!(place.json(&["repo", "stats", "--store", "data"])["packets"], 0);
}

/// A member by our own command.
fn chat(place: &Place, who: &str) -> Theirs {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = place.command(&["chat", "/ndn/svs", "--as", who]);
    let mut running = Running::start(command.stdin(Stdio::from(reader)));
    running.wait_for("ready");
    Theirs { running, keys: ChildStdin::from(std::os::fd::OwnedFd::from(writer)) }
}

/// Sends a command as ndnd's clients do, an Interest that carries a signed Data, and reads the status.
fn ask(client: &mut Client, kind: u32) -> u64 {
    let (mut protocol, mut group) = (Name::new(), Vec::new());
    protocol.append_keyword("ndn").append_keyword("svs").append_version(3);
    let (mut content, mut in_protocol) = (Vec::new(), Vec::new());
    protocol.as_ref().write_tlv(&mut in_protocol);
    "/ndn/svs".parse::<Name>().unwrap().as_ref().write_tlv(&mut group);
    tlv::put_tlv(&mut content, 401, &in_protocol);
    tlv::put_tlv(&mut content, 403, &group);
    let mut command = Vec::new();
    tlv::put_tlv(&mut command, kind, &content);
    let name: Name = "/first/32=repo-cmd".parse().unwrap();
    let mut data = Vec::new();
    write_digest_data(&DataBuilder::new(name.as_ref(), &command), &mut data);
    let request = Request {
        must_be_fresh: true,
        parameters: Some(data),
        ..Request::new("/ndnd/repo/32=cmd".parse().unwrap())
    };
    let answer = client.request(&request).unwrap();
    let content = answer.data().content.to_vec();
    let status = [ndnd::DONE, ndnd::WRONG, ndnd::REFUSED, ndnd::FAILED];
    let is_status = |status: &&u64| {
        let whole = ndnd::write_answer(**status, "");
        content.starts_with(&whole[..whole.len() - 4])
    };
    *status.iter().find(is_status).unwrap()
}

/// Law: a group that was left is kept no longer, also after a restart; what was kept stays and is
/// served, and it may be joined again.
#[test]
fn a_group_that_was_left_is_kept_no_longer() {
    const JOIN: u32 = 7600;
    const LEAVE: u32 = 7601;
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let mut run = repo(&place, &["--allow-everybody"]);
    let node = Some(place.node());
    let mut client = Client::open(ClientOptions { node, ..ClientOptions::default() }).unwrap();
    let packets = || place.json(&["repo", "stats", "--store", "data"])["packets"].as_u64().unwrap();
    assert_eq!(ask(&mut client, LEAVE), ndnd::FAILED, "it had not joined");
    assert_eq!(ask(&mut client, JOIN), ndnd::DONE);
    let (mut first, second) = (chat(&place, "/first"), chat(&place, "/second"));
    first.say("one");
    wait_until("it is kept", || packets() == 1);
    assert_eq!(ask(&mut client, LEAVE), ndnd::DONE);
    assert_eq!(ask(&mut client, LEAVE), ndnd::FAILED, "it has left");
    first.say("two");
    wait_until("the others hear it", || second.heard("/first: two"));
    assert_eq!(packets(), 1);
    run.kill();
    run = repo(&place, &["--allow-everybody"]);
    first.say("three");
    wait_until("the others hear it", || second.heard("/first: three"));
    assert_eq!(packets(), 1);
    assert_eq!(ask(&mut client, LEAVE), ndnd::FAILED, "a start joins no group that was left");
    assert_eq!(ask(&mut client, JOIN), ndnd::DONE);
    wait_until("what it missed is kept", || packets() == 3);
    drop(run);
}

/// A member with an object of nine segments that it asks to be kept. It answers the first one, then
/// nothing until four others were asked for, and refuses number 6 once. It counts how often each is
/// asked for.
const OBJECT: &str = "/ndn/svs/first/32=blob/v=1";

/// Metadata that says where `object` is.
fn told(incoming: &Incoming, object: &Name, out: &mut Vec<u8>) -> Answer {
    let mut name = incoming.interest().name.to_name();
    name.append_version(7).append_segment(0);
    let mut content = Vec::new();
    let metadata =
        Metadata { name: object.clone(), last_segment: None, segment_size: None, size: None };
    metadata.write(&mut content);
    let mut data = DataBuilder::new(name.as_ref(), &content);
    data.freshness_ms = 10;
    write_digest_data(&data, out);
    Answer::Written
}

/// Asks by the name `asks` for [`OBJECT`] to be kept, and answers for it, but for segment 6 the first
/// time.
async fn publish_object(
    options: ClientOptions,
    asks: Name,
    counts: Arc<Mutex<BTreeMap<u64, u32>>>,
) {
    let client = aio::Client::open(options).unwrap();
    let (hold, mut held) = tokio::sync::mpsc::unbounded_channel();
    let write = |incoming: &Incoming, out: &mut Vec<u8>| {
        let name = incoming.interest().name;
        let mut data = DataBuilder::new(name, b"a part");
        let mut end = Name::new();
        end.append_segment(8);
        data.final_block_id = end.as_ref().last();
        write_digest_data(&data, out);
    };
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let Some(segment) = incoming.interest().name.last().and_then(Component::as_segment) else {
            return Answer::Nothing;
        };
        let mut counts = counts.lock().unwrap();
        let times = counts.entry(segment).or_default();
        *times += 1;
        match (segment, *times) {
            (6, 1) => return Answer::Nack(NackReason::NO_ROUTE),
            (1..=4, _) => {
                hold.send(incoming.clone()).unwrap();
                return Answer::Nothing;
            }
            _ => write(incoming, out),
        }
        Answer::Written
    };
    let object: Name = OBJECT.parse().unwrap();
    client.respond(object.clone(), respond).await.unwrap();
    // First another object of the group, which is not below the name.
    let mut places = vec![object.clone(), "/ndn/svs/second/32=blob/v=1".parse().unwrap()];
    client.register(object, RouteOptions::default()).await.unwrap();
    let metadata: Name = "/ndn/svs/first/32=blob/32=metadata".parse().unwrap();
    let tell = move |incoming: &Incoming, out: &mut Vec<u8>| match places.pop() {
        Some(at) => told(incoming, &at, out),
        None => Answer::Nothing,
    };
    client.respond(metadata.clone(), tell).await.unwrap();
    client.register(metadata, RouteOptions::default()).await.unwrap();
    let late = client.clone();
    tokio::spawn(async move {
        let mut waiting = Vec::new();
        while let Some(incoming) = held.recv().await {
            waiting.push(incoming);
            if waiting.len() >= 4 {
                for incoming in waiting.drain(..) {
                    let mut out = Vec::new();
                    write(&incoming, &mut out);
                    late.reply(incoming, Buf::copy_from(&out)).await.unwrap();
                }
            }
        }
    });
    let (group, node) = ("/ndn/svs".parse().unwrap(), "/first".parse().unwrap());
    let config = AloConfig::new(group, node, 1, Signer::digest(), Snapshots::None { last: 10 });
    let mut group = client.join(config, Believe::Anybody).await.unwrap();
    let (mut name, mut command) = (Vec::new(), Vec::new());
    asks.as_ref().write_tlv(&mut name);
    let mut content = Vec::new();
    tlv::put_tlv(&mut content, 440, &name);
    tlv::put_tlv(&mut command, 7602, &content);
    group.publish(command, Vec::new()).await.unwrap();
    while group.next().await.is_some() {}
}

/// Has a repository keep [`OBJECT`], which a member asks for by the name `asks`, and says how often each
/// segment was asked for.
fn kept_as(asks: &str) -> BTreeMap<u64, u32> {
    const JOIN: u32 = 7600;
    let asks = asks.parse().unwrap();
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let _run = repo(&place, &["--allow-everybody"]);
    let options = ClientOptions { node: Some(place.node()), ..ClientOptions::default() };
    assert_eq!(ask(&mut Client::open(options.clone()).unwrap(), JOIN), ndnd::DONE);
    let asked: Arc<Mutex<BTreeMap<u64, u32>>> = Arc::default();
    let counts = Arc::clone(&asked);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(publish_object(options, asks, counts));
    });
    let packets = || place.json(&["repo", "stats", "--store", "data"])["packets"].as_u64().unwrap();
    wait_until("nine segments and the publication are kept", || packets() == 10);
    let asked = asked.lock().unwrap();
    asked.clone()
}

/// Law: several segments of an object that a member asks to be kept are on their way at a time, and
/// when the fetch breaks off it goes on behind what is on the disk.
#[test]
fn an_object_of_a_group_goes_on_where_its_fetch_broke_off() {
    let asked = kept_as(OBJECT);
    assert!((0..6).all(|segment| asked[&segment] == 1), "{asked:?}");
    assert_eq!(asked[&6], 2, "{asked:?}");
}

/// Law: of a name without a version the newest one is kept, as the object's metadata says; metadata that
/// leads elsewhere is not followed, and what broke off goes on with the same version.
#[test]
fn an_object_of_a_group_that_is_named_without_its_version_is_kept() {
    let asked = kept_as("/ndn/svs/first/32=blob");
    assert_eq!((asked[&0], asked[&6]), (1, 2), "{asked:?}");
}
