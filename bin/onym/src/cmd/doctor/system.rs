//! The machine: processors, memory, descriptors, privileges, interfaces, clock.

use super::Finding;
use super::node::Running;
use crate::human;
use onym_node::config::Config;
use onym_sys::netdev::{self, Interface};
use onym_sys::packet::{PacketSocket, Want};
use rustix::process::{Resource, geteuid, getrlimit};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn check(config: &Config, running: Option<&Running>, checks: &mut Vec<Finding>) {
    checks.push(clock(running));
    let interfaces = netdev::interfaces().unwrap_or_default();
    checks.push(mtu(config, &interfaces));
    checks.push(privileges(config, &interfaces));
    checks.push(descriptors(config));
    checks.push(memory(config));
    checks.push(processors(config));
}

/// 2025-01-01; every key and certificate is younger.
const EARLIEST_S: u64 = 1_735_689_600;
/// Difference between the clocks of node and client that matters: the grace of signed commands is
/// a minute.
const CLOCKS_APART_MS: u64 = 10_000;

fn clock(running: Option<&Running>) -> Finding {
    const CHECK: &str = "clock";
    const MEND: &str = "run a time service, such as systemd-timesyncd or chrony; in a container or virtual machine, \
                        on its host";
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let now = human::moment_ms(now_s * 1000);
    if now_s < EARLIEST_S {
        let found = format!("{now}, earlier than any certificate");
        return Finding::failed(CHECK, found, MEND);
    }
    let ahead = running.map_or(0, |r| r.clock_ahead_ms);
    if ahead.unsigned_abs() > CLOCKS_APART_MS {
        let found = format!("{now}; the node's clock differs by {} s", ahead / 1000);
        return Finding::failed(CHECK, found, MEND);
    }
    match onym_sys::clock::is_synchronized() {
        Some(true) => Finding::ok(CHECK, format!("{now}, kept by a time service")),
        Some(false) => Finding::warning(
            CHECK,
            format!(
                "{now}, not synchronized by a time service; versions, commands and certificates depend on it"
            ),
            MEND,
        ),
        None => Finding::ok(CHECK, format!("{now}; the kernel does not say who keeps it")),
    }
}

/// IPv6's least MTU; below it not even that works.
const MTU_MIN: usize = 1280;
/// Headers of IPv6 and UDP.
const UDP_HEADERS: usize = 48;

fn mtu(config: &Config, interfaces: &[Interface]) -> Finding {
    const CHECK: &str = "mtu";
    let up: Vec<_> = interfaces.iter().filter(|i| i.is_up && !i.is_loopback).collect();
    if up.is_empty() {
        return Finding::ok(CHECK, "no network interface is up, only loopback");
    }
    let list: Vec<_> = up.iter().map(|i| format!("{} {}", i.name, i.mtu)).collect();
    let list = list.join(", ");
    if let Some(small) = up.iter().find(|i| i.mtu < MTU_MIN) {
        return Finding::warning(
            CHECK,
            format!("{list}: {} is below {MTU_MIN}", small.name),
            format!("ip link set {} mtu {MTU_MIN}, if the link can carry it", small.name),
        );
    }
    let least = up.iter().map(|i| i.mtu).min().unwrap_or(MTU_MIN);
    let frame = config.faces.udp.mtu;
    if frame + UDP_HEADERS <= least || config.faces.udp.listen.0.is_empty() {
        return Finding::ok(CHECK, list);
    }
    let whole = least - UDP_HEADERS;
    let note = format!(
        "{list}; UDP frames of up to {frame} octets travel as IP fragments to peers that do not answer \
         probes of the path: faces.udp.mtu={whole} avoids them where such a path loses packets"
    );
    Finding::ok(CHECK, note)
}

/// Bits of capabilities (linux/capability.h).
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;

