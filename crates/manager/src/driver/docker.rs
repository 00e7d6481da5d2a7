//! Services as containers, by the Engine API over its Unix socket.
//!
//! The image is made from nothing but one static binary, by the manager, and is named after the
//! binary's digest, so another binary is another image. Containers of one manager share a bridge
//! network; the manager reaches them by their addresses on it. They run as nobody, without
//! capabilities.

use super::archive::Archive;
use super::{
    Answer, Driver, DriverError, Found, Order, Started, Usage, quota_us, ready_line, words,
};
use crate::network::Function;
use onym_http::client::{Body, Client, HttpError, Method, Place};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ANSWER: Duration = Duration::from_secs(30);
const BUILD: Duration = Duration::from_secs(180);
const READY: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);
/// User and group of the services: nobody.
const NOBODY: u32 = 65_534;

/// How services are run as containers.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The engine's socket.
    pub socket: PathBuf,
    /// The static binary that the image is made of.
    pub binary: PathBuf,
    /// Tells this manager's services from others'.
    pub manager: String,
}

/// Services as containers.
#[derive(Debug)]
pub struct DockerDriver {
    options: DockerOptions,
    client: Client,
    image: std::sync::OnceLock<String>,
}

impl DockerDriver {
    /// A driver; nothing is asked yet.
    #[must_use]
    pub fn new(options: DockerOptions) -> Self {
        let client = Client::new(Place::Unix(options.socket.clone()), None, ANSWER);
        Self { options, client, image: std::sync::OnceLock::new() }
    }

    fn network(&self) -> String {
        format!("onym-{}", self.options.manager)
    }

