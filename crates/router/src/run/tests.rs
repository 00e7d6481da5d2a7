//! A border between `/net` and `/far`, and what routers with keys of one say in the other.

use super::*;
use crate::meet::lan::{Kind, Lan};
use crate::{Announce, Area, Keys};
use onym_crypto::cert::{Issue, validity_of_days};
use onym_crypto::signer::write_parameters;
use onym_crypto::{Certificate, KeyType, PrivateKey, Signer};
use onym_route::codec;
use onym_route::{CostBy, Names, names};
use onym_sys::netdev::Interface;
use onym_wire::faceuri::FaceUri;
use onym_wire::lp::LpHeader;
use onym_wire::name::Component;
use onym_wire::signature::SignatureInfo;
use onym_wire::{DataBuilder, Interest, InterestBuilder};

const FAR: usize = 1;
/// Links of the forwarder: to one neighbour, and to several.
const FACE: u64 = 300;
const LAN: u64 = 301;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// Somebody with a key.
struct Speaker {
    signer: Signer,
    certificate: Certificate,
}

struct Place {
    shell: Shell,
    folder: tempfile::TempDir,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shell.is_over.store(true, Ordering::Relaxed);
    }
}

fn border() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let area = |network: &str, discover| {
        let keys = folder.path().join(network.trim_start_matches('/'));
        Area {
            network: name(network),
            router: name(&format!("{network}/x")),
            links: Vec::new(),
            discover,
            accept: Vec::new(),
            state: None,
            keys: Some(keys),
            trust: None,
        }
    };
    let settings = Settings {
        // Nobody is there: the tests are the forwarder.
        node: format!("unix://{}", folder.path().join("none.sock").display()),
        areas: vec![area("/net", false), area("/far", true)],
        exports: Vec::new(),
        resolve_every: Duration::from_secs(30),
        advertise_interval: Duration::from_secs(5),
        dead_interval: Duration::from_secs(30),
        announce: Announce::Client,
        learned: false,
        readvertise: false,
        cost_by: CostBy::default(),
        link_watch: None,
    };
    let shell = Shell::new(settings, Arc::new(AtomicBool::new(false))).unwrap();
    Place { shell, folder }
}

impl Place {
    /// A router of `network` with a key by its authority.
    fn router(&self, network: &str) -> Speaker {
        let of = self.folder.path().join(network.trim_start_matches('/'));
        let own = self.folder.path().join(format!("of{}", network.replace('/', "-")));
        std::fs::create_dir_all(&own).unwrap();
        for file in ["network.cert", "network.key"] {
            std::fs::copy(of.join(file), own.join(file)).unwrap();
        }
        let keys = Keys::open(&own, &name(network), &name(&format!("{network}/a")), unix_now_ms());
        let Keys { signer, certificate, .. } = keys.unwrap();
        Speaker { signer, certificate }
    }

    /// A key named for a router of `/far`, by the authority of `/net`.
    fn impostor(&self, router: &str) -> Speaker {
        let read = |file: &str| std::fs::read(self.folder.path().join("net").join(file)).unwrap();
        let text = String::from_utf8(read("network.cert")).unwrap();
        let anchor = Certificate::from_text(&text).unwrap();
        let authority = PrivateKey::from_pkcs8(&read("network.key")).unwrap();
        let authority = Signer::key(authority, anchor.name().to_name());
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let mut of = name(router);
        of.append_keyword("DV").append_generic("KEY").append_generic("1");
        let now_ms = unix_now_ms();
        let request = Certificate::self_signed(of.as_ref(), &key, now_ms).unwrap();
        let validity = validity_of_days(now_ms, 30);
        let issue = Issue { issuer_id: Component::generic(b"NA"), now_ms, validity };
        let certificate = Certificate::issue(&request, &authority, &issue).unwrap();
        let signer = Signer::key(key, certificate.name().to_name());
        Speaker { signer, certificate }
    }

