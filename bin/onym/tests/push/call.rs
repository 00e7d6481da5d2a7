//! Requests and replies over two nodes (P-76, P-77).

use super::two::{PATIENT, two_nodes_over_tcp};
use super::*;
use onym_client::push::call::{CallError, Client, Server};
use onym_wire::push::Path;

const DOMAIN: Strategy = Strategy::DOMAIN_LOCAL;

/// Serves: repeats what is asked, refuses "no", and ends with "end" without a reply.
fn serve(app: App, path: &Path) {
    let mut server = Server::new(app, path, DOMAIN).unwrap();
    while let Some(request) = server.request(Some(support::PATIENCE)).unwrap() {
        match &request.payload[..] {
            b"no" => server.refuse(request, "because").unwrap(),
            b"end" => return,
            _ => {
                let payload = request.payload.to_vec();
                server.reply(request, &payload).unwrap();
            }
        }
    }
    panic!("no request");
}

#[test]
fn a_request_is_replied_to_refused_or_failed_and_its_client_is_told_which() {
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let open = |i: usize| {
        let mut app = App::open(Some(&places[i].node()), "test").unwrap();
        app.publish_scope(&scope(1), DOMAIN).unwrap();
        app
    };
    let path: Path = "/1/echo".parse().unwrap();
    let mut clients = [0, 1].map(|at| Client::new(open(at), &path, DOMAIN).unwrap());
    let none = clients[0].call(b"x", Duration::from_millis(50));
    assert!(matches!(none, Err(CallError::NoServer(_))), "{none:?}");
    for at in [0, 1] {
        let (app, whose) = (open(at), path.clone());
        let server = std::thread::spawn(move || serve(app, &whose));
        let long = vec![7; 100_000];
        for client in &mut clients {
            for payload in [&b""[..], b"hello", &long] {
                assert_eq!(client.call(payload, support::PATIENCE).unwrap()[..], *payload);
            }
            let refused = client.call(b"no", support::PATIENCE);
            assert!(matches!(&refused, Err(CallError::Refused(why)) if why == "because"));
            let numbers: Vec<u64> = (0..200_u32)
                .map(|n| client.send(&n.to_be_bytes(), support::PATIENCE).unwrap())
                .collect();
            for (n, number) in (0..200_u32).zip(numbers) {
                let reply = client.reply(support::PATIENCE).unwrap().unwrap();
                assert_eq!(reply.number, number);
                assert_eq!(reply.result.unwrap()[..], n.to_be_bytes());
            }
        }
        let ended = clients[1].call(b"end", support::PATIENCE);
        assert!(matches!(ended, Err(CallError::Gone)), "{ended:?}");
        server.join().unwrap();
        for client in &mut clients {
            wait_until("the client knows that nobody serves", || {
                let none = client.call(b"x", Duration::from_millis(10));
                matches!(none, Err(CallError::NoServer(_)))
            });
        }
    }
}
