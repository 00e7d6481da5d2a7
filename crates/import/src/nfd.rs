//! `nfd.conf`, as NFD 24.07 documents it in its sample.

use crate::draft::Draft;
use crate::tree::{Section, Text};
use crate::{Error, Outcome};
use toml::{Table, Value};

const PORT: u16 = 6363;
const WEBSOCKET_PORT: u16 = 9696;

pub(crate) fn import(mut root: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(general) = root.section("general") {
        account(general, draft);
    }
    if let Some(log) = root.section("log") {
        level(log, draft)?;
    }
    if let Some(mut forwarder) = root.section("forwarder") {
        if let Some(hops) = forwarder.number::<u8>("default_hop_limit")? {
            draft.set("forward.default_hop_limit", i64::from(hops));
        }
        forwarder.end(draft);
    }
    if let Some(tables) = root.section("tables") {
        fill(tables, draft)?;
    }
    if let Some(faces) = root.section("face_system") {
        face_system(faces, draft)?;
    }
    if let Some(authorizations) = root.section("authorizations") {
        authorize(authorizations, draft);
    }
    if let Some(rib) = root.section("rib") {
        registration(rib, draft);
    }
    root.end(draft);
    Ok(())
}

fn account(mut general: Section, draft: &mut Draft) {
    let instead =
        "the service that starts the node says as whom it runs (User=, Group= of its unit)";
    general.without("user", instead, draft);
    general.without("group", instead, draft);
    general.end(draft);
}

fn level(mut log: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(Text { line, text }) = log.text("default_level") {
        let filter = match text.as_str() {
            "NONE" => "off",
            "ERROR" => "error",
            "WARN" => "warn",
            "INFO" => "info",
            "DEBUG" => "debug",
            "TRACE" | "ALL" => "trace",
            _ => {
                return Err(Error {
                    line,
                    what: format!("log.default_level is {text:?}, no level"),
                });
            }
        };
        draft.set("log.filter", filter);
    }
    for (module, Text { line, text }) in log.rest() {
        draft.note(line, format!("log.{module} {text} is not carried over: modules have other names, as in log.filter = \"info,onym_face=debug\""));
    }
    Ok(())
}

fn fill(mut tables: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(packets) = tables.number::<u32>("cs_max_packets")? {
        draft.set("cs.packets_max", i64::from(packets));
    }
    if let Some(Text { text, .. }) = tables.text("cs_policy") {
        draft.set("cs.policy", text.replace('_', "-"));
    }
    if let Some(Text { text, .. }) = tables.text("cs_unsolicited_policy") {
        draft.set("cs.unsolicited", text);
    }
    if let Some(mut choice) = tables.section("strategy_choice") {
        for (prefix, Text { text, .. }) in choice.rest() {
            draft.strategy(&prefix, &text);
        }
    }
    if let Some(mut regions) = tables.section("network_region") {
        let names: Vec<Value> = regions.rest().into_iter().map(|(name, _)| name.into()).collect();
        draft.set("forward.network_regions", names);
    }
    tables.end(draft);
    Ok(())
}

fn face_system(mut faces: Section, draft: &mut Draft) -> Outcome<()> {
    if let Some(mut general) = faces.section("general") {
        if let Some(marking) = general.switch("enable_congestion_marking")? {
            draft.set("faces.congestion.marking", marking);
        }
        general.end(draft);
    }
    // A section that is not there switches its faces off.
    match faces.section("unix") {
        Some(mut unix) => {
            if let Some(Text { text, .. }) = unix.text("path") {
                draft.set("faces.unix.path", text);
            }
            unix.end(draft);
        }
        None => draft.set("faces.unix.path", ""),
    }
    match faces.section("tcp") {
        Some(section) => tcp(section, draft)?,
        None => draft.set("faces.tcp.listen", Vec::<Value>::new()),
    }
    match faces.section("udp") {
        Some(section) => udp(section, draft)?,
        None => draft.set("faces.udp.listen", Vec::<Value>::new()),
    }
    if let Some(section) = faces.section("ether") {
        ether(section, draft)?;
    }
    match faces.section("websocket") {
        Some(mut section) => {
            let listen = listeners(&mut section, WEBSOCKET_PORT)?;
            draft.set("faces.websocket.listen", listen);
            section.end(draft);
        }
        None => draft.set("faces.websocket.listen", Vec::<Value>::new()),
    }
    if let Some(mut bound) = faces.section("netdev_bound") {
        let instead = "a [[face]] for each remote, with its local end in face.local";
        bound.without("rule", instead, draft);
        bound.end(draft);
    }
    faces.end(draft);
    Ok(())
}

