//! What ends a request, and bounds, at a node that is played (P-77).

use super::*;
use onym_face::{Face as _, mem};
use onym_frame::{BufPool, TxQueue};
use onym_sys::epoll::{Epoll, Interest};
use onym_wire::mgmt::Scope;
use onym_wire::push::Label;
use onym_wire::push::app::{Message, kind};
use std::sync::mpsc::{Receiver, Sender, channel};

const DOMAIN: Strategy = Strategy::DOMAIN_LOCAL;
const SOON: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);

/// What the application published.
type Published = (Id, Vec<u8>);

/// A node that says yes to every request, and what it is told to say.
struct Played {
    say: Sender<Vec<u8>>,
    published: Receiver<Published>,
}

impl Played {
    fn app() -> (Self, App) {
        let (mut theirs, ours) = mem::pair(Scope::Local).unwrap();
        let ((say, to_say), (hear, published)) = (channel::<Vec<u8>>(), channel());
        std::thread::spawn(move || {
            let epoll = Epoll::new().unwrap();
            epoll.add(theirs.fd(), 0, Interest::Read).unwrap();
            let (mut pool, mut queue) =
                (BufPool::new(onym_face::CHUNK_LEN, 64), TxQueue::new(usize::MAX));
            let (mut frames, mut ready) = (Vec::new(), Vec::new());
            loop {
                while let Ok(octets) = to_say.try_recv() {
                    let _ = queue.push(&octets, None);
                }
                if theirs.receive(&mut pool, 64, &mut frames).is_err() {
                    return;
                }
                let is_idle = frames.is_empty();
                for frame in frames.drain(..) {
                    let message = Message::parse(&frame.bytes).unwrap();
                    if message.kind == kind::PUBLISH {
                        // The test may be over.
                        let _ = hear.send((message.id(), message.payload.to_vec()));
                        continue;
                    }
                    let answer = match message.kind {
                        kind::REGISTER => Message {
                            node: Some(Label::from_u64(1)),
                            number: 1,
                            length: Some(1 << 20),
                            ..Message::new(kind::REGISTERED, message.tag)
                        },
                        _ => Message {
                            status: Some(Status::OK),
                            ..Message::new(kind::STATUS, message.tag)
                        },
                    };
                    let _ = queue.push(&answer.octets(), None);
                }
                if theirs.flush(&mut queue).is_err() {
                    return;
                }
                ready.clear();
                if is_idle {
                    epoll.wait(Some(Duration::from_millis(1)), &mut ready).unwrap();
                }
            }
        });
        let app = App::over(Box::new(ours), "test").unwrap();
        (Self { say, published }, app)
    }

    fn say(&self, message: &Message<'_>) {
        self.say.send(message.octets()).unwrap();
    }

    fn says(&self, kind: Kind, id: &Id) {
        self.say(&Message { id: id.octets(), ..Message::new(kind, 0) });
    }

    fn publishes(&self, id: &Id, payload: &[u8]) {
        self.say(&Message { id: id.octets(), payload, ..Message::new(kind::DATA, 0) });
    }

    fn hears(&self) -> Published {
        self.published.recv_timeout(PATIENCE).unwrap()
    }
}

fn path() -> Path {
    "/1/echo".parse().unwrap()
}

/// A client for which a server is there, with the item of its replies.
fn client() -> (Played, Client, Id) {
    let (node, app) = Played::app();
    let client = Client::new(app, &path(), DOMAIN).unwrap();
    node.says(Kind::START, &client.item);
    let replies = client.replies.clone();
    (node, client, replies)
}

fn reply(number: u64, code: u8, octets: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &[code], octets].concat()
}

#[test]
fn each_end_of_a_request_is_told_as_what_it_was() {
    let (node, mut client, replies) = client();
    let number = client.send(b"x", PATIENCE).unwrap();
    client.app.drain().unwrap();
    assert_eq!(node.hears(), (client.item.clone(), [&number.to_be_bytes()[..], b"x"].concat()));
    // What nobody waits for, and what has no number, is nothing.
    node.publishes(&replies, &reply(number + 9, REPLIED, b"other"));
    node.publishes(&replies, b"short");
    node.publishes(&replies, &reply(number, REPLIED, b"yes"));
    node.publishes(&replies, &reply(number, REPLIED, b"of a second server"));
    let came = client.reply(PATIENCE).unwrap().unwrap();
    assert_eq!((came.number, &came.result.unwrap()[..]), (number, &b"yes"[..]));
    let end = |client: &mut Client, payload: Option<(u8, &[u8])>| {
        let number = client.send(b"x", PATIENCE).unwrap();
        if let Some((code, octets)) = payload {
            node.publishes(&replies, &reply(number, code, octets));
        }
        let came = client.reply(if payload.is_some() { PATIENCE } else { SOON }).unwrap();
        came.map_or_else(|| client.give_up(number), |reply| reply.result.unwrap_err())
    };
    let refused = end(&mut client, Some((REFUSED, &b"because"[..])));
    assert!(matches!(&refused, CallError::Refused(why) if why == "because"), "{refused:?}");
    let unknown = end(&mut client, Some((7, &b""[..])));
    assert!(matches!(unknown, CallError::Malformed), "{unknown:?}");
    let number = client.send(b"x", PATIENCE).unwrap();
    node.publishes(&replies, &number.to_be_bytes());
    let bare = client.reply(PATIENCE).unwrap().unwrap();
    assert!(matches!(bare.result, Err(CallError::Malformed)), "{bare:?}");
    let late = end(&mut client, None);
    assert!(matches!(late, CallError::Late), "{late:?}");
    let late = client.call(b"x", SOON);
    assert!(matches!(late, Err(CallError::Late)), "{late:?}");
    // Too late is no reply to the next one.
    node.publishes(&replies, &reply(client.last, REPLIED, b"late"));
    let lost = |status, number| Message { status, number, ..Message::new(kind::MISSED, 0) };
    let number = client.send(b"x", PATIENCE).unwrap();
    let again = client.send(b"x", PATIENCE).unwrap();
    node.say(&lost(Some(Status::UNREACHED), 3));
    node.say(&lost(None, 2));
    // Behind both, so that both came.
    node.publishes(&replies, &reply(number, REPLIED, b""));
    assert!(client.reply(PATIENCE).unwrap().unwrap().result.is_ok());
    let lost = client.give_up(again);
    assert!(matches!(lost, CallError::Lost(5)), "{lost:?}");
    let late = client.call(b"x", SOON);
    assert!(matches!(late, Err(CallError::Late)), "what was lost before is not its: {late:?}");
    let (first, second) =
        (client.send(b"1", PATIENCE).unwrap(), client.send(b"2", PATIENCE).unwrap());
    node.says(Kind::STOP, &client.item);
    for number in [first, second] {
        let gone = client.reply(PATIENCE).unwrap().unwrap();
        assert!(gone.number == number && matches!(gone.result, Err(CallError::Gone)), "{gone:?}");
    }
    let none = client.call(b"x", SOON);
    assert!(matches!(none, Err(CallError::NoServer(_))), "{none:?}");
}

