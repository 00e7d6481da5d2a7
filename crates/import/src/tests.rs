#![allow(clippy::unwrap_used)]

use super::*;

fn nfd(text: &str) -> Imported {
    import(Origin::Nfd, text).unwrap()
}

fn ndnd(text: &str) -> Imported {
    import(Origin::Ndnd, text).unwrap()
}

fn value(imported: &Imported, path: &str) -> Option<String> {
    let mut names = path.split('.');
    let first = imported.table.get(names.next().unwrap())?;
    names.try_fold(first, |value, name| value.get(name)).map(ToString::to_string)
}

fn is(imported: &Imported, path: &str, wanted: &str) {
    assert_eq!(value(imported, path).as_deref(), Some(wanted), "{path}");
}

const SAMPLE: &str = r#"; as a distribution ships it
general { user ndn
 group ndn
}
log { default_level DEBUG
  Forwarder TRACE
}
forwarder { default_hop_limit 8 }
tables
{
  cs_max_packets 1000
  cs_policy priority_fifo
  cs_unsolicited_policy admit-local
  strategy_choice {
    /               /localhost/nfd/strategy/best-route
    /ndn/broadcast  /localhost/nfd/strategy/multicast
  }
  network_region { /example/region1 }
}
face_system
{
  general { enable_congestion_marking no }
  unix { path /run/nfd/nfd.sock }
  tcp { listen yes
    port 7000
    enable_v6 no
    local { whitelist { subnet 10.0.0.0/8 }
            blacklist { subnet 10.1.0.0/16 } }
  }
  udp { unicast_mtu 1400
    mcast_group 224.0.23.171
    whitelist { ifname eth0
      ifname wl* }
    keep_alive_interval 25
  }
  ether { whitelist { * } }
}
authorizations
{
  authorize { certfile any
    privileges { faces
      fib } }
  authorize { certfile keys/admin.ndncert
    privileges { cs } }
}
rib { localhop_security { trust-anchor { type any } } }
"#;

#[test]
fn what_nfd_says_is_said_in_our_words() {
    let imported = nfd(SAMPLE);
    for (path, wanted) in [
        ("log.filter", "\"debug\""),
        ("forward.default_hop_limit", "8"),
        ("forward.network_regions", "[\"/example/region1\"]"),
        ("cs.packets_max", "1000"),
        ("cs.policy", "\"priority-fifo\""),
        ("cs.unsolicited", "\"admit-local\""),
        ("faces.congestion.marking", "false"),
        ("faces.unix.path", "\"/run/nfd/nfd.sock\""),
        ("faces.tcp.listen", "[\"0.0.0.0:7000\"]"),
        ("faces.tcp.local", "[\"10.0.0.0/8\"]"),
        ("faces.udp.listen", "[\"0.0.0.0:6363\", \"[::]:6363\"]"),
        ("faces.udp.mtu", "1400"),
        ("faces.udp.multicast", "[\"224.0.23.171:56363\", \"[ff02::1234]:56363\"]"),
        ("faces.udp.multicast_interfaces", "[\"eth0\"]"),
        // The section is not there: NFD listens for none.
        ("faces.websocket.listen", "[]"),
    ] {
        is(&imported, path, wanted);
    }
    let strategy = imported.table["strategy"].as_table().unwrap();
    assert_eq!(strategy["/ndn/broadcast"].as_str(), Some("/localhost/nfd/strategy/multicast"));
    assert_eq!(strategy.len(), 2);
}

#[test]
fn what_has_no_equivalent_is_told_with_its_line() {
    let imported = nfd(SAMPLE);
    let told: Vec<(usize, &str)> =
        imported.notes.iter().map(|note| (note.line, note.text.as_str())).collect();
    let lines: Vec<usize> = told.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3, 6, 28, 33, 36, 40, 46], "{told:#?}");
    assert!(lines.is_sorted());
    let text = imported.to_toml("nfd.conf").unwrap();
    assert!(text.starts_with("# nfd.conf:2: general.user is not carried over"), "{text}");
    // The text is read back as the same table: notes are comments.
    assert_eq!(text.parse::<toml::Table>().unwrap(), imported.table);
}

#[test]
fn a_rule_that_lets_everybody_in_is_not_written() {
    let imported = nfd(SAMPLE);
    let rules = imported.table["authorize"].as_array().unwrap();
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(rules[0]["who"].as_str(), Some("keys/admin.ndncert"));
    let shown = imported.notes.iter().find(|note| note.text.contains("certfile any")).unwrap();
    assert!(shown.text.contains("may = [\"faces\", \"fib\"]"), "{}", shown.text);
}

const YANFD: &str = "\
core:
  log_level: WARN
  log_file: /tmp/log
faces:
  queue_size: 1024
  congestion_marking: false
  udp:
    port_unicast: 7000
    lifetime: 60
  tcp:
    enabled: false
    reconnect_interval: 3
  unix:
    socket_path: /run/nfd.sock
  websocket:
    enabled: true
    bind: '::1'
  http3:
    enabled: true
    bind: 127.0.0.1
    port: 7443
    tls_cert: node.pem
    tls_key: node.key
fw:
  threads: 4
mgmt:
  allow_localhop: true
tables:
  content_store: {capacity: 512, admit: true, replacement_policy: lru}
  dead_nonce_list: {lifetime: 3000}
  network_region: {regions: [/a, /b]}
  fib: {algorithm: hashtable, hashtable: {m: 5}}
