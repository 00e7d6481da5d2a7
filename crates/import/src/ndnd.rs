//! `yanfd.yml` of ndnd, and the combined file of its daemon (`fw:`, `dv:`, `repo:` at the top).

use crate::draft::Draft;
use crate::tree::{Section, Text};
use crate::{Error, Outcome};
use toml::{Table, Value};

/// Forwarding threads where `fw.threads` is not said; its cache is bounded for each of them.
const THREADS: i64 = 8;

pub(crate) fn import(mut root: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(dv) = root.section("dv") {
        routing(dv, draft)?;
    }
    root.without(
        "repo",
        "`onym repo` keeps objects; `onym repo --help` shows how to start it",
        draft,
    );
    // In the combined file `fw` is the whole of yanfd.yml; alone it is a section of that.
    let Some(mut fw) = root.section("fw") else { return forwarder(root, None, draft) };
    let inner = ["core", "faces", "mgmt", "tables"].iter().any(|key| fw.has(key));
    if inner {
        let threads = fw.section("fw");
        forwarder(fw, threads, draft)?;
        root.end(draft);
        return Ok(());
    }
    forwarder(root, Some(fw), draft)
}

fn forwarder(mut root: Section, fw: Option<Section>, draft: &mut Draft) -> Outcome<()> {
    let mut threads = THREADS;
    if let Some(mut fw) = fw {
        if let Some(count) = fw.number::<u8>("threads")? {
            threads = i64::from(count);
            draft.set("shards", threads.min(64));
        }
        fw.without("queue_size", "queues are bounded in octets, faces.queue_bytes_max", draft);
        fw.ignore("lock_threads_to_cores");
        fw.end(draft);
    }
    if let Some(core) = root.section("core") {
        log(core, draft)?;
    }
    if let Some(section) = root.section("faces") {
        faces(section, draft)?;
    }
    if let Some(mut mgmt) = root.section("mgmt") {
        let line = mgmt.line;
        if mgmt.switch("allow_localhop")?.unwrap_or(false) {
            draft.note(line, "mgmt.allow_localhop is not carried over: it takes commands of strangers. rib.localhop = true takes registrations that certificates of rib.localhop_anchors have signed");
        }
        mgmt.end(draft);
    }
    if let Some(section) = root.section("tables") {
        tables(section, threads, draft)?;
    }
    root.end(draft);
    Ok(())
}

fn log(mut core: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(Text { line, text }) = core.text("log_level") {
        let filter = match text.to_ascii_uppercase().as_str() {
            "TRACE" => "trace",
            "DEBUG" => "debug",
            "INFO" => "info",
            "WARN" => "warn",
            "ERROR" | "FATAL" => "error",
            _ => return Err(Error { line, what: format!("core.log_level is {text:?}, no level") }),
        };
        draft.set("log.filter", filter);
    }
    if let Some(Text { line, text }) = core.text("log_file")
        && !text.is_empty()
    {
        draft.note(line, "core.log_file is not carried over: the log goes to standard error, which the service that starts the node keeps");
    }
    core.end(draft);
    Ok(())
}

fn faces(mut faces: Section, draft: &mut Draft) -> Outcome<()> {
    faces.without("queue_size", "queues are bounded in octets, faces.queue_bytes_max", draft);
    faces.ignore("lock_threads_to_cores");
    if let Some(marking) = faces.switch("congestion_marking")? {
        draft.set("faces.congestion.marking", marking);
    }
    if let Some(section) = faces.section("udp") {
        udp(section, draft)?;
    }
    if let Some(mut tcp) = faces.section("tcp") {
        let port = tcp.number("port_unicast")?.unwrap_or(6363_u16);
        let on = tcp.switch("enabled")?.unwrap_or(true);
        draft.set("faces.tcp.listen", if on { everywhere(port) } else { Vec::new() });
        if let Some(seconds) = tcp.number::<u32>("reconnect_interval")? {
            draft.set("faces.reconnect_min_ms", i64::from(seconds) * 1000);
        }
        tcp.without("lifetime", "connections stay until one end closes them", draft);
        tcp.end(draft);
    }
    if let Some(mut unix) = faces.section("unix") {
        let path = unix.text("socket_path").map(|path| path.text);
        match (unix.switch("enabled")?.unwrap_or(true), path) {
            (false, _) => draft.set("faces.unix.path", ""),
            (true, Some(path)) => draft.set("faces.unix.path", path),
            (true, None) => {}
        }
        unix.end(draft);
    }
    if let Some(section) = faces.section("websocket") {
        websocket(section, draft)?;
    }
    if let Some(mut http3) = faces.section("http3") {
        let on = http3.switch("enabled")?.unwrap_or(false);
        let listen = one_address(&mut http3, 443)?;
        let files = ["tls_cert", "tls_key"].map(|key| http3.text(key).map(|file| file.text));
        if let (true, [Some(certificate), Some(key)]) = (on, files) {
            draft.set("faces.quic.listen", listen);
            draft.set("faces.quic.certificate", certificate);
            draft.set("faces.quic.key", key);
        }
        http3.end(draft);
    }
    faces.end(draft);
    Ok(())
}

fn everywhere(port: u16) -> Vec<Value> {
    vec![format!("0.0.0.0:{port}").into(), format!("[::]:{port}").into()]
}

