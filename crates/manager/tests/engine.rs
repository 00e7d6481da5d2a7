//! The manager's behaviour over services that are control interfaces only.

#![allow(clippy::unwrap_used)]

mod fake;

use fake::FakeDriver;
use onym_manager::describe::{Form, read};
use onym_manager::engine::{Change, ChangeError, Done, Manager, Options};
use onym_manager::kind::Kind;
use onym_manager::network::{Ends, Function};
use onym_manager::plan::Strategy;
use onym_manager::store::FileStore;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);

async fn manager(driver: &FakeDriver, folder: &Path) -> Manager {
    let store = FileStore::open(&folder.join("state.redb")).unwrap();
    let options = Options {
        driver: Arc::new(driver.clone()),
        store: Box::new(store),
        watch: Duration::from_millis(20),
        allowed: onym_manager::allow::Allowed::default(),
    };
    Manager::start(options).await.unwrap()
}

fn apply(text: &str) -> Change {
    let description = read(text, Form::Toml).unwrap_or_else(|e| panic!("{e}")).description;
    Change::Apply {
        description: Box::new(description),
        strategy: Strategy::default(),
        dry_run: false,
        confirmed: true,
    }
}

fn preset(name: &str) -> Change {
    apply(onym_manager::presets::find(name).unwrap())
}

async fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !true_now() {
        assert!(begun.elapsed() < DEADLINE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// All that is wanted runs, and all links lead to who runs.
fn settled(manager: &Manager) -> bool {
    let view = manager.shared.view();
    let up = view.functions.values().all(|f| f.state == "up");
    view.settled && up && view.links.iter().all(|l| l.state == "up")
}

fn names(manager: &Manager) -> Vec<String> {
    manager.shared.view().functions.keys().cloned().collect()
}

fn links(manager: &Manager) -> Vec<String> {
    manager.shared.view().links.iter().map(|l| l.ends.to_string()).collect()
}

#[tokio::test]
async fn every_preset_is_started_linked_and_the_same_again_changes_nothing() {
    for (name, _, _) in onym_manager::presets::PRESETS {
        let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
        let manager = manager(&driver, folder.path()).await;
        let done = manager.change(preset(name)).await.unwrap();
        assert!(done.changed && !done.steps.is_empty());
        assert!(settled(&manager), "{name}");
        assert!(driver.world.lock().unwrap().shared);
        assert_eq!(manager.change(preset(name)).await.unwrap().steps, Vec::<String>::new());
        let down = manager.change(Change::Down { confirmed: true }).await.unwrap();
        assert!(down.changed);
        assert_eq!(driver.world.lock().unwrap().alive(), Vec::<String>::new());
        assert!(!driver.world.lock().unwrap().shared, "what services share goes with them");
    }
}

#[tokio::test]
async fn twenty_random_kills_end_with_the_graph_as_declared() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    manager.change(preset("nfd")).await.unwrap();
    let declared = (names(&manager), links(&manager));
    let mut seed: u64 = 0x5eed_0004;
    eprintln!("seed {seed:#x}");
    for kill in 0..20 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let victim = declared.0[(seed >> 33) as usize % declared.0.len()].clone();
        let starts = manager.shared.saved().starts;
        driver.world.lock().unwrap().kill(&victim);
        until(&format!("kill {kill} of {victim} is healed"), || {
            manager.shared.saved().starts > starts && settled(&manager)
        })
        .await;
        // The pause before a start that keeps failing would be right, and slow here.
        if kill % 4 == 3 {
            assert_eq!((names(&manager), links(&manager)), declared);
        }
    }
    assert_eq!((names(&manager), links(&manager)), declared);
    assert_eq!(driver.world.lock().unwrap().alive(), declared.0, "and nothing else runs");
}

#[tokio::test]
async fn what_cannot_be_started_is_named_and_nothing_half_built_is_left() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    driver.world.lock().unwrap().broken.insert("nr".into());
    let error = manager.change(preset("nfd")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("start nr") && text.contains("port 6363 is in use"), "{text}");
    assert_eq!(driver.world.lock().unwrap().alive(), Vec::<String>::new());
    assert!(manager.shared.saved().description.is_none());
    // A network that runs stays as it was.
    driver.world.lock().unwrap().broken.clear();
    manager.change(preset("nfd")).await.unwrap();
    let before = (names(&manager), links(&manager));
    driver.world.lock().unwrap().unreachable.insert("sv br".into());
    let insert = Change::Insert {
        on: Ends::consumer("cs", "br"),
        name: "sv".into(),
        function: Box::new(Function::new(Kind::SignatureVerifier)),
        strategy: Strategy::default(),
    };
    let error = manager.change(insert).await.unwrap_err();
    assert!(error.to_string().contains("link sv -> br"), "{error}");
    assert_eq!((names(&manager), links(&manager)), before);
    assert!(settled(&manager));
}

