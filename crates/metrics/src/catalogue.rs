//! Every metric, declared once. The scheme of the names is in spec/registry.md.

use crate::{About, Kind, Metric, Program, Unit};

macro_rules! catalogue {
    ($($id:ident: $kind:ident $unit:ident $name:literal [$($label:literal),*]
        on $($program:ident)+, $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $id: Metric<{ <[&str]>::len(&[$($label),*]) }> = Metric {
                name: $name,
                kind: Kind::$kind,
                unit: Unit::$unit,
                labels: &[$($label),*],
                programs: &[$(Program::$program),+],
                help: $help,
            };
        )+
        /// All of them, in the order of docs/metrics.md.
        pub const ALL: &[About] = &[$($id.about()),+];
    };
}

catalogue! {
    BUILD: Info Count "onym_build_info" ["version"] on Node,
        "The version of the program.";
    SERVICE: Info Count "onym_service_info" ["kind", "name", "version"] on Service,
        "The kind, name and version of the service.";
    PACKETS: Counter Count "onym_packets_total" ["verdict", "kind"] on Node Service,
        "Packets received, by verdict and kind (interest, data, nack).";
    PACKETS_UNSENT: Counter Count "onym_packets_unsent_total" ["reason"] on Node Service,
        "Packets that were to be sent and were not, by reason.";
    FRAMES_DROPPED: Counter Count "onym_frames_dropped_total" ["reason"] on Node,
        "Frames dropped before a packet was taken out of them, by reason.";

    FACES: Gauge Count "onym_faces" [] on Node,
        "Faces.";
    FACES_DOWN: Gauge Count "onym_faces_down" [] on Node,
        "Permanent faces that are not connected.";
    FACES_REFUSED: Counter Count "onym_faces_refused_total" [] on Node,
        "Faces refused because of a limit.";
    FACE_RECEIVED_PACKETS: Counter Count "onym_face_received_packets_total" ["face", "kind"] on Node,
        "Packets received on a face, by kind.";
    FACE_SENT_PACKETS: Counter Count "onym_face_sent_packets_total" ["face", "kind"] on Node,
        "Packets sent on a face, by kind.";
    FACE_RECEIVED_BYTES: Counter Bytes "onym_face_received_bytes_total" ["face"] on Node,
        "Octets received on a face.";
    FACE_SENT_BYTES: Counter Bytes "onym_face_sent_bytes_total" ["face"] on Node,
        "Octets sent on a face.";

    PIT_ENTRIES: Gauge Count "onym_pit_entries" [] on Node Service,
        "PIT entries.";
    PIT_BYTES: Gauge Bytes "onym_pit_bytes" [] on Node,
        "Octets of the PIT.";
    PIT_FULL: Gauge Ratio "onym_pit_full_ratio" [] on Node,
        "How full the PIT is, in entries or octets, whichever is nearer to its bound; of the fullest shard.";
    PIT_SATISFIED: Counter Count "onym_pit_satisfied_interests_total" [] on Node,
        "Pending Interests that were answered by Data.";
    PIT_UNSATISFIED: Counter Count "onym_pit_unsatisfied_interests_total" [] on Node,
        "Pending Interests that ended without Data.";
    PIT_DISPLACED: Counter Count "onym_pit_displaced_interests_total" [] on Node,
        "Overdue pending Interests that were evicted because the PIT was contended.";
    PIT_UNSOLICITED: Counter Count "onym_pit_unsolicited_data_total" [] on Service,
        "Data without a pending Interest (backward router).";
    PIT_RETRANSMITTED: Counter Count "onym_pit_retransmitted_interests_total" [] on Service,
        "Retransmissions of pending Interests that were forwarded (backward router).";
    CS_ENTRIES: Gauge Count "onym_cs_entries" [] on Node Service,
        "Data packets in the content store.";
    CS_BYTES: Gauge Bytes "onym_cs_bytes" [] on Node Service,
        "Octets of the content store.";
    CS_FULL: Gauge Ratio "onym_cs_full_ratio" [] on Node,
        "How full the content store is, in packets or octets, whichever is nearer to its bound; of the fullest shard.";
    CS_LOOKUPS: Counter Count "onym_cs_lookups_total" ["result"] on Node Service,
        "Lookups in the content store, by result (hit, miss).";
    CS_VERIFIED: Counter Count "onym_cs_verified_total" ["result"] on Node,
        "Data under prefixes of cs.verify, by result (held: handed to be verified; good, refused: what came of it; left_out: not kept, for want of room or time).";
    CS_DISK_ENTRIES: Gauge Count "onym_cs_disk_entries" [] on Node,
        "Data packets on the second level of the content store (cs.disk).";
    CS_DISK_BYTES: Gauge Bytes "onym_cs_disk_bytes" [] on Node,
        "Octets of its log on the disk.";
    CS_DISK_TROUBLE: Gauge Count "onym_cs_disk_trouble" [] on Node,
        "1 while it cannot be opened or written; `onym cs disk` says why.";
    CS_DISK_LOOKUPS: Counter Count "onym_cs_disk_lookups_total" ["result"] on Node,
        "Interests for what may be on it, by result (hit, miss; late: no answer in time; passed: too many waited, or it had been late).";
    CS_DISK_PACKETS: Counter Count "onym_cs_disk_packets_total" ["what"] on Node,
        "Data packets, by what became of them (offered: handed over to be written; left_out: not, for want of room; kept: written; refused: not written; gone: gave way to newer ones; damaged: found so, and not served).";
    FIB_ENTRIES: Gauge Count "onym_fib_entries" [] on Node Service,
        "FIB entries.";
    FIB_REGISTRATIONS: Counter Count "onym_fib_registrations_total" ["result"] on Service,
        "Registrations by producers, by result (accepted, refused).";
    RIB_ROUTES: Gauge Count "onym_rib_routes" [] on Node,
        "Routes in the RIB.";

    MANAGEMENT_REQUESTS: Counter Count "onym_management_requests_total" ["result"] on Node,
        "Interests for management, by result (command_done, command_refused, dataset, ignored).";
    TRUST_JUDGED: Counter Count "onym_trust_judged_total" ["trust", "result"] on Node,
        "Packets judged by an entry of trust, by result (accepted, refused, busy: refused at a bound).";
    TRUST_FETCHES: Counter Count "onym_trust_fetches_total" ["trust", "result"] on Node,
        "Certificates and records that an entry of trust asked for, by result (asked, failed).";
    TRUST_CERTIFICATES: Gauge Count "onym_trust_certificates" ["trust", "kind"] on Node,
        "Certificates that an entry of trust keeps, by kind (anchor, cached, revoked: entries of the list).";
    TRUST_ANCHOR_LEFT: Gauge Seconds "onym_trust_anchor_left_seconds" ["trust"] on Node,
        "Time until the anchor of an entry of trust that ends first ends; negative: it is over.";
    SPANS: Counter Count "onym_spans_total" ["result"] on Node,
        "Interests recorded on their way, by result (begun; left_out: not recorded, because of a bound; exported, refused: by the collector; lost: it did not keep up).";
    SHARD_BUSY: Counter Seconds "onym_shard_busy_seconds_total" ["shard"] on Node,
        "Time that a shard spent not waiting.";

    PUSH_FRAMES: Counter Count "onym_push_frames_total" ["verdict"] on Node,
        "Push frames received, by verdict.";
    PUSH_FRAMES_SENT: Counter Count "onym_push_frames_sent_total" [] on Node,
        "Push frames sent over links.";
    PUSH_DROPPED: Counter Count "onym_push_dropped_total" ["reason"] on Node,
        "Push frames and messages dropped before the forwarder or the dispatcher, by reason.";
    PUSH_MESSAGES: Counter Count "onym_push_messages_total" [] on Node,
        "Messages received from applications.";
    PUSH_SENT: Counter Count "onym_push_publications_sent_total" [] on Node,
        "Publications sent to other nodes.";
    PUSH_DELIVERED: Counter Count "onym_push_publications_delivered_total" [] on Node,
        "Publications delivered to applications.";
    PUSH_MISSED: Counter Count "onym_push_publications_missed_total" [] on Node,
        "Publications that slow applications missed.";
    PUSH_LOST: Counter Count "onym_push_publications_lost_total" [] on Node,
        "Publications that did not reach this node, found by gaps in their Numbers.";
    PUSH_CACHE_HITS: Counter Count "onym_push_cache_hits_total" ["to"] on Node,
        "Publications that the cache of the push half answered with, by whom it told (told: an application of this node, sent: another node).";
    PUSH_CACHE_FORGOTTEN: Counter Count "onym_push_cache_forgotten_total" ["reason"] on Node,
        "Publications that the cache of the push half forgot, by reason (room, age).";
    PUSH_CACHE_ENTRIES: Gauge Count "onym_push_cache_entries" [] on Node,
        "Publications in the cache of the push half.";
    PUSH_CACHE_BYTES: Gauge Bytes "onym_push_cache_bytes" [] on Node,
        "Octets in the cache of the push half.";
    PUSH_APPLICATIONS: Gauge Count "onym_push_applications" [] on Node,
        "Applications of the push half.";
    PUSH_VERTICES: Gauge Count "onym_push_vertices" [] on Node,
        "Scopes and items in the information graph of the rendezvous.";

    ROUTE_NEIGHBOURS: Gauge Count "onym_route_neighbours" ["state"] on Router,
        "Neighbours of the router, by state (used, one_sided, held).";
    ROUTE_ROUTERS: Gauge Count "onym_route_routers" [] on Router,
        "Other routers that are reached.";
    ROUTE_PREFIXES: Gauge Count "onym_route_prefixes" ["from"] on Router,
        "Prefixes that are known, by who announces them (here, others).";
    ROUTE_HELLOS: Counter Count "onym_route_hellos_total" ["result"] on Router,
        "Signs of life of neighbours, by result (taken, malformed, replayed, flooded, refused).";
    ROUTE_HELLOS_SENT: Counter Count "onym_route_hellos_sent_total" [] on Router,
        "Signs of life sent.";
    ROUTE_MET: Counter Count "onym_route_met_total" ["result"] on Router,
        "Hellos by which routers find each other on a LAN, by result (taken, replayed, refused, flooded, elsewhere, full).";
    ROUTE_ADVERTS: Counter Count "onym_route_advertisements_total" [] on Router,
        "Advertisements published.";
    ROUTE_FETCH_FAILURES: Counter Count "onym_route_fetch_failures_total" [] on Router,
        "Fetches of advertisements that failed.";
    ROUTE_CHANGES: Counter Count "onym_route_changes_total" [] on Router,
        "Times the ways to a router changed.";
    ROUTE_COST_CHANGES: Counter Count "onym_route_cost_changes_total" [] on Router,
        "Times the measured cost of a link changed.";
    ROUTE_PROBES_LOST: Counter Count "onym_route_probes_lost_total" [] on Router,
        "Probes of links without an answer.";
    ROUTE_DOUBTS: Counter Count "onym_route_doubts_total" [] on Router,
        "Times a neighbour was asked for a sign of life because the network said that nobody is there.";
    ROUTE_COMMANDS: Counter Count "onym_route_commands_total" ["result"] on Router,
        "Commands for the forwarder, by result (done, failed).";

    ROUTE_CERTIFICATE: Gauge Seconds "onym_route_certificate_remaining_seconds" ["of"] on Router,
        "Time until a certificate that the router stands on ends, by whose it is (router, anchor); negative afterwards.";

    SERVICE_CPU: Counter Seconds "onym_service_cpu_seconds_total" [] on Service,
        "Processor time of the service's process.";
    SERVICE_FACES: Gauge Count "onym_service_faces" ["side"] on Service,
        "Faces of the service, by side (consumer, producer).";
    SERVICE_FACE_RECEIVED_PACKETS: Counter Count "onym_service_face_received_packets_total"
        ["face", "side", "kind"] on Service,
        "Packets received on a face of the service, by the face's label, its side and kind.";
    SERVICE_FACE_SENT_PACKETS: Counter Count "onym_service_face_sent_packets_total"
        ["face", "side", "kind"] on Service,
        "Packets sent on a face of the service, by the face's label, its side and kind.";
    DISPATCHER_SESSIONS: Gauge Count "onym_dispatcher_sessions" [] on Service,
        "Clients of a packet dispatcher.";
    STRATEGY_FORWARDED: Counter Count "onym_strategy_forwarded_interests_total" ["face"] on Service,
        "Interests that a strategy forwarder sent, by face.";
    SIGNATURES: Counter Count "onym_verifier_packets_total" ["result"] on Service,
        "Data seen by a signature verifier, by result (valid, invalid, unknown_key, unsigned, skipped).";
    SAMPLING: Gauge Ratio "onym_verifier_sampling_ratio" [] on Service,
        "Share of Data whose signature is verified.";
    FILTER_DROPPED: Counter Count "onym_filter_dropped_packets_total" ["kind"] on Service,
        "Packets dropped by a name filter, by kind (interest, data).";

    MANAGER_SETTLED: Gauge Count "onym_manager_settled" [] on Manager,
        "1 while what runs is what the description asks for, else 0.";
    MANAGER_STARTS: Counter Count "onym_manager_starts_total" [] on Manager,
        "Services started.";
    MANAGER_LINKS: Gauge Count "onym_manager_links" ["state"] on Manager,
        "Links between functions, by state.";
    MANAGER_VERIFIERS: Gauge Count "onym_manager_verifiers" [] on Manager,
        "Signature verifiers that the manager placed.";
    FUNCTION_UP: Gauge Count "onym_manager_function_up" ["function", "kind"] on Manager,
        "1 while a function runs and answers, else 0.";
    FUNCTION_CPU: Gauge Cores "onym_manager_function_cpu_cores" ["function"] on Manager,
        "Processor time that a function uses, in cores.";
    FUNCTION_INSTANCES: Gauge Count "onym_manager_function_instances" ["function"] on Manager,
        "Instances of a scaled function.";
}