fn udp(mut udp: Section, draft: &mut Draft) -> Outcome<()> {
    let port = udp.number("port_unicast")?.unwrap_or(6363_u16);
    let on = udp.switch("enabled_unicast")?.unwrap_or(true);
    draft.set("faces.udp.listen", if on { everywhere(port) } else { Vec::new() });
    let port = udp.number("port_multicast")?.unwrap_or(56363_u16);
    let v4 = udp.text("multicast_address_ipv4").map_or("224.0.23.170".into(), |a| a.text);
    let v6 = udp.text("multicast_address_ipv6").map_or("ff02::114".into(), |a| a.text);
    if udp.switch("enabled_multicast")?.unwrap_or(true) {
        let groups =
            vec![Value::from(format!("{v4}:{port}")), Value::from(format!("[{v6}]:{port}"))];
        draft.set("faces.udp.multicast", groups);
    }
    if let Some(seconds) = udp.number::<u32>("lifetime")? {
        draft.set("faces.idle_timeout_s", i64::from(seconds));
    }
    // Its default keeps clear of IP fragments; ours does not.
    let mtu = udp.number::<u16>("default_mtu")?.unwrap_or(1420);
    draft.set("faces.udp.mtu", i64::from(mtu));
    udp.end(draft);
    Ok(())
}

fn websocket(mut section: Section, draft: &mut Draft) -> Outcome<()> {
    let listen = one_address(&mut section, 9696)?;
    let on = section.switch("enabled")?.unwrap_or(true);
    let tls = section.switch("tls_enabled")?.unwrap_or(false);
    let files = ["tls_cert", "tls_key"].map(|key| section.text(key).map(|file| file.text));
    let nowhere = Vec::<Value>::new;
    match (on, tls, files) {
        (true, true, [Some(certificate), Some(key)]) => {
            draft.set("faces.websocket.listen", nowhere());
            draft.set("faces.websocket.tls_listen", listen);
            draft.set("faces.websocket.tls_certificate", certificate);
            draft.set("faces.websocket.tls_key", key);
        }
        (true, true, _) => {
            draft.set("faces.websocket.listen", nowhere());
            draft.note(section.line, "faces.websocket.tls_enabled is not carried over: tls_cert and tls_key are not both there");
        }
        (true, false, _) => draft.set("faces.websocket.listen", listen),
        (false, ..) => draft.set("faces.websocket.listen", nowhere()),
    }
    section.end(draft);
    Ok(())
}

/// The address of a section with `bind` and `port`.
fn one_address(section: &mut Section, usual: u16) -> Outcome<Vec<Value>> {
    let port = section.number("port")?.unwrap_or(usual);
    let bind = section.text("bind").map(|bind| bind.text).unwrap_or_default();
    Ok(match bind.as_str() {
        "" => everywhere(port),
        address if address.contains(':') => vec![format!("[{address}]:{port}").into()],
        address => vec![format!("{address}:{port}").into()],
    })
}

fn tables(mut tables: Section, threads: i64, draft: &mut Draft) -> Outcome<()> {
    if let Some(mut store) = tables.section("content_store") {
        if let Some(capacity) = store.number::<u32>("capacity")? {
            draft.set("cs.packets_max", i64::from(capacity) * threads);
        }
        if let Some(admit) = store.switch("admit")? {
            draft.set("cs.admit", admit);
        }
        if let Some(serve) = store.switch("serve")? {
            draft.set("cs.serve", serve);
        }
        if let Some(Text { text, .. }) = store.text("replacement_policy") {
            draft.set("cs.policy", text);
        }
        store.end(draft);
    }
    if let Some(mut nonces) = tables.section("dead_nonce_list") {
        if let Some(lifetime) = nonces.number::<u32>("lifetime")? {
            draft.set("tables.dead_nonce_lifetime_ms", i64::from(lifetime));
        }
        nonces.end(draft);
    }
    if let Some(mut region) = tables.section("network_region") {
        let names: Vec<Value> = region.list("regions").into_iter().map(|n| n.text.into()).collect();
        draft.set("forward.network_regions", names);
        region.end(draft);
    }
    if let Some(mut rib) = tables.section("rib") {
        rib.without(
            "readvertise_nlsr",
            "prefixes of applications are announced by [routing]",
            draft,
        );
        rib.end(draft);
    }
    // How its table is built changes nothing that is seen.
    tables.ignore("fib");
    tables.end(draft);
    Ok(())
}

fn routing(mut dv: Section, draft: &mut Draft) -> Outcome<()> {
    let keys = "`onym key import` reads the keys; routing.folder holds network.cert, router.key and router.cert";
    if let Some(Text { text, .. }) = dv.text("network") {
        draft.set("routing.network", text);
    }
    if let Some(Text { text, .. }) = dv.text("router") {
        draft.set("routing.router", text);
    }
    if let Some(ms) = dv.number::<u32>("advertise_interval")? {
        draft.set("routing.advertise_interval_ms", i64::from(ms));
    }
    if let Some(ms) = dv.number::<u32>("router_dead_interval")? {
        draft.set("routing.dead_interval_ms", i64::from(ms));
    }
    match dv.text("keychain") {
        Some(Text { text, .. }) if text == "insecure" => draft.set("routing.insecure", true),
        Some(Text { line, .. }) => {
            draft.note(line, format!("dv.keychain is not carried over: {keys}"))
        }
        None => {}
    }
    dv.without("trust_anchors", keys, draft);
    if let Some(mut list) = dv.section("neighbors") {
        for mut neighbour in list.items() {
            let mut entry = Table::new();
            if let Some(Text { text, .. }) = neighbour.text("uri") {
                entry.insert("uri".into(), text.into());
            }
            if let Some(mtu) = neighbour.number::<u16>("mtu")? {
                entry.insert("mtu".into(), i64::from(mtu).into());
            }
            draft.push("routing.neighbour", entry);
            neighbour.end(draft);
        }
    }
    dv.end(draft);
    Ok(())
}
