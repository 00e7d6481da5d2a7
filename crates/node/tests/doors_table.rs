//! The table of docs/security.md that says who may do what by which door, tried cell by cell.
//!
//! The table is read from the document: each row names an attempt of this file, each column a door.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use onym_crypto::Signer;
use onym_node::config::Config;
use onym_node::log::{LogControl, LogLine};
use onym_node::{Node, NodeHandle};
use onym_sys::peer::group_id;
use onym_tables::FaceId;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::ControlParameters;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{App, DEADLINE, name, tcp_app, udp_app, until};

/// A group that every Linux has, in the place of `onym`.
const GROUP: &str = "games";
/// A user that owns what others try to change, and one that is nobody else.
const VICTIM: u32 = 54_321;
const STRANGER: u32 = 54_322;

/// How long a door that gives no answer is listened at.
const SILENCE: Duration = Duration::from_millis(250);

/// Verbs that some cell tried.
static TRIED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The state of a node, in parts.
const DATASETS: [&str; 8] = [
    "/localhost/nfd/faces/list",
    "/localhost/nfd/faces/channels",
    "/localhost/nfd/fib/list",
    "/localhost/nfd/rib/list",
    "/localhost/nfd/cs/info",
    "/localhost/nfd/strategy-choice/list",
    "/localhost/nfd/status/general",
    "/localhost/onym/status/node",
];

#[derive(Debug)]
struct Log;

impl LogControl for Log {
    fn filter(&self) -> String {
        "info".into()
    }
    fn set_filter(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn lines(&self) -> Vec<LogLine> {
        Vec::new()
    }
}

/// Runs `work` on a thread that is of another user: a Unix socket keeps who connected.
fn as_user<T: Send + 'static>(
    uid: u32,
    groups: Vec<Gid>,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let thread = std::thread::spawn(move || {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(uid));
        set_thread_groups(&groups).unwrap();
        set_thread_res_gid(gid, gid, gid).unwrap();
        set_thread_res_uid(uid, uid, uid).unwrap();
        work()
    });
    thread.join().unwrap()
}

fn unix_as(path: &Path, uid: u32, groups: &[u32]) -> App {
    let (path, groups) = (path.to_owned(), groups.iter().map(|g| Gid::from_raw(*g)).collect());
    App::new(as_user(uid, groups, move || onym_face::unix::connect(&path).unwrap()))
}

fn shm_as(path: &Path, uid: u32) -> App {
    let path = path.to_owned();
    App::new(as_user(uid, Vec::new(), move || onym_face::shm::connect(&path, 1 << 16).unwrap()))
}

fn web(node: &NodeHandle) -> App {
    App::new(onym_face::websocket::connect(node.bound().websocket[0], "/").unwrap())
}

/// Two nodes: of the second, WebSocket faces of this machine are local.
struct Place {
    node: NodeHandle,
    local_web: NodeHandle,
    unix: PathBuf,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new(sets: &[&str]) -> Self {
        let (dir, unix) = support::socket_dir();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let group = format!("management.group={GROUP}");
        let mut all: Vec<&str> = vec!["shards=1", &group, "faces.websocket.listen=127.0.0.1:0"];
        all.extend(["faces.udp.listen=127.0.0.1:0", "faces.tcp.listen=127.0.0.1:0"]);
        all.extend(sets);
        let start = |more: &[&str]| {
            let sets: Vec<String> = all.iter().chain(more).map(|s| (*s).to_owned()).collect();
            let node = Node::start(Config::load(None, &sets).unwrap()).unwrap();
            node.serve_log(Arc::new(Log)).unwrap();
            node
        };
        let node = start(&[&unix]);
        let local_web = start(&["faces.unix.path=", "faces.websocket.local=true"]);
        let unix = node.bound().unix.clone().unwrap();
        Self { node, local_web, unix, _dir: dir }
    }

    fn node(&self, door: &str) -> &NodeHandle {
        if door == "WebSocket, local on" { &self.local_web } else { &self.node }
    }