    /// Hands a packet in, which came by `face`; who asks for certificates gets that of `speaker`.
    fn hear(&mut self, face: u64, wire: &[u8], speaker: &Speaker) {
        self.take(face, wire, None);
        loop {
            self.shell.events();
            let now = self.shell.now();
            if let Some(output) = self.shell.router.poll_output() {
                self.shell.obey(now, output);
                continue;
            }
            let _ = self.shell.router.poll_transmit(now);
            let Some(sent) = self.shell.endpoint.poll_transmit() else { break };
            let asked = Interest::parse(&sent.wire).ok();
            let asked = asked.filter(|i| i.name.is_prefix_of(speaker.certificate.name()));
            if asked.is_some() {
                let certificate = speaker.certificate.wire().to_vec();
                self.take(face, &certificate, Some(&sent.pit_token));
            }
        }
    }

    fn take(&mut self, face: u64, wire: &[u8], token: Option<&[u8]>) {
        let header = LpHeader {
            incoming_face: Some(face),
            pit_token: token.unwrap_or_default(),
            ..LpHeader::default()
        };
        let mut frame = Vec::new();
        header.write(&mut frame, wire.len());
        frame.extend_from_slice(wire);
        self.shell.take(&frame);
    }

    /// Neighbours in both networks.
    fn neighbours(&self) -> [u64; 2] {
        [0, FAR].map(|at| self.shell.router.routers()[at].neighbour_counts().0)
    }

    /// Why the last that was said in `/far` was refused.
    fn refusal(&self) -> String {
        let view = self.shell.router.routers()[FAR].view(self.shell.now());
        view.refused.last().map(|refusal| refusal.why.clone()).unwrap_or_default()
    }
}

/// What the router says that it is alive, signed by `speaker`.
fn alive(router: &str) -> Vec<u8> {
    let (router, boot) = (name(router), unix_now_ms() / 1000);
    let hello =
        codec::Hello { router, boot, seq: 1, delta: None, heard: Vec::new(), goodbye: false };
    let mut content = Vec::new();
    hello.write(&mut content);
    content
}

/// An Interest under `to` with a Data of `speaker`.
fn said(to: &Name, data_name: &Name, content: &[u8], speaker: &Speaker) -> Vec<u8> {
    let info = SignatureInfo { time: Some(unix_now_ms()), ..speaker.signer.info() };
    let mut data = Vec::new();
    let builder = DataBuilder::new(data_name.as_ref(), content);
    builder.write(&mut data, &info, |part| speaker.signer.sign(&[part])).unwrap();
    let builder = InterestBuilder { nonce: Some([7; 4]), ..InterestBuilder::new(to.as_ref()) };
    let mut wire = Vec::new();
    write_parameters(&builder, &data, &mut wire);
    wire
}

fn far(router: &str) -> Names {
    Names::new(name("/far"), name(router)).unwrap()
}

fn hello(router: &str, speaker: &Speaker) -> Vec<u8> {
    let data_name = names::sync_data(name(router).as_ref());
    said(&far("/far/a").sync_active, &data_name, &alive(router), speaker)
}

#[test]
fn a_key_of_one_network_says_nothing_in_the_other() {
    let mut place = border();
    let stranger = place.router("/net");
    // It says to be a router of the other network.
    place.hear(FACE, &hello("/far/a", &stranger), &stranger);
    assert_eq!(place.neighbours(), [0, 0]);
    assert!(place.refusal().contains("expected is a key of /far/a/32=DV"), "{}", place.refusal());
    // It speaks there as who it is.
    place.hear(FACE, &hello("/net/a", &stranger), &stranger);
    assert_eq!(place.neighbours(), [0, 0]);
    // Its key has the right name, by the authority of the wrong network.
    let impostor = place.impostor("/far/b");
    place.hear(FACE, &hello("/far/b", &impostor), &impostor);
    assert_eq!(place.neighbours(), [0, 0]);
    assert!(!place.refusal().contains("/far/a"), "it was looked at: {}", place.refusal());
    // A router of the other network is heard there, and only there.
    let router = place.router("/far");
    place.hear(FACE, &hello("/far/a", &router), &router);
    assert_eq!(place.neighbours(), [0, 1]);
    // Nor is it heard where it has no key.
    let in_net = Names::new(name("/net"), name("/net/x")).unwrap();
    let data_name = names::sync_data(name("/net/b").as_ref());
    let wire = said(&in_net.sync_active, &data_name, &alive("/net/b"), &router);
    place.hear(FACE, &wire, &router);
    assert_eq!(place.neighbours(), [0, 1]);
}