#[tokio::test]
async fn a_manager_that_comes_back_adopts_what_runs_and_stops_what_is_of_the_past() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let first = manager(&driver, folder.path()).await;
    first.change(preset("nfd")).await.unwrap();
    let before = first.shared.saved().instances.clone();
    drop(first);
    let begun = Instant::now();
    let store = loop {
        match FileStore::open(&folder.path().join("state.redb")) {
            Ok(store) => break store,
            Err(_) => assert!(begun.elapsed() < DEADLINE),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    drop(store);
    driver.world.lock().unwrap().kill("cs");
    let second = manager(&driver, folder.path()).await;
    until("it is whole again", || settled(&second)).await;
    let after = second.shared.saved().instances.clone();
    for (name, instance) in before {
        let same = after[&name].order.instance == instance.order.instance;
        assert_eq!(same, name != "cs", "{name}: only what was killed is started");
    }
}

#[tokio::test]
async fn a_registration_reaches_the_other_router_and_is_withdrawn_when_it_ends() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    manager.change(preset("interlinked")).await.unwrap();
    let route = json!({"prefix": "/p", "face": "producer.0", "origin": "registered"});
    driver.world.lock().unwrap().named("nr1").routes.push(route);
    let has = |router: &str, face: &str| {
        let mut world = driver.world.lock().unwrap();
        let routes = &world.named(router).routes;
        routes.iter().any(|r| r["prefix"] == "/p" && r["face"] == face && r["origin"] == "static")
    };
    until("nr2 routes to the guard before nr1", || has("nr2", "nr2.nr1.br")).await;
    assert!(!has("nr1", "nr2"), "no route that leads back");
    driver.world.lock().unwrap().named("nr1").routes.retain(|r| r["origin"] == "static");
    until("it is withdrawn", || !has("nr2", "nr2.nr1.br")).await;
}

#[tokio::test]
async fn a_function_is_scaled_out_and_in_and_a_clone_hands_its_table_over() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    manager.change(preset("scaling")).await.unwrap();
    let before = (names(&manager), links(&manager));
    let scale = |instances| Change::Scale { name: "br".into(), instances };
    manager.change(scale(3)).await.unwrap();
    assert_eq!(names(&manager), ["br", "br.1", "br.2", "br.sf0", "cs", "nr"]);
    let done = manager.change(scale(1)).await.unwrap();
    assert_eq!((names(&manager), links(&manager)), before);
    assert_eq!(done.counters["handed_over"], 4, "two clones, two entries each");
    assert!(settled(&manager));
    for wrong in [0, 4] {
        assert!(matches!(manager.change(scale(wrong)).await, Err(ChangeError::Conflict(_))));
    }
    let edge = Change::Scale { name: "nr".into(), instances: 2 };
    assert!(
        matches!(manager.change(edge).await, Err(ChangeError::Conflict(why)) if why.contains("edge"))
    );
}

#[tokio::test]
async fn a_chain_is_opened_in_the_order_that_was_asked_and_counters_say_what_was_kept() {
    for strategy in [Strategy::MakeBeforeBreak, Strategy::BreakAndBuffer, Strategy::BreakAndDrop] {
        let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
        let manager = manager(&driver, folder.path()).await;
        manager.change(preset("nfd")).await.unwrap();
        {
            let mut world = driver.world.lock().unwrap();
            world.calls.clear();
            world.kept = 7;
        }
        let insert = Change::Insert {
            on: Ends::consumer("cs", "br"),
            name: "nf".into(),
            function: Box::new(Function::new(Kind::NameFilter)),
            strategy,
        };
        let done: Done = manager.change(insert).await.unwrap();
        let calls = driver.world.lock().unwrap().calls.clone();
        let at = |call: &str| {
            calls.iter().position(|c| c == call).unwrap_or_else(|| panic!("{call}: {calls:?}"))
        };
        let (made, broken) = (at("PUT cs/faces/nf"), at("DELETE cs/faces/br"));
        assert!(at("PUT nf/faces/br") < made, "first onward, then into it");
        assert_eq!(made < broken, strategy == Strategy::MakeBeforeBreak);
        let kept = u64::from(strategy == Strategy::BreakAndBuffer) * 7;
        assert_eq!(done.counters["kept"], kept);
        if kept > 0 {
            assert!(
                at("PUT cs/freeze/producer") < broken && made < at("DELETE cs/freeze/producer")
            );
        }
        let remove = Change::Remove { name: "nf".into(), strategy, join: true };
        manager.change(remove).await.unwrap();
        assert_eq!(links(&manager), ["br -> nr", "cs -> br", "pd -> cs", "pd => nr"]);
    }
}