#[test]
fn a_client_waits_for_so_many_replies_and_no_more() {
    let (node, mut client, replies) = client();
    let numbers: Vec<u64> = (0..OPEN_MAX).map(|_| client.send(b"", PATIENCE).unwrap()).collect();
    let full = client.send(b"", PATIENCE);
    assert!(matches!(full, Err(CallError::Full)), "{full:?}");
    // A reply that came and was not taken counts too.
    node.publishes(&replies, &reply(numbers[7], REPLIED, b""));
    assert!(matches!(client.send(b"", SOON), Err(CallError::Full)));
    assert_eq!(client.reply(PATIENCE).unwrap().unwrap().number, numbers[7]);
    client.send(b"", PATIENCE).unwrap();
    assert!(matches!(client.send(b"", SOON), Err(CallError::Full)));
    client.give_up(numbers[0]);
    client.send(b"", PATIENCE).unwrap();
    client.app.drain().unwrap();
    (0..OPEN_MAX + 2).for_each(|_| drop(node.hears()));
    assert!(node.published.try_recv().is_err(), "what was refused was not asked");
}

/// The item of requests or replies of the client with this token.
fn of_client(word: &str, client: u64) -> Id {
    path().beneath(word).id.child(Label::from_u64(client))
}

/// A request of the client with this token.
fn ask(node: &Played, server: &mut Server, client: u64, number: u64) -> Request {
    let calls = of_client(WORDS[0], client);
    node.publishes(&calls, &number.to_be_bytes());
    let request = server.request(Some(PATIENCE)).unwrap().unwrap();
    assert_eq!(request.client(), Label::from_u64(client));
    request
}

#[test]
fn a_server_knows_so_many_clients_and_forgets_who_asked_longest_ago() {
    let (node, app) = Played::app();
    let mut server = Server::new(app, &path(), DOMAIN).unwrap();
    let most = CLIENTS_MAX as u64;
    let mut requests: Vec<Request> =
        (0..most).map(|client| ask(&node, &mut server, client, 1)).collect();
    assert_eq!(server.clients(), CLIENTS_MAX);
    // The first one asks again: now the second one asked longest ago.
    ask(&node, &mut server, 0, 2);
    ask(&node, &mut server, most, 1);
    assert_eq!((server.clients(), server.unsent()), (CLIENTS_MAX, 0));
    let forgotten = requests.remove(1);
    server.reply(forgotten, b"to nobody").unwrap();
    assert_eq!(server.unsent(), 1);
    let replies = of_client(WORDS[1], 0);
    server.reply(requests.remove(0), b"yes").unwrap();
    node.says(Kind::START, &replies);
    let heard = loop {
        assert!(server.request(Some(SOON)).unwrap().is_none());
        if let Ok(heard) = node.published.try_recv() {
            break heard;
        }
    };
    assert_eq!(heard, (replies, reply(1, REPLIED, b"yes")));
}

#[test]
fn so_many_replies_wait_for_a_client_and_the_oldest_make_room() {
    let (node, app) = Played::app();
    let mut server = Server::new(app, &path(), DOMAIN).unwrap();
    let most = WAITING_MAX as u64;
    for number in 1..=most + 3 {
        let request = ask(&node, &mut server, 5, number);
        server.refuse(request, "no").unwrap();
    }
    assert_eq!(server.unsent(), 3);
    let replies = of_client(WORDS[1], 5);
    node.says(Kind::START, &replies);
    // A request behind it, so that it came.
    let request = ask(&node, &mut server, 5, 99);
    server.reply(request, b"now").unwrap();
    assert!(server.request(Some(SOON)).unwrap().is_none());
    for number in 4..=most + 3 {
        assert_eq!(node.hears(), (replies.clone(), reply(number, REFUSED, b"no")));
    }
    assert_eq!(node.hears(), (replies.clone(), reply(99, REPLIED, b"now")));
    // Who is gone is forgotten, with what waits for it.
    node.says(Kind::STOP, &replies);
    while server.clients() > 0 {
        assert!(server.request(Some(SOON)).unwrap().is_none());
    }
}