/// The addresses of `listen`, `port`, `enable_v4` and `enable_v6`.
fn listeners(section: &mut Section, port: u16) -> Outcome<Vec<Value>> {
    let port = section.number("port")?.unwrap_or(port);
    let v4 = section.switch("enable_v4")?.unwrap_or(true);
    let v6 = section.switch("enable_v6")?.unwrap_or(true);
    if !section.switch("listen")?.unwrap_or(true) {
        return Ok(Vec::new());
    }
    let both = [(v4, format!("0.0.0.0:{port}")), (v6, format!("[::]:{port}"))];
    Ok(both.into_iter().filter(|(on, _)| *on).map(|(_, address)| address.into()).collect())
}

fn tcp(mut section: Section, draft: &mut Draft) -> Outcome<()> {
    let listen = listeners(&mut section, PORT)?;
    draft.set("faces.tcp.listen", listen);
    if let Some(mut local) = section.section("local") {
        if let Some(mut list) = local.section("whitelist") {
            let mut subnets = Vec::new();
            for (key, Text { line, text }) in list.rest() {
                match key.as_str() {
                    "subnet" => subnets.push(Value::from(text)),
                    _ => draft.note(line, format!("face_system.tcp.local.whitelist.{key} is not carried over: faces.tcp.local takes subnets")),
                }
            }
            draft.set("faces.tcp.local", subnets);
        }
        if let Some(list) = local.section("blacklist") {
            exceptions(list, "leave these subnets out of faces.tcp.local", draft);
        }
        local.end(draft);
    }
    section.end(draft);
    Ok(())
}

fn udp(mut section: Section, draft: &mut Draft) -> Outcome<()> {
    let listen = listeners(&mut section, PORT)?;
    draft.set("faces.udp.listen", listen);
    if let Some(seconds) = section.number::<u32>("idle_timeout")? {
        draft.set("faces.idle_timeout_s", i64::from(seconds));
    }
    if let Some(mtu) = section.number::<u16>("unicast_mtu")? {
        draft.set("faces.udp.mtu", i64::from(mtu));
    }
    section.ignore("keep_alive_interval");
    if section.switch("mcast")?.unwrap_or(true) {
        let group = section.text("mcast_group").map_or("224.0.23.170".into(), |group| group.text);
        let group_v6 =
            section.text("mcast_group_v6").map_or("ff02::1234".into(), |group| group.text);
        let port = section.number("mcast_port")?.unwrap_or(56363_u16);
        let port_v6 = section.number("mcast_port_v6")?.unwrap_or(56363_u16);
        let groups = vec![
            Value::from(format!("{group}:{port}")),
            Value::from(format!("[{group_v6}]:{port_v6}")),
        ];
        draft.set("faces.udp.multicast", groups);
    } else {
        for key in ["mcast_group", "mcast_group_v6", "mcast_port", "mcast_port_v6"] {
            section.ignore(key);
        }
    }
    if let Some(ad_hoc) = section.switch("mcast_ad_hoc")? {
        draft.set("faces.udp.multicast_ad_hoc", ad_hoc);
    }
    if let Some(list) = section.section("whitelist") {
        let (names, _) = interfaces(list, "faces.udp.multicast_interfaces", draft);
        draft.set("faces.udp.multicast_interfaces", names);
    }
    if let Some(list) = section.section("blacklist") {
        exceptions(list, "name the others in faces.udp.multicast_interfaces", draft);
    }
    section.end(draft);
    Ok(())
}