    fn open(&self, door: &str) -> App {
        match door {
            "Unix, operator" => App::new(onym_face::unix::connect(&self.unix).unwrap()),
            "Unix, group" => unix_as(&self.unix, STRANGER, &[group_id(GROUP).unwrap()]),
            "Unix, others" => unix_as(&self.unix, STRANGER, &[]),
            "shared memory, operator" => shm_as(&self.unix, 0),
            "shared memory, others" => shm_as(&self.unix, STRANGER),
            "TCP on loopback" => tcp_app(&self.node),
            "WebSocket, local on" => web(&self.local_web),
            "WebSocket" => web(&self.node),
            "remote" => udp_app(&self.node),
            other => panic!("docs/security.md has a door that no test opens: {other}"),
        }
    }
}

/// One cell: an application at a door, and a face of another user with a route.
struct Cell<'a> {
    door: &'a str,
    app: App,
    number: usize,
    victim: App,
    victim_face: u64,
}

fn numbers(node: &NodeHandle) -> BTreeSet<FaceId> {
    node.faces().unwrap().into_iter().map(|f| f.id).collect()
}

impl<'a> Cell<'a> {
    fn new(place: &'a Place, door: &'a str, number: usize) -> Self {
        let node = place.node(door);
        let before = numbers(node);
        // Of a node without a Unix socket by the only other door of applications.
        let victim = match node.bound().unix.as_deref() {
            Some(path) => unix_as(path, VICTIM, &[]),
            None => tcp_app(node),
        };
        let mut victim_face = None;
        until("the victim has a face", || {
            victim_face = numbers(node).difference(&before).next().copied();
            victim_face.is_some()
        });
        let victim_face = u64::from(victim_face.unwrap().0);
        let app = place.open(door);
        let mut cell = Self { door, app, number, victim, victim_face };
        let theirs = cell.named(&cell.theirs());
        assert_eq!(cell.victim.command("/localhost/nfd", "rib/register", &theirs).code, 200);
        cell
    }

    fn theirs(&self) -> String {
        format!("/victim/{}/app", self.number)
    }

    fn mine(&self) -> String {
        format!("/mine/{}", self.number)
    }

    fn named(&self, uri: &str) -> ControlParameters {
        ControlParameters { name: Some(name(uri)), ..ControlParameters::default() }
    }

    /// The number of the application's own face, as the answer to a command about it tells.
    fn own_face(&mut self) -> u64 {
        if self.is_silent() {
            return 999_999;
        }
        let answer = self.app.command("/localhost/nfd", "faces/update", &Default::default());
        answer.body.unwrap().face_id.unwrap()
    }

    fn is_silent(&self) -> bool {
        matches!(self.door, "WebSocket" | "remote")
    }

    /// Whether a command is carried out. A refusal by a door of this machine names the group.
    fn may(&mut self, verb: &str, parameters: &ControlParameters) -> bool {
        let space = if verb.starts_with("log/") { "/localhost/onym" } else { "/localhost/nfd" };
        self.app.send_command(space, verb, parameters);
        self.is_granted(verb)
    }

    /// Whether the command that was sent is carried out.
    fn is_granted(&mut self, verb: &str) -> bool {
        TRIED.lock().unwrap().insert(verb.to_owned());
        let wait = if self.is_silent() { SILENCE } else { DEADLINE };
        loop {
            let Ok(Some(frame)) = self.app.try_frame(wait) else {
                assert!(self.is_silent(), "{}: {verb}: no answer", self.door);
                return false;
            };
            let Some(answer) = support::response(&frame) else { continue };
            if answer.code != 200 {
                assert_eq!(answer.code, 403, "{}: {verb}: {answer:?}", self.door);
                assert!(answer.text.contains(GROUP), "{}: {verb}: {answer:?}", self.door);
            }
            return answer.code == 200;
        }
    }

    fn may_register(&mut self, uri: &str) -> bool {
        let parameters = self.named(uri);
        self.may("rib/register", &parameters)
    }