/// The effective capabilities of this process.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn privileges(config: &Config, interfaces: &[Interface]) -> Finding {
    const CHECK: &str = "privileges";
    let has = |bit: u32| capabilities() & (1 << bit) != 0;
    let who = format!("user {}", geteuid().as_raw());
    let wanted = &config.faces.ether.interfaces.0;
    for name in wanted {
        let Some(interface) = interfaces.iter().find(|i| i.name == *name) else {
            let found = format!("faces.ether.interfaces: there is no interface {name}");
            let list: Vec<_> = interfaces.iter().map(|i| i.name.as_str()).collect();
            return Finding::failed(CHECK, found, format!("there are {}", list.join(", ")));
        };
        let opened =
            PacketSocket::open(interface.index, onym_face::ether::ETHERTYPE, Want::Unicast);
        if let Err(error) = opened {
            return Finding::failed(
                CHECK,
                format!("{who} cannot open Ethernet faces on {name}: {error}"),
                "as root: setcap cap_net_raw+ep $(command -v onym); or start the node as root, or empty \
                 faces.ether.interfaces",
            );
        }
    }
    let ethernet = if has(NET_RAW) { "may" } else { "may not" };
    let buffers = if has(NET_ADMIN) { "may" } else { "may not" };
    let needed = if wanted.is_empty() { " (not asked for)" } else { "" };
    Finding::ok(
        CHECK,
        format!(
            "{who}; {ethernet} open Ethernet faces (CAP_NET_RAW){needed}; {buffers} pass the buffer limits \
             (CAP_NET_ADMIN)"
        ),
    )
}

/// Descriptors that a node needs beside its faces.
const OTHER_DESCRIPTORS: u64 = 64;

fn descriptors(config: &Config) -> Finding {
    const CHECK: &str = "descriptors";
    let limit = getrlimit(Resource::Nofile);
    let raised = config.daemon.raise_nofile;
    let usable = if raised { limit.maximum } else { limit.current };
    let Some(usable) = usable else { return Finding::ok(CHECK, "unlimited") };
    let faces = u64::from(config.faces.count_max);
    if usable < faces + OTHER_DESCRIPTORS {
        return Finding::warning(
            CHECK,
            format!(
                "{usable} files may be open, but faces.count_max is {faces}: faces beyond the limit will be refused"
            ),
            "raise the hard limit (LimitNOFILE= in the unit, `ulimit -Hn` in a shell), or lower faces.count_max",
        );
    }
    Finding::ok(CHECK, format!("{usable} files may be open, {faces} faces at most"))
}

fn memory(config: &Config) -> Finding {
    const CHECK: &str = "memory";
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let Some(available) = kib.map(|kib| kib * 1024) else {
        return Finding::ok(CHECK, "the kernel does not say how much is available");
    };
    let store = config.cs.bytes_max as u64;
    let found = format!(
        "{} available; the content store may use up to {}",
        human::bytes(available),
        human::bytes(store)
    );
    if store > available / 2 {
        let mend = format!("lower cs.bytes_max, to {} or less", available / 4);
        return Finding::warning(CHECK, found, mend);
    }
    Finding::ok(CHECK, found)
}

fn processors(config: &Config) -> Finding {
    const CHECK: &str = "processors";
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shards = config.shard_count();
    if shards > cores {
        return Finding::warning(
            CHECK,
            format!("{shards} shards on {cores} cores take turns"),
            format!("set shards to {cores} or less, or to 0 for half the cores"),
        );
    }
    let (cores, shards) =
        (human::count(cores as u64, "core"), human::count(shards as u64, "shard"));
    Finding::ok(CHECK, format!("{cores}, {shards}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Grade;

    fn interface(name: &str, mtu: usize) -> Interface {
        Interface { name: name.into(), index: 7, mtu, is_up: true, ..Interface::default() }
    }

    #[test]
    fn a_link_below_the_least_mtu_is_a_warning_and_a_usual_one_is_told() {
        let config = Config::default();
        assert_eq!(mtu(&config, &[interface("tiny0", 576)]).result, Grade::Warning);
        let usual = mtu(&config, &[interface("eth0", 1500)]);
        assert!(usual.result == Grade::Ok && usual.found.contains("faces.udp.mtu=1452"));
        let jumbo = mtu(&config, &[interface("eth0", 9000)]);
        assert_eq!(jumbo.found, "eth0 9000");
    }

    #[test]
    fn an_interface_that_is_not_there_fails_and_the_others_are_named() {
        let config = Config::load(None, &["faces.ether.interfaces=nic9".into()]).unwrap();
        let finding = privileges(&config, &[interface("eth0", 1500)]);
        assert_eq!(finding.result, Grade::Failed);
        assert!(finding.mend.unwrap().contains("eth0"));
    }

    #[test]
    fn too_many_faces_shards_or_packets_for_the_machine_are_warnings() {
        let sets = ["faces.count_max=4000000", "shards=64", "cs.bytes_max=1000000000000000"];
        for (set, check) in sets.iter().zip([descriptors, processors, memory]) {
            let config = Config::load(None, &[(*set).to_owned()]).unwrap();
            let finding = check(&config);
            let is_roomy = finding.found == "unlimited" || finding.found.starts_with("64 cores");
            assert!(finding.result == Grade::Warning || is_roomy, "{set}: {finding:?}");
        }
    }
}