    async fn ask(
        &self,
        doing: &str,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Value, DriverError> {
        self.client.ask(method, path, body).await.map_err(|e| DriverError::engine(doing, e))
    }

    async fn prepare_now(&self) -> Result<(), DriverError> {
        let socket = self.options.socket.display();
        self.client.ask(Method::GET, "/_ping", Body::None).await.map_err(|e| {
            DriverError::Absent {
                engine: "docker",
                why: format!("{socket}: {e}"),
                next: "start dockerd, or use --driver process".to_owned(),
            }
        })?;
        let image = self.make_image().await?;
        let _ = self.image.set(image);
        Ok(())
    }

    /// The bridge of this manager's containers; made with the first of them.
    async fn make_network(&self) -> Result<(), DriverError> {
        let name = self.network();
        match self.client.ask(Method::GET, &format!("/networks/{name}"), Body::None).await {
            Err(HttpError::Refused { status: 404, .. }) => {
                let labels = json!({ "onym.manager": self.options.manager });
                let body = json!({"Name": name, "Driver": "bridge", "Labels": labels});
                let path = "/networks/create";
                self.ask("making a network", Method::POST, path, Body::Json(body)).await?;
            }
            other => {
                other.map_err(|e| DriverError::engine("asking for the network", e))?;
            }
        }
        Ok(())
    }

    async fn remove_network(&self) -> Result<(), DriverError> {
        let path = format!("/networks/{}", self.network());
        match self.client.ask(Method::DELETE, &path, Body::None).await {
            Ok(_) | Err(HttpError::Refused { status: 404, .. }) => Ok(()),
            Err(error) => Err(DriverError::engine("removing the network", error)),
        }
    }

    /// Builds the image unless this binary's is there.
    async fn make_image(&self) -> Result<String, DriverError> {
        let shown = self.options.binary.display().to_string();
        let reading = |e: std::io::Error| DriverError::engine(format!("reading {shown}"), e);
        let binary = std::fs::read(&self.options.binary).map_err(reading)?;
        if needs_loader(&binary) {
            return Err(DriverError::Absent {
                engine: "docker",
                why: format!(
                    "{shown} is not a static binary, and the image has nothing else in it"
                ),
                next: "make static, and name the binary: --binary FILE".to_owned(),
            });
        }
        let digest = onym_crypto::digest::hex(&onym_crypto::sha256(&[&binary]));
        let image = format!("onym-service:{}", &digest[..16]);
        if self.client.ask(Method::GET, &format!("/images/{image}/json"), Body::None).await.is_ok()
        {
            return Ok(image);
        }
        let recipe = "FROM scratch\nCOPY onym /onym\nENTRYPOINT [\"/onym\"]\n";
        let mut archive = Archive::default();
        archive.file("Dockerfile", 0o644, 0, recipe.as_bytes());
        archive.file("onym", 0o755, 0, &binary);
        let body = Body::Octets("application/x-tar", archive.finish().into());
        let path = format!("/build?t={image}&q=1&forcerm=1");
        let patient = self.client.clone().within(BUILD);
        let (_, told) = patient
            .octets(Method::POST, &path, body)
            .await
            .map_err(|e| DriverError::engine("building the image", e))?;
        // The answer is 200 whatever happened: a line with an error tells.
        let told = String::from_utf8_lossy(&told);
        let lines = told.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        match lines.filter_map(|l| l["error"].as_str().map(str::to_owned)).next() {
            Some(why) => Err(DriverError::engine("building the image", why)),
            None => Ok(image),
        }
    }

    async fn start_now(&self, order: &Order) -> Result<Started, DriverError> {
        let image = self.image.get().cloned().unwrap_or_default();
        let (order_in, ports) = inside(order)?;
        self.make_network().await?;
        let labels = json!({
            "onym.manager": self.options.manager,
            // Without the secret: labels are for everybody who reaches the engine.
            "onym.order": json!(Order { token: String::new(), ..order.clone() }).to_string(),
        });
        let exposed: Map<String, Value> = ports.keys().map(|p| (p.clone(), json!({}))).collect();
        let body = json!({
            "Image": image,
            "Cmd": words(&order_in, "0.0.0.0", "0.0.0.0:0", "/token"),
            "User": format!("{NOBODY}:{NOBODY}"),
            "Labels": labels,
            "ExposedPorts": exposed,
            "HostConfig": {
                "NetworkMode": self.network(),
                "PortBindings": ports,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "CpuPeriod": quota(order.function.quota).0,
                "CpuQuota": quota(order.function.quota).1,
            },
        });
        let name = format!("onym-{}-{}", self.options.manager, order.instance);
        let fault = |e: HttpError| DriverError::start(&order.name, e);
        let path = format!("/containers/create?name={name}");
        let made = self.client.ask(Method::POST, &path, Body::Json(body)).await.map_err(fault)?;
        let id = made["Id"].as_str().unwrap_or_default().to_owned();
        let started = self.run(order, &id).await;
        if started.is_err() {
            let _ = self.remove(&id).await;
        }
        started
    }

    async fn run(&self, order: &Order, id: &str) -> Result<Started, DriverError> {
        let fault = |e: HttpError| DriverError::start(&order.name, e);
        let mut secret = Archive::default();
        secret.file("token", 0o400, NOBODY, order.token.as_bytes());
        let body = Body::Octets("application/x-tar", secret.finish().into());
        let path = format!("/containers/{id}/archive?path=/");
        self.client.ask(Method::PUT, &path, body).await.map_err(fault)?;
        let path = format!("/containers/{id}/start");
        let asked = self.client.ask(Method::POST, &path, Body::None).await;
        asked.map_err(|e| DriverError::start(&order.name, self.advised(e.to_string())))?;
        let deadline = Instant::now() + READY;
        loop {
            if let Some(started) = self.started(id).await {
                return Ok(started);
            }
            let running = self.state(id).await.map_err(fault)?;
            if !running || Instant::now() > deadline {
                let log = self.log(id).await;
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(3)..].join("; ");
                return Err(DriverError::start(&order.name, self.advised(last)));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What the engine or a container said at its end, and what to do when the image is at fault.
    fn advised(&self, said: String) -> String {
        let said = if said.is_empty() { "it ended without a word".to_owned() } else { said };
        let image = ["exec format", "exec: ", "exec /onym", "without a word"];
        if !image.iter().any(|word| said.contains(word)) {
            return said;
        }
        let binary = self.options.binary.display();
        format!(
            "{said}; the image of {binary} does not run here: make static on a machine of this kind, and name the binary: --binary FILE"
        )
    }

    async fn state(&self, id: &str) -> Result<bool, HttpError> {
        let answer =
            self.client.ask(Method::GET, &format!("/containers/{id}/json"), Body::None).await;
        match answer {
            Ok(value) => Ok(value["State"]["Running"].as_bool().unwrap_or(false)),
            Err(HttpError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How a container is reached, once it said that it is ready.
    async fn started(&self, id: &str) -> Option<Started> {
        let (control, listeners) = ready_line(&self.log(id).await)?;
        let path = format!("/containers/{id}/json");
        let value = self.client.ask(Method::GET, &path, Body::None).await.ok()?;
        let address = value["NetworkSettings"]["Networks"][self.network()]["IPAddress"].as_str()?;
        let reach = |uri: &str| uri.replace("0.0.0.0", address);
        let listeners: BTreeMap<_, _> =
            listeners.into_iter().map(|(label, uri)| (label, reach(&uri))).collect();
        (!address.is_empty()).then(|| Started {
            handle: id.to_owned(),
            control: reach(&control),
            listeners,
        })
    }

    async fn log(&self, id: &str) -> String {
        let path = format!("/containers/{id}/logs?stdout=1&stderr=1&tail=200");
        let octets = self.client.octets(Method::GET, &path, Body::None).await;
        octets.map(|(_, o)| unframed(&o)).unwrap_or_default()
    }

    async fn remove(&self, id: &str) -> Result<(), DriverError> {
        let path = format!("/containers/{id}?force=1&v=1");
        match self.client.ask(Method::DELETE, &path, Body::None).await {
            Ok(_) | Err(HttpError::Refused { status: 404, .. }) => Ok(()),
            Err(error) => Err(DriverError::engine("removing a container", error)),
        }
    }

    async fn list_now(&self) -> Result<Vec<Found>, DriverError> {
        // `{"label":["onym.manager=…"]}`, escaped.
        let filter =
            format!("%7B%22label%22%3A%5B%22onym.manager%3D{}%22%5D%7D", self.options.manager);
        let path = format!("/containers/json?all=1&filters={filter}");
        let rows = self.ask("listing containers", Method::GET, &path, Body::None).await?;
        let mut found = Vec::new();
        for row in rows.as_array().into_iter().flatten() {
            let id = row["Id"].as_str().unwrap_or_default();
            let order = row["Labels"]["onym.order"].as_str();
            let order = order.and_then(|text| serde_json::from_str::<Order>(text).ok());
            match order {
                Some(order) if row["State"] == "running" => found.push(Found {
                    order,
                    started: self.started(id).await,
                    handle: id.to_owned(),
                }),
                _ => self.remove(id).await?,
            }
        }
        Ok(found)
    }
}

/// The order as it is inside of a container, and the ports that are shown outside.
fn inside(order: &Order) -> Result<(Order, BTreeMap<String, Value>), DriverError> {
    let (function, ports) = ports(&order.name, &order.function)?;
    Ok((Order { function, ..order.clone() }, ports))
}

/// The function as it is inside of a container, and the ports that are shown outside.
fn ports(
    name: &str,
    function: &Function,
) -> Result<(Function, BTreeMap<String, Value>), DriverError> {
    let (mut inside, mut ports) = (function.clone(), BTreeMap::new());
    for uri in inside.listen.values_mut().flatten() {
        let parsed = uri.split_once("://").and_then(|(scheme, rest)| {
            let (host, port) = rest.rsplit_once(':')?;
            let protocol = scheme.strip_suffix('4')?;
            Some((scheme.to_owned(), protocol.to_owned(), host.to_owned(), port.to_owned()))
        });
        let Some((scheme, protocol, host, port)) = parsed else {
            let why = format!("{uri}: containers listen at tcp4:// and udp4:// only");
            return Err(DriverError::start(name, why));
        };
        ports.insert(format!("{port}/{protocol}"), json!([{"HostIp": host, "HostPort": port}]));
        *uri = format!("{scheme}://0.0.0.0:{port}");
    }
    Ok((inside, ports))
}

fn quota(cores: Option<f64>) -> (u64, i64) {
    cores.map_or((10_000, -1), quota_us)
}

/// The text of a log: each piece has a header of 8 octets with its length.
fn unframed(octets: &[u8]) -> String {
    let (mut out, mut rest) = (Vec::new(), octets);
    while let Some((head, body)) = rest.split_at_checked(8) {
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let piece = &body[..length.min(body.len())];
        out.extend_from_slice(piece);
        rest = &body[piece.len()..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether an ELF file of 64 bits names a program that must load it (a PT_INTERP header).
fn needs_loader(binary: &[u8]) -> bool {
    let number = |at: usize, size: usize| -> Option<u64> {
        let octets = binary.get(at..at + size)?;
        Some(octets.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b)))
    };
    let interp = || {
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let heads = (0..count).map(|n| usize::try_from(table + n * size).ok());
        Some(heads.flatten().any(|at| number(at, 4) == Some(3)))
    };
    interp().unwrap_or(true)
}

impl Driver for DockerDriver {
    fn word(&self) -> &'static str {
        "docker"
    }

    fn prepare(&self) -> Answer<'_, ()> {
        Box::pin(self.prepare_now())
    }

    fn release(&self) -> Answer<'_, ()> {
        Box::pin(self.remove_network())
    }

    fn start<'a>(&'a self, order: &'a Order) -> Answer<'a, Started> {
        Box::pin(self.start_now(order))
    }

    fn list(&self) -> Answer<'_, Vec<Found>> {
        Box::pin(self.list_now())
    }

    fn check<'a>(
        &'a self,
        functions: &'a [(&'a str, &'a Function)],
        freed: &'a BTreeSet<String>,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            if functions.is_empty() {
                return Ok(());
            }
            // An image that somebody removed is made again.
            self.prepare().await?;
            for (name, function) in functions {
                ports(name, function)?;
            }
            super::check::listeners(functions, freed)
        })
    }

    fn alive<'a>(&'a self, handle: &'a str) -> Answer<'a, bool> {
        Box::pin(async {
            self.state(handle).await.map_err(|e| DriverError::engine("asking for a container", e))
        })
    }

    fn usage<'a>(&'a self, handle: &'a str) -> Answer<'a, Usage> {
        Box::pin(async move {
            let path = format!("/containers/{handle}/stats?stream=false&one-shot=true");
            let stats = self.ask("reading usage", Method::GET, &path, Body::None).await?;
            Ok(Usage {
                cpu_ns: stats["cpu_stats"]["cpu_usage"]["total_usage"].as_u64().unwrap_or(0),
                memory: stats["memory_stats"]["usage"].as_u64().unwrap_or(0),
            })
        })
    }

    fn limit<'a>(&'a self, handle: &'a str, cores: Option<f64>) -> Answer<'a, ()> {
        Box::pin(async move {
            let (period, quota) = quota(cores);
            let body = json!({"CpuPeriod": period, "CpuQuota": quota});
            let path = format!("/containers/{handle}/update");
            self.ask("limiting a container", Method::POST, &path, Body::Json(body))
                .await
                .map(|_| ())
        })
    }

    fn stop<'a>(&'a self, handle: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let path = format!("/containers/{handle}/stop?t=3");
            // One that ended already is removed all the same.
            let _ = self.client.ask(Method::POST, &path, Body::None).await;
            self.remove(handle).await
        })
    }

    fn last_words<'a>(&'a self, handle: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let log = self.log(handle).await;
            Ok(log.lines().last().unwrap_or_default().to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::network::Function;

    #[test]
    fn what_clients_reach_is_shown_outside_and_a_socket_file_is_refused() {
        let mut order = Order {
            name: "br".into(),
            instance: "br-1".into(),
            function: Function::new(Kind::BackwardRouter),
            reversed: false,
            token: String::new(),
        };
        order.function.listen.insert("in".into(), vec!["tcp4://127.0.0.1:6362".into()]);
        let (inner, ports) = inside(&order).unwrap();
        assert_eq!(inner.function.listen["in"], ["tcp4://0.0.0.0:6362"]);
        assert_eq!(ports["6362/tcp"][0]["HostIp"], "127.0.0.1");
        order.function.listen.insert("in".into(), vec!["unix:///run/x".into()]);
        assert!(inside(&order).is_err());
    }

    #[test]
    fn a_log_is_read_piece_by_piece_and_a_cut_one_does_no_harm() {
        let mut octets = vec![2, 0, 0, 0, 0, 0, 0, 3];
        octets.extend(b"abc");
        octets.extend([1, 0, 0, 0, 0, 0, 0, 9]);
        octets.extend(b"de");
        assert_eq!(unframed(&octets), "abcde");
    }

    #[test]
    fn what_is_no_static_binary_is_noticed() {
        assert!(needs_loader(b"no ELF"));
        assert!(needs_loader(&std::fs::read("/bin/sh").unwrap()));
    }
}