    /// As [`Self::may_register`], by an announcement.
    fn may_announce(&mut self, uri: &str) -> bool {
        let prefix = name(uri);
        let announcement = PrefixAnnouncement {
            prefix: prefix.as_ref(),
            version: 1,
            expiration_ms: 60_000,
            validity_period: None,
            cost: None,
        };
        let (mut content, mut data, mut wire) = (Vec::new(), Vec::new(), Vec::new());
        announcement.write_content(&mut content);
        let of = announcement.name();
        let content_type = onym_wire::types::CONTENT_PREFIX_ANNOUNCEMENT;
        let data_of = DataBuilder { content_type, ..DataBuilder::new(of.as_ref(), &content) };
        Signer::digest().sign_data(&data_of, &mut data).unwrap();
        let command = name("/localhost/nfd/rib/announce");
        let nonce = Some(u32::try_from(self.number).unwrap().to_be_bytes());
        let interest = InterestBuilder { nonce, ..InterestBuilder::new(command.as_ref()) };
        onym_crypto::signer::write_parameters(&interest, &data, &mut wire);
        self.app.send(&wire);
        self.is_granted("rib/announce")
    }

    fn face_command(&mut self, verb: &str, face: u64) -> bool {
        let parameters = ControlParameters { face_id: Some(face), ..ControlParameters::default() };
        self.may(verb, &parameters)
    }

    /// What comes for an Interest: content that is no refusal.
    fn may_read(&mut self, uri: &str) -> bool {
        self.app.interest_with(uri, true);
        let wait = if self.is_silent() { SILENCE } else { DEADLINE };
        loop {
            let Ok(Some(frame)) = self.app.try_frame(wait) else {
                assert!(self.is_silent(), "{}: {uri}: no answer", self.door);
                return false;
            };
            let (packet, _) = support::unwrap(&frame);
            let Ok(data) = onym_wire::Data::parse(&packet) else { continue };
            return data.content_type != onym_wire::types::CONTENT_NACK;
        }
    }

    /// All of it, or nothing.
    fn may_read_state(&mut self) -> bool {
        let may = DATASETS.map(|uri| self.may_read(uri));
        assert!(may.iter().all(|one| *one == may[0]), "{}: {may:?}", self.door);
        may[0]
    }

    fn may_fetch(&mut self) -> bool {
        let uri = format!("{}/item", self.theirs());
        self.app.interest(&uri);
        self.victim.take_interest();
        self.victim.data(&uri, b"here");
        self.app.take_data().1 == b"here"
    }

    fn may_serve(&mut self) -> bool {
        let mine = self.mine();
        if !self.may_register(&mine) {
            return false;
        }
        self.victim.interest(&mine);
        self.app.take_interest();
        self.app.data(&mine, b"served");
        self.victim.take_data().1 == b"served"
    }