fn ether(mut section: Section, draft: &mut Draft) -> Outcome<()> {
    let line = section.line;
    let listens = section.switch("listen")?.unwrap_or(true);
    let multicasts = section.switch("mcast")?.unwrap_or(true);
    if let Some(Text { text, .. }) = section.text("mcast_group") {
        draft.set("faces.ether.multicast", text.to_lowercase());
    }
    section.without("idle_timeout", "faces.idle_timeout_s is one for all faces", draft);
    section.without("mcast_ad_hoc", "Ethernet multicast is not ad hoc", draft);
    let wanted =
        section.section("whitelist").map(|list| interfaces(list, "faces.ether.interfaces", draft));
    if listens || multicasts {
        let (names, has_any) = wanted.unwrap_or((Vec::new(), true));
        if has_any {
            draft.note(line, "face_system.ether takes every interface: name those that are wanted in faces.ether.interfaces");
        }
        draft.set("faces.ether.interfaces", names);
    }
    if let Some(list) = section.section("blacklist") {
        exceptions(list, "name the others in faces.ether.interfaces", draft);
    }
    section.end(draft);
    Ok(())
}

/// The interfaces of a whitelist by their names, and whether it lets all in.
fn interfaces(mut list: Section, key: &str, draft: &mut Draft) -> (Vec<Value>, bool) {
    let (mut names, mut has_any) = (Vec::new(), false);
    for (what, Text { line, text }) in list.rest() {
        let is_pattern = text.contains(['*', '?', '[']);
        match what.as_str() {
            "*" => has_any = true,
            "ifname" if !is_pattern => names.push(Value::from(text)),
            _ => draft.note(
                line,
                format!("{what} {text} is not carried over: {key} takes names of interfaces"),
            ),
        }
    }
    (names, has_any)
}

/// Notes the entries of a blacklist.
fn exceptions(mut list: Section, instead: &str, draft: &mut Draft) {
    for (what, Text { line, text }) in list.rest() {
        draft.note(line, format!("blacklist {what} {text} is not carried over: {instead}"));
    }
}

fn authorize(mut authorizations: Section, draft: &mut Draft) {
    for mut rule in authorizations.sections("authorize") {
        let line = rule.line;
        let certificate = rule.text("certfile").map(|file| file.text).unwrap_or_default();
        let modules = rule.section("privileges").map(|mut section| section.rest());
        let may: Vec<String> =
            modules.unwrap_or_default().into_iter().map(|(key, _)| key).collect();
        if certificate == "any" || certificate.is_empty() {
            let list = may.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            draft.note(line, format!("certfile any is not carried over: it lets every application on this machine command the node. Without a rule root, the node's user and the group of management.group may. To have it as before: [[authorize]] who = \"local\" may = [{list}]"));
        } else {
            let mut entry = Table::new();
            entry.insert("who".into(), certificate.into());
            entry.insert("may".into(), may.into_iter().map(Value::from).collect::<Vec<_>>().into());
            draft.push("authorize", entry);
        }
        rule.end(draft);
    }
    authorizations.end(draft);
}

fn registration(mut rib: Section, draft: &mut Draft) {
    rib.without(
        "localhost_security",
        "who may register is said by [[authorize]] and management.group",
        draft,
    );
    rib.without(
        "localhop_security",
        "its rules work as they are: an entry [[trust]] name = \"localhop\" schema = \"nfd.conf\" section = \"rib.localhop_security\", and rib.localhop = true, rib.localhop_trust = \"localhop\"",
        draft,
    );
    rib.without(
        "prefix_announcement_validation",
        "its rules work as they are: an entry [[trust]] with schema = \"nfd.conf\" section = \"rib.prefix_announcement_validation\", and its name in rib.announcement_trust",
        draft,
    );
    rib.without(
        "auto_prefix_propagate",
        "prefixes of applications are announced by [routing]",
        draft,
    );
    rib.without("readvertise_nlsr", "prefixes of applications are announced by [routing]", draft);
    rib.end(draft);
}