";

#[test]
fn what_ndnd_says_is_said_in_our_words() {
    let imported = ndnd(YANFD);
    for (path, wanted) in [
        ("log.filter", "\"warn\""),
        ("shards", "4"),
        // Its bound is one of each thread.
        ("cs.packets_max", "2048"),
        ("tables.dead_nonce_lifetime_ms", "3000"),
        ("forward.network_regions", "[\"/a\", \"/b\"]"),
        ("faces.udp.listen", "[\"0.0.0.0:7000\", \"[::]:7000\"]"),
        ("faces.udp.mtu", "1420"),
        ("faces.udp.multicast", "[\"224.0.23.170:56363\", \"[ff02::114]:56363\"]"),
        ("faces.idle_timeout_s", "60"),
        ("faces.tcp.listen", "[]"),
        ("faces.reconnect_min_ms", "3000"),
        ("faces.websocket.listen", "[\"[::1]:9696\"]"),
        ("faces.quic.listen", "[\"127.0.0.1:7443\"]"),
        ("faces.quic.certificate", "\"node.pem\""),
        ("faces.quic.key", "\"node.key\""),
    ] {
        is(&imported, path, wanted);
    }
    let lines: Vec<usize> = imported.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [3, 5, 26], "{:#?}", imported.notes);
}

#[test]
fn the_certificate_that_ndnd_shows_to_browsers_is_shown_on() {
    let text = "faces:\n  websocket:\n    tls_enabled: true\n    port: 9697\n";
    let whole = format!("{text}    tls_cert: node.pem\n    tls_key: node.key\n");
    let imported = ndnd(&whole);
    is(&imported, "faces.websocket.listen", "[]");
    is(&imported, "faces.websocket.tls_listen", "[\"0.0.0.0:9697\", \"[::]:9697\"]");
    is(&imported, "faces.websocket.tls_certificate", "\"node.pem\"");
    is(&imported, "faces.websocket.tls_key", "\"node.key\"");
    let imported = ndnd(text);
    is(&imported, "faces.websocket.listen", "[]");
    assert_eq!(imported.notes.len(), 1, "{:#?}", imported.notes);
}

#[test]
fn the_combined_file_of_ndnd_brings_its_routing() {
    let inner = YANFD.replace('\n', "\n  ");
    let combined = format!(
        "fw:\n  {inner}\ndv:\n  network: /site\n  router: /site/one\n  keychain: insecure\n  \
         neighbors:\n  - uri: udp://192.0.2.1:6363\n    mtu: 1400\n  - uri: udp://192.0.2.2:6363\n"
    );
    let imported = ndnd(&combined);
    is(&imported, "shards", "4");
    is(&imported, "routing.network", "\"/site\"");
    is(&imported, "routing.insecure", "true");
    let neighbours = imported.table["routing"]["neighbour"].as_array().unwrap();
    assert_eq!(neighbours.len(), 2);
    assert_eq!(neighbours[0]["mtu"].as_integer(), Some(1400));
}

#[test]
fn an_unknown_key_is_told_and_a_bad_value_refused_with_its_line() {
    let imported = nfd("tables {\n  cs_flavour sweet\n}\nweather { sunny yes }\n");
    let told: Vec<String> =
        imported.notes.iter().map(|note| format!("{}: {}", note.line, note.text)).collect();
    assert!(told[0].starts_with("2: tables.cs_flavour is not a key"), "{told:?}");
    assert!(told[1].starts_with("4: weather is not a key"), "{told:?}");
    for (origin, text, wanted) in [
        (
            Origin::Nfd,
            "tables {\n cs_max_packets many\n}",
            "line 2: tables.cs_max_packets is \"many\", no number in range",
        ),
        (
            Origin::Nfd,
            "face_system {\n tcp {\n listen perhaps\n }\n}",
            "line 3: face_system.tcp.listen is \"perhaps\", not yes or no",
        ),
        (Origin::Nfd, "a {", "line 1: the braces of \"a\" are not closed"),
        (
            Origin::Ndnd,
            "core:\n  log_level: LOUD\n",
            "line 2: core.log_level is \"LOUD\", no level",
        ),
        (Origin::Ndnd, "just words", "line 1: a section with keys is wanted here"),
        (Origin::Ndnd, "a: 1\n---\nb: 2\n", "line 2: a second document begins here"),
    ] {
        assert_eq!(import(origin, text).unwrap_err().to_string(), wanted, "{text}");
    }
}

#[test]
fn deep_or_long_texts_are_refused_before_they_cost_much() {
    for text in ["[".repeat(100_000), "- ".repeat(5_000), format!("a: {}", "{b: ".repeat(200))] {
        assert!(import(Origin::Ndnd, &text).is_err());
    }
    assert!(import(Origin::Ndnd, &" ".repeat((4 << 20) + 1)).is_err());
    // Aliases that would expand to billions.
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let list = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{list}]\n"));
    }
    assert!(import(Origin::Ndnd, &text).is_err());
    assert!(import(Origin::Nfd, &"a {\n".repeat(100)).is_err());
}

#[test]
fn a_name_with_control_characters_stays_in_its_comment() {
    let imported = nfd("log { \"x\\ny\" \"1\\n[face]\" }\n");
    let text = imported.to_toml("a\nb").unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 1, "{text}");
    assert_eq!(text.parse::<toml::Table>().unwrap(), imported.table);
}