    fn attempt(&mut self, what: &str) -> bool {
        let (mine, theirs, empty) = (self.mine(), self.theirs(), ControlParameters::default());
        let above = theirs.trim_end_matches("/app").to_owned();
        let at_theirs = ControlParameters { face_id: Some(self.victim_face), ..self.named(&mine) };
        match what {
            "ask, and get Data" => self.may_fetch(),
            "serve a name of its own" => self.may_serve(),
            "register under another's prefix" => self.may_register(&format!("{theirs}/mine")),
            "register another's prefix" => self.may_register(&theirs),
            "register above another's prefix" => self.may_register(&above),
            "announce a name of its own" => self.may_announce(&mine),
            "announce another's prefix" => self.may_announce(&theirs),
            "register the empty name" => self.may_register("/"),
            "register /localhost" => self.may_register("/localhost/mine"),
            "register /localhop" => self.may_register("/localhop/mine"),
            "register for another's face" => self.may("rib/register", &at_theirs),
            "unregister its own" => {
                self.may_register(&mine) && {
                    let parameters = self.named(&mine);
                    self.may("rib/unregister", &parameters)
                }
            }
            "unregister another's" => {
                let face_id = Some(self.victim_face);
                let parameters = ControlParameters { face_id, ..self.named(&theirs) };
                self.may("rib/unregister", &parameters)
            }
            "update its own face" => self.may("faces/update", &empty),
            "update another's face" => self.face_command("faces/update", self.victim_face),
            "close its own face" => {
                let own = self.own_face();
                TRIED.lock().unwrap().insert("faces/destroy".to_owned());
                // The answer may find the face gone.
                if self.is_silent() {
                    return self.face_command("faces/destroy", own);
                }
                let own = ControlParameters { face_id: Some(own), ..empty };
                self.app.send_command("/localhost/nfd", "faces/destroy", &own);
                self.app.is_closed_by_node()
            }
            "close another's face" => self.face_command("faces/destroy", self.victim_face),
            "make a face" => {
                let uri = format!("udp4://127.0.0.1:{}", 20_000 + self.number);
                self.may("faces/create", &ControlParameters { uri: Some(uri), ..empty })
            }
            "change the FIB" => {
                let parameters = self.named(&mine);
                self.may("fib/add-nexthop", &parameters)
                    && self.may("fib/remove-nexthop", &parameters)
            }
            "configure the cache" => self.may("cs/config", &empty),
            "erase from the cache" => {
                let parameters = self.named(&mine);
                self.may("cs/erase", &parameters)
            }
            "choose a strategy" => {
                let strategy = Some(name("/localhost/nfd/strategy/multicast"));
                let set = ControlParameters { strategy, ..self.named(&mine) };
                let unset = self.named(&mine);
                self.may("strategy-choice/set", &set) && self.may("strategy-choice/unset", &unset)
            }
            "set the filter of the log" => {
                let parameters = ControlParameters { uri: Some("info".into()), ..empty };
                self.may("log/set", &parameters)
            }
            "read the log" => self.may_read("/localhost/onym/log/lines"),
            "watch packets" => self.may_read("/localhost/onym/dump/viewer%3D1"),
            "read the state" => self.may_read_state(),
            other => panic!("docs/security.md has a row that no test tries: {other}"),
        }
    }
}

/// The table: names of doors, and each attempt with its cells.
fn table() -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("<!-- doors of the node -->").unwrap();
    let (table, _) = rest.split_once("<!-- end -->").unwrap();
    let mut rows = table.lines().filter(|l| l.starts_with('|')).map(|line| {
        let cells = line.trim().trim_matches('|').split('|').map(|c| c.trim().to_owned());
        cells.collect::<Vec<String>>()
    });
    let doors = rows.next().unwrap()[1..].to_vec();
    let rows = rows.skip(1).map(|mut row| (row.remove(0), row));
    (doors, rows.collect())
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: other users can be played by root only");
    }
    root
}

#[test]
fn each_cell_of_the_table_is_so() {
    if !is_root() {
        return;
    }
    let (doors, rows) = table();
    assert!(doors.len() == 9 && rows.len() == 26, "{} doors, {} rows", doors.len(), rows.len());
    let place = Place::new(&[]);
    let mut number = 0;
    let mut wrong = Vec::new();
    for (what, cells) in &rows {
        assert_eq!(cells.len(), doors.len(), "{what}");
        for (door, cell) in doors.iter().zip(cells) {
            number += 1;
            let may = Cell::new(&place, door, number).attempt(what);
            let word = if may { "yes" } else { "no" };
            if word != cell {
                wrong.push(format!("{what}, {door}: {word} and not {cell}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let tried = TRIED.lock().unwrap().clone();
    let left: Vec<String> = onym_node::mgmt::verbs().filter(|verb| !tried.contains(verb)).collect();
    assert!(left.is_empty(), "no row tries {left:?}");
}

#[test]
fn one_key_lets_every_local_application_do_everything() {
    if !is_root() {
        return;
    }
    let (doors, rows) = table();
    let place = Place::new(&["management.open=true"]);
    let local = |door: &&String| !matches!(door.as_str(), "WebSocket" | "remote");
    for (number, (what, _)) in rows.iter().enumerate() {
        for (at, door) in doors.iter().filter(local).enumerate() {
            let number = number * 16 + at;
            assert!(Cell::new(&place, door, number).attempt(what), "{what}, {door}");
        }
    }
}
