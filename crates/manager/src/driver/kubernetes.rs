//! Services as pods, by the API server of a Kubernetes cluster.
//!
//! Each service is a Deployment of one pod, a Secret with the token of its control interface, and,
//! where clients reach it, a Service. All carry the manager's mark as a label, and the Deployment
//! the order as an annotation. A pod that was replaced or restarted by the cluster lost its links,
//! so it counts as gone: the manager starts the service anew.

mod objects;

use super::kubeconfig::Cluster;
use super::{Answer, Driver, DriverError, Found, Order, Started, Usage, ready_line};
use base64::Engine as _;
use objects::{condition, milli, object_name, parts, pod_name, refused, runs};
use onym_http::client::{Body, HttpError, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Scheduling, pulling the image and starting.
const READY: Duration = Duration::from_secs(90);
/// A pod has three seconds to end.
const GONE: Duration = Duration::from_secs(30);
/// Until the node has done what was asked for.
const RESIZED: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
const NOBODY: u32 = 65_534;
/// The bound that stands for none: limits cannot be taken away from a running pod.
const UNBOUNDED_CORES: f64 = 512.0;

/// How services are run as pods.
#[derive(Debug, Clone)]
pub struct KubernetesOptions {
    /// The API server.
    pub cluster: Cluster,
    /// Where the objects are made; it must be there.
    pub namespace: String,
    /// The image: its entry point is `onym`. Pulled by the nodes unless they have it.
    pub image: String,
    /// Tells this manager's services from others'.
    pub manager: String,
}

/// Services as pods.
#[derive(Debug)]
pub struct KubernetesDriver {
    options: KubernetesOptions,
}

/// Kinds of the objects, with their path, in the order in which they are removed.
const KINDS: [(&str, &str); 3] =
    [("deployments", "/apis/apps/v1"), ("services", "/api/v1"), ("secrets", "/api/v1")];

impl KubernetesDriver {
    /// A driver; nothing is asked yet.
    #[must_use]
    pub fn new(options: KubernetesOptions) -> Self {
        Self { options }
    }

    fn path(&self, kind: &str) -> String {
        let api = KINDS.iter().find(|(k, _)| *k == kind).map_or("/api/v1", |(_, api)| api);
        format!("{api}/namespaces/{}/{kind}", self.options.namespace)
    }

    async fn ask(&self, method: Method, path: &str, body: Body) -> Result<Value, HttpError> {
        self.options.cluster.client.ask(method, path, body).await
    }

    async fn get(&self, doing: &str, path: &str) -> Result<Value, DriverError> {
        let answer = self.ask(Method::GET, path, Body::None).await;
        answer.map_err(|e| DriverError::engine(doing, e))
    }

    async fn prepare_now(&self) -> Result<(), DriverError> {
        let KubernetesOptions { cluster, namespace, .. } = &self.options;
        let absent = |e: &HttpError, next: String| DriverError::Absent {
            engine: "kubernetes",
            why: format!("{}: {e}", cluster.server),
            next,
        };
        let found = self.ask(Method::GET, "/version", Body::None).await;
        let next =
            "name a kubeconfig of a cluster that runs (--kubeconfig), or use --driver process";
        found.map_err(|e| absent(&e, next.to_owned()))?;
        let path = format!("/api/v1/namespaces/{namespace}");
        match self.ask(Method::GET, &path, Body::None).await {
            Ok(_) => Ok(()),
            Err(error @ HttpError::Refused { status: 404, .. }) => {
                Err(absent(&error, format!("kubectl create namespace {namespace}")))
            }
            Err(error) => Err(absent(&error, "give this user rights in the namespace".to_owned())),
        }
    }

    async fn start_now(&self, order: &Order) -> Result<Started, DriverError> {
        let name = object_name(&self.options.manager, &order.instance);
        let started = match self.make(order, &name).await {
            Ok(()) => self.wait_ready(order, &name).await,
            Err(error) => Err(error),
        };
        if started.is_err() {
            let _ = self.remove(&name).await;
        }
        started
    }

    async fn make(&self, order: &Order, name: &str) -> Result<(), DriverError> {
        for (kind, object) in self.objects(order, name)? {
            let made = self.ask(Method::POST, &self.path(kind), Body::Json(object)).await;
            made.map_err(|e| DriverError::start(&order.name, format!("{kind}/{name}: {e}")))?;
        }
        Ok(())
    }

    /// The pod of a service, when there is one that is not ending.
    async fn pod(&self, name: &str) -> Result<Option<Value>, DriverError> {
        let path = format!("{}?labelSelector=onym%2Finstance%3D{name}", self.path("pods"));
        let pods = self.get("asking for a pod", &path).await?;
        let lives = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        Ok(pods["items"].as_array().and_then(|pods| pods.iter().find(lives)).cloned())
    }

    async fn log(&self, pod: &str) -> String {
        let path = format!("{}/{pod}/log?limitBytes=65536", self.path("pods"));
        let octets = self.options.cluster.client.octets(Method::GET, &path, Body::None).await;
        octets.map(|(_, o)| String::from_utf8_lossy(&o).into_owned()).unwrap_or_default()
    }

    async fn wait_ready(&self, order: &Order, name: &str) -> Result<Started, DriverError> {
        let deadline = Instant::now() + READY;
        let mut last = "the cluster made no pod".to_owned();
        while Instant::now() < deadline {
            match self.pod(name).await? {
                Some(pod) => {
                    if let Some(started) = self.started(name, &pod).await {
                        return Ok(started);
                    }
                    match trouble(&pod) {
                        Trouble::Lasting(why) => {
                            let words = self.log(pod_name(&pod)).await;
                            let words = words.lines().last().unwrap_or_default();
                            let why = format!("pod {}: {why} {words}", pod_name(&pod));
                            return Err(DriverError::start(&order.name, why.trim()));
                        }
                        Trouble::Waiting(why) => last = format!("pod {}: {why}", pod_name(&pod)),
                    }
                }
                None => {
                    let path = format!("{}/{name}", self.path("deployments"));
                    let deployment = self.get("asking for a Deployment", &path).await?;
                    if let Some(why) = refused(&deployment) {
                        let why = format!(
                            "deployment {name}: {why}; raise the quota of namespace {} or remove something",
                            self.options.namespace
                        );
                        return Err(DriverError::start(&order.name, why));
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        let why = format!("not ready within {} s: {last}", READY.as_secs());
        Err(DriverError::start(&order.name, why))
    }

    /// How a service is reached, once it said that it is ready.
    async fn started(&self, name: &str, pod: &Value) -> Option<Started> {
        let address = pod["status"]["podIP"].as_str().filter(|_| runs(pod))?;
        let (control, listeners) = ready_line(&self.log(pod_name(pod)).await)?;
        let reach = |uri: &str| uri.replace("0.0.0.0", address);
        Some(Started {
            handle: format!("{name}/{}", pod_name(pod)),
            control: reach(&control),
            listeners: listeners.into_iter().map(|(label, uri)| (label, reach(&uri))).collect(),
        })
    }

    async fn remove(&self, name: &str) -> Result<(), DriverError> {
        for (kind, _) in KINDS {
            let path = format!("{}/{name}?propagationPolicy=Background", self.path(kind));
            match self.ask(Method::DELETE, &path, Body::None).await {
                Ok(_) | Err(HttpError::Refused { status: 404, .. }) => {}
                Err(error) => {
                    return Err(DriverError::engine(format!("removing {kind}/{name}"), error));
                }
            }
        }
        // Its ports are free only then.
        let deadline = Instant::now() + GONE;
        let path = format!("{}?labelSelector=onym%2Finstance%3D{name}", self.path("pods"));
        while Instant::now() < deadline {
            let pods = self.get("asking for a pod", &path).await?;
            if pods["items"].as_array().is_none_or(Vec::is_empty) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn list_now(&self) -> Result<Vec<Found>, DriverError> {
        let ours = |kind: &str| {
            format!("{}?labelSelector=onym%2Fmanager%3D{}", self.path(kind), self.options.manager)
        };
        let deployments = self.get("listing Deployments", &ours("deployments")).await?;
        let secrets = self.get("listing Secrets", &ours("secrets")).await?;
        let mut found = BTreeMap::new();
        for deployment in deployments["items"].as_array().into_iter().flatten() {
            let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
            let order = deployment["metadata"]["annotations"]["onym/order"].as_str();
            let order = order.and_then(|text| serde_json::from_str::<Order>(text).ok());
            let Some(order) = order else {
                self.remove(name).await?;
                continue;
            };
            let started = match self.pod(name).await? {
                Some(pod) => self.started(name, &pod).await,
                None => None,
            };
            let handle = started.as_ref().map_or_else(|| format!("{name}/"), |s| s.handle.clone());
            found.insert(name.to_owned(), Found { order, started, handle });
        }
        for secret in secrets["items"].as_array().into_iter().flatten() {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            let token = secret["data"]["token"].as_str().unwrap_or_default();
            let token = base64::engine::general_purpose::STANDARD.decode(token).unwrap_or_default();
            match found.get_mut(name) {
                Some(found) => found.order.token = String::from_utf8_lossy(&token).into_owned(),
                // Of a start that was not finished.
                None => self.remove(name).await?,
            }
        }
        Ok(found.into_values().collect())
    }

    async fn alive_now(&self, handle: &str) -> Result<bool, DriverError> {
        let (_, pod) = parts(handle);
        match self.ask(Method::GET, &format!("{}/{pod}", self.path("pods")), Body::None).await {
            Ok(pod) => Ok(runs(&pod)),
            Err(HttpError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(DriverError::engine("asking for a pod", error)),
        }
    }

    /// What the node of the pod counted.
    async fn usage_now(&self, handle: &str) -> Result<Usage, DriverError> {
        let (_, name) = parts(handle);
        let pod = self.get("asking for a pod", &format!("{}/{name}", self.path("pods"))).await?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let path = format!("/api/v1/nodes/{node}/proxy/stats/summary");
        let stats = self.get("reading usage", &path).await?;
        let is_it = |row: &&Value| row["podRef"]["name"] == name;
        let row = stats["pods"].as_array().and_then(|pods| pods.iter().find(is_it));
        let missing =
            || DriverError::engine("reading usage", format!("{node} counts no pod {name}"));
        let row = row.ok_or_else(missing)?;
        Ok(Usage {
            cpu_ns: row["cpu"]["usageCoreNanoSeconds"].as_u64().unwrap_or(0),
            memory: row["memory"]["workingSetBytes"].as_u64().unwrap_or(0),
        })
    }

    /// Changes the limit of a pod that runs, without a restart.
    async fn limit_now(&self, handle: &str, cores: Option<f64>) -> Result<(), DriverError> {
        let (_, pod) = parts(handle);
        let doing = format!("resizing pod {pod}");
        let cpu = milli(cores.unwrap_or(UNBOUNDED_CORES));
        let patch = json!({"spec": {"containers": [
            {"name": "service", "resources": {"limits": {"cpu": cpu}}},
        ]}});
        let kind = "application/strategic-merge-patch+json";
        let body = Body::Octets(kind, patch.to_string().into_bytes().into());
        let path = format!("{}/{pod}", self.path("pods"));
        let asked = self.ask(Method::PATCH, &format!("{path}/resize"), body).await;
        asked.map_err(|e| DriverError::engine(&doing, e))?;
        let deadline = Instant::now() + RESIZED;
        loop {
            let now = self.get(&doing, &path).await?;
            let is_so = now["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == *cpu;
            if is_so {
                return Ok(());
            }
            let pending = condition(&now, "PodResizePending");
            if pending.is_some_and(|c| c["reason"] == "Infeasible") || Instant::now() > deadline {
                let why = pending.and_then(|c| c["message"].as_str());
                let why = why.unwrap_or("its node has not done it");
                return Err(DriverError::engine(doing, why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// What keeps a pod from running.
enum Trouble {
    /// It will not go away.
    Lasting(String),
    /// It may.
    Waiting(String),
}

fn trouble(pod: &Value) -> Trouble {
    let container = &pod["status"]["containerStatuses"][0];
    let waiting = &container["state"]["waiting"];
    if let Some(reason) = waiting["reason"].as_str() {
        let message = waiting["message"].as_str().unwrap_or_default();
        let image = container["image"].as_str().unwrap_or_default();
        let text = format!("{reason}: {message}");
        return match reason {
            "ContainerCreating" | "PodInitializing" => Trouble::Waiting(text),
            _ if reason.contains("Image") || reason.contains("Pull") => Trouble::Lasting(format!(
                "{text}; load the image {image} into the nodes, or name one that they can pull: --image"
            )),
            _ => Trouble::Lasting(text),
        };
    }
    let ended = [&container["state"]["terminated"], &container["lastState"]["terminated"]];
    if let Some(ended) = ended.into_iter().find(|t| !t.is_null()) {
        return Trouble::Lasting(format!("it ended with {}:", ended["exitCode"]));
    }
    let scheduled = condition(pod, "PodScheduled").filter(|c| c["status"] == "False");
    let why = scheduled.and_then(|c| c["message"].as_str()).unwrap_or("it is being started");
    Trouble::Waiting(why.to_owned())
}

/// A port that clients reach.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Port {
    number: u16,
    protocol: &'static str,
    host: String,
}

impl Port {
    fn named(&self) -> String {
        format!("{}-{}", self.protocol.to_ascii_lowercase(), self.number)
    }

    fn of_container(&self) -> Value {
        json!({
            "name": self.named(), "containerPort": self.number, "protocol": self.protocol,
            "hostPort": self.number, "hostIP": self.host,
        })
    }

    fn of_service(&self) -> Value {
        json!({"name": self.named(), "port": self.number, "protocol": self.protocol})
    }
}

impl Driver for KubernetesDriver {
    fn word(&self) -> &'static str {
        "kubernetes"
    }

    fn prepare(&self) -> Answer<'_, ()> {
        Box::pin(self.prepare_now())
    }

    fn start<'a>(&'a self, order: &'a Order) -> Answer<'a, Started> {
        Box::pin(self.start_now(order))
    }

    fn list(&self) -> Answer<'_, Vec<Found>> {
        Box::pin(self.list_now())
    }

    fn alive<'a>(&'a self, handle: &'a str) -> Answer<'a, bool> {
        Box::pin(self.alive_now(handle))
    }

    fn usage<'a>(&'a self, handle: &'a str) -> Answer<'a, Usage> {
        Box::pin(self.usage_now(handle))
    }

    fn limit<'a>(&'a self, handle: &'a str, cores: Option<f64>) -> Answer<'a, ()> {
        Box::pin(self.limit_now(handle, cores))
    }

    fn stop<'a>(&'a self, handle: &'a str) -> Answer<'a, ()> {
        Box::pin(self.remove(parts(handle).0))
    }

    fn last_words<'a>(&'a self, handle: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let log = self.log(parts(handle).1).await;
            Ok(log.lines().last().unwrap_or_default().to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ones_that_kubernetes_takes_and_end_in_the_number_of_the_start() {
        assert_eq!(object_name("ab12", "nr2.nr1.br-7"), "onym-ab12-nr2-nr1-br-7");
        let long = object_name("ab12", &format!("{}_X-{}", "a".repeat(80), 12));
        assert!(long.len() <= 46 && long.ends_with("-x-12"), "{long}");
    }

    #[test]
    fn cores_are_written_as_the_api_server_writes_them() {
        assert_eq!(milli(0.5), "500m");
        assert_eq!(milli(2.0), "2");
        assert_eq!(milli(0.0), "1m");
    }

    #[test]
    fn an_image_that_cannot_be_had_lasts_and_a_full_cluster_may_not() {
        let waiting = json!({"status": {"containerStatuses": [{"image": "x:1", "state": {
            "waiting": {"reason": "ErrImagePull", "message": "no such host"}}}]}});
        let Trouble::Lasting(why) = trouble(&waiting) else { panic!("it does not go away") };
        assert!(why.contains("x:1") && why.contains("no such host"), "{why}");
        let full = json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "message": "Insufficient cpu"}]}});
        assert!(matches!(trouble(&full), Trouble::Waiting(why) if why == "Insufficient cpu"));
    }

    #[test]
    fn a_pod_that_was_started_again_does_not_count_as_running() {
        let pod = |restarts: u32| {
            json!({"metadata": {}, "status": {"phase": "Running", "containerStatuses": [
                {"restartCount": restarts, "state": {"running": {}}}]}})
        };
        assert!(runs(&pod(0)) && !runs(&pod(1)));
    }
}
