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

#[test]
fn a_command_answers_what_the_command_line_asks() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let none = place.run(&["call", "/services/sort", "--text", "x", "--timeout", "0"]);
    assert_eq!(none.code, 5, "{}", none.err);
    assert!(none.err.contains("nobody serves requests there"), "{}", none.err);
    let script = "read -r word rest; [ \"$word\" = no ] && { echo because >&2; exit 1; }; \
                  printf '%s' \"$word$word\"";
    let mut server =
        place.start(&["answer", "/services/sort", "--count", "3", "--", "sh", "-c", script]);
    let call = |more: &[&str]| {
        place.run(&[&["call", "/services/sort", "--timeout", "60"][..], more].concat())
    };
    let told = call(&["--text", "so so\n"]);
    assert_eq!((told.code, &told.out[..]), (0, "soso"), "{}", told.err);
    let told = call(&["--text", "x\n", "--json"]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    let wanted = ("/services/sort", "xx", 2);
    assert_eq!(
        (&told["path"], &told["text"], &told["octets"]),
        (&wanted.0.into(), &wanted.1.into(), &wanted.2.into())
    );
    let refused = call(&["--text", "no\n"]);
    assert_eq!((refused.code, refused.out.is_empty()), (4, true), "{}", refused.err);
    assert!(refused.err.contains("the server refused: because"), "{}", refused.err);
    assert_eq!(server.end(), Some(0), "{}", server.err.text());
    wait_until("its last line is read", || server.out.text().lines().count() == 3);
    let text =
        ["answer", "/services/motto", "--text", "ad astra", "--timeout", "60", "--count", "1"];
    let mut server = place.start(&text);
    let file = place.path("reply");
    let output = file.to_str().unwrap();
    let asked =
        place.run(&["call", "/services/motto", "--text", "", "--timeout", "60", "-o", output]);
    assert_eq!((asked.code, asked.out.is_empty()), (0, true), "{}", asked.err);
    assert_eq!(std::fs::read(&file).unwrap(), b"ad astra");
    assert_eq!(server.end(), Some(0), "{}", server.err.text());
    let nobody = place.run(&["answer", "/services/motto", "--text", "x", "--timeout", "0"]);
    assert_eq!(nobody.code, 5, "{}", nobody.err);
}