const POISON: &str = r#"network = "p"
links = ["cs1 -> nr", "cs2 => nr"]
functions.cs1.kind = "CS"
functions.nr.kind = "NR"
functions.cs2.kind = "CS"
[trust]
lightversec = '#data: _/_ <= #key #key: "KEY"/_'
[policies.poisoning]
period_ms = 100
samples = 1
"#;

#[tokio::test]
async fn a_poisoned_cache_gets_a_verifier_that_goes_after_ten_clean_periods() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    manager.change(apply(POISON)).await.unwrap();
    // A hit for each time it is looked at, then misses.
    let (driver_, poisoned) = (driver.clone(), Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let flag = Arc::clone(&poisoned);
    let traffic = tokio::spawn(async move {
        let (mut hits, mut misses) = (0u64, 0u64);
        loop {
            if flag.load(std::sync::atomic::Ordering::Relaxed) {
                misses += 200
            } else {
                hits += 200
            }
            let stats = json!({"boot": 1, "content_store": {"hits": hits, "misses": misses}});
            driver_.world.lock().unwrap().named("cs1").stats = stats;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let events =
        |kind: &str| manager.shared.journal.after(0).iter().filter(|e| e.kind == kind).count();
    let begun = Instant::now();
    until("some periods are over", || begun.elapsed() > Duration::from_millis(600)).await;
    assert_eq!(events("alarm"), 0);
    poisoned.store(true, std::sync::atomic::Ordering::Relaxed);
    until("the verifier stands", || links(&manager).contains(&"cs1 -> cs1.sv0".to_owned())).await;
    assert_eq!(events("alarm"), 1);
    {
        let mut world = driver.world.lock().unwrap();
        assert_eq!(world.named("cs1.sv0").config["drop"], true);
        // It judges by the schema of the network.
        let trust = &world.named("cs1.sv0").trust;
        assert!(trust["lightversec"].as_str().is_some_and(|t| t.starts_with("#data")), "{trust}");
    }
    poisoned.store(false, std::sync::atomic::Ordering::Relaxed);
    until("it is removed", || links(&manager) == ["cs1 -> nr", "cs2 => nr"]).await;
    assert_eq!(events("all-clear"), 1);
    traffic.abort();
}

#[tokio::test]
async fn keys_reach_routers_and_verifiers_and_are_withdrawn() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    let text = r#"network = "keys"
        links = ["sv -> nr"]
        functions.sv.kind = "SV"
        functions.nr.kind = "NR""#;
    manager.change(apply(text)).await.unwrap();
    use base64::Engine as _;
    let key = onym_crypto::PrivateKey::generate(onym_crypto::KeyType::Ecdsa).unwrap();
    let spki = base64::engine::general_purpose::STANDARD.encode(key.spki());
    let key = onym_manager::describe::Key {
        spki: Some(spki),
        prefixes: vec!["/a".into()],
        ..Default::default()
    };
    let add = [("/a/KEY/1".to_owned(), key)].into();
    manager.change(Change::Keys { add, remove: vec![] }).await.unwrap();
    let count =
        |name: &str| driver.world.lock().unwrap().named(name).keys.as_array().map_or(0, Vec::len);
    assert_eq!((count("sv"), count("nr")), (1, 1));
    let remove = vec!["/a/KEY/1".to_owned()];
    manager.change(Change::Keys { add: Default::default(), remove }).await.unwrap();
    assert_eq!((count("sv"), count("nr")), (0, 0));
}

/// Law: all verifiers judge by the schema of the description, one that comes later too; the rules
/// come before the keys, so that no key ever counts without them; a wrong schema changes nothing.
#[tokio::test]
async fn the_schema_of_a_network_reaches_its_verifiers_before_any_key_and_nobody_else() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    let network = |schema: &str| {
        format!(
            "network = \"t\"\nlinks = [\"sv -> nr\"]\nfunctions.sv.kind = \"SV\"\n\
             functions.nr.kind = \"NR\"\n[trust]\nlightversec = {schema:?}\n"
        )
    };
    let [one, two] = ["#data: _/_ <= #key #key: \"KEY\"/_", "#data: _ <= #key #key: \"KEY\"/_"];
    manager.change(apply(&network(one))).await.unwrap();
    let trust = |name: &str| {
        let mut world = driver.world.lock().unwrap();
        world.named(name).trust["lightversec"].as_str().map(ToOwned::to_owned)
    };
    assert_eq!((trust("sv").as_deref(), trust("nr")), (Some(one), None));
    let calls = driver.world.lock().unwrap().calls.clone();
    let at = |call: &str| calls.iter().position(|c| c == call).unwrap_or_else(|| panic!("{call}"));
    assert!(at("PUT sv/trust") < at("PUT sv/keys"), "{calls:?}");
    // Another schema, and a verifier that comes with it.
    let more = network(two).replace("\"sv -> nr\"", "\"sv -> sw\", \"sw -> nr\"");
    manager.change(apply(&(more + "[functions.sw]\nkind = \"SV\"\n"))).await.unwrap();
    assert_eq!((trust("sv").as_deref(), trust("sw").as_deref()), (Some(two), Some(two)));
    // One that is none is told with its place, and nothing is sent.
    let wrong = read(&network("#data: _ <= #nobody"), Form::Toml).unwrap_err().to_string();
    assert!(wrong.contains("trust") && wrong.contains("#nobody"), "{wrong}");
    assert_eq!(trust("sv").as_deref(), Some(two));
}

#[tokio::test]
async fn a_busy_function_is_cloned_by_the_manager_itself() {
    let (driver, folder) = (FakeDriver::default(), tempfile::tempdir().unwrap());
    let manager = manager(&driver, folder.path()).await;
    let text = onym_manager::presets::find("scaling").unwrap().to_owned()
        + "\n[policies.scaling]\nperiod_ms = 100\nrule = \"paper\"\n";
    manager.change(apply(&text)).await.unwrap();
    let driver_ = driver.clone();
    let load = tokio::spawn(async move {
        let begun = Instant::now();
        loop {
            if let Ok(mut world) = driver_.world.lock() {
                for service in world.services.values_mut() {
                    let busy = service
                        .order
                        .as_ref()
                        .is_some_and(|o| o.function.kind == Kind::BackwardRouter);
                    service.cpu_ns = if busy { begun.elapsed().as_nanos() as u64 } else { 0 };
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    until("there are three", || names(&manager).iter().any(|n| n == "br.2")).await;
    load.abort();
    until("idle clones go and the balancer with them", || names(&manager) == ["br", "cs", "nr"])
        .await;
}

#[tokio::test]
async fn what_would_fail_is_found_out_before_anything_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let driver = FakeDriver::default();
    let manager = manager(&driver, folder.path()).await;
    manager.change(preset("nfd")).await.unwrap();
    until("it runs", || settled(&manager)).await;
    let instances = || -> Vec<String> {
        let world = driver.world.lock().unwrap();
        world.services.iter().filter(|(_, s)| s.alive).map(|(id, _)| id.clone()).collect()
    };
    let before = (instances(), manager.shared.saved().description.clone());
    {
        let mut world = driver.world.lock().unwrap();
        world.hopeless.insert("pd".into());
        world.calls.clear();
    }
    // Another port: the dispatcher must be started anew, and a new function would come first.
    let text = onym_manager::presets::find("nfd").unwrap().replace(":6363", ":6364");
    let text = format!("{text}\n[functions.a]\nkind = \"content-store\"\n");
    let error = manager.change(apply(&text)).await.unwrap_err();
    assert!(matches!(error, ChangeError::Impossible { .. }), "{error}");
    let told = error.to_string();
    assert!(
        told.contains("start pd") && told.contains("6363") && told.contains("nothing was"),
        "{told}"
    );
    assert_eq!((instances(), manager.shared.saved().description.clone()), before);
    assert_eq!(
        driver.world.lock().unwrap().calls,
        Vec::<String>::new(),
        "nobody was told anything"
    );
    driver.world.lock().unwrap().hopeless.clear();
    manager.change(apply(&text)).await.unwrap();
}

#[tokio::test]
async fn a_service_that_forwards_is_not_replaced_for_its_control_interface() {
    let folder = tempfile::tempdir().unwrap();
    let driver = FakeDriver::default();
    let manager = manager(&driver, folder.path()).await;
    manager.change(preset("nfd")).await.unwrap();
    until("it runs", || settled(&manager)).await;
    let instance = || driver.world.lock().unwrap().named("br").order.clone().unwrap().instance;
    let first = instance();
    driver.world.lock().unwrap().deaf.insert("br".into());
    let mut packets = 0;
    let forward = || {
        packets += 1;
        let mut world = driver.world.lock().unwrap();
        let faces = &mut world.named("nr").faces;
        let own = faces.values_mut().find(|f| f["uri"].as_str().unwrap().contains(&first)).unwrap();
        own["in"] = json!({"interests": packets});
    };
    let mut forward = forward;
    let begun = Instant::now();
    until("it was silent for longer than a service may be", || {
        forward();
        begun.elapsed() > Duration::from_secs(13)
    })
    .await;
    assert_eq!(instance(), first);
    assert_eq!(manager.shared.view().functions["br"].state, "silent");
    // Without a word and without a packet it is dead.
    until("it is replaced", || {
        let saved = manager.shared.saved();
        saved.instances.get("br").is_some_and(|i| i.order.instance != first)
    })
    .await;
}