#[test]
fn a_key_of_one_network_changes_no_prefix_table_of_the_other() {
    let mut place = border();
    let names = far("/far/a");
    let mut to = names.prefix_sync.clone();
    to.append_version(3);
    let mut vector = names.prefixes_of(names.router.as_ref());
    vector.append_timestamp(1).append_keyword("svs").append_version(3);
    let speakers =
        [(place.router("/net"), 1), (place.impostor("/far/a"), 2), (place.router("/far"), 2)];
    for (speaker, refused) in speakers {
        place.hear(FACE, &said(&to, &vector, &alive("/far/a"), &speaker), &speaker);
        let view = place.shell.router.routers()[FAR].view(Tick(0));
        assert_eq!(view.counters.refused, refused, "by {}", speaker.certificate.name());
    }
}

#[test]
fn neighbours_in_a_further_network_are_met_by_its_keys() {
    let mut place = border();
    let mac = [2, 0, 0, 0, 0, 1];
    let interface = Interface { name: "lan0".into(), mac: Some(mac), ..Interface::default() };
    let reach = Some(FaceUri::Ether(mac));
    let lan = Lan { face: LAN, kind: Kind::Ether, interface, reach };
    let now = place.shell.now();
    place.shell.meetings_see(now, Some(vec![lan]));
    assert!(place.shell.areas[0].meeting.is_none(), "the first network does not look");
    let greeting = |speaker: &Speaker| {
        let reach = vec![FaceUri::Ether([2, 0, 0, 0, 0, 9])];
        let (router, signed_ms) = (name("/far/a"), unix_now_ms());
        let hello = Hello { router, signed_ms, interval_ms: 1000, reach };
        hello.write(&far("/far/a"), &speaker.signer, [3; 4]).unwrap()
    };
    let counted = |place: &Place| {
        let meet = &place.shell.areas[FAR].meeting.as_ref().unwrap().meet;
        (meet.counters.taken, meet.counters.refused)
    };
    for (speaker, count) in [(place.router("/net"), 1), (place.impostor("/far/a"), 2)] {
        place.hear(LAN, &greeting(&speaker), &speaker);
        assert_eq!(counted(&place), (0, count));
    }
    let router = place.router("/far");
    place.hear(LAN, &greeting(&router), &router);
    assert_eq!(counted(&place), (1, 2));
}

#[test]
fn a_link_that_one_network_has_is_not_made_one_of_another() {
    let mut place = border();
    let router = place.router("/net");
    let in_net = Names::new(name("/net"), name("/net/x")).unwrap();
    let data_name = names::sync_data(name("/net/a").as_ref());
    let wire = said(&in_net.sync_active, &data_name, &alive("/net/a"), &router);
    place.hear(FACE, &wire, &router);
    assert_eq!(place.neighbours(), [1, 0]);
    let routers = place.shell.router.routers();
    assert!(routers[0].has_face(FACE) && !routers[FAR].has_face(FACE));
    let now = place.shell.now();
    let done = |face| Ok(crate::command::Done { face: Some(face), is_new: false });
    for (face, links) in [(FACE, 0), (FACE + 1, 1)] {
        let meeting = place.shell.areas[FAR].meeting.as_mut().unwrap();
        let id = meeting.meet.make_for_tests(now, &format!("udp4://192.0.2.{links}:6363"));
        place.shell.met(now, FAR, id, done(face));
        assert_eq!(place.shell.router.routers()[FAR].view(now).links.len(), links);
    }
}
