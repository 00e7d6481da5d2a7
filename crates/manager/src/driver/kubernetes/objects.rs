//! The Kubernetes objects of a service, and their state.

use super::{KubernetesDriver, NOBODY, Port};
use crate::driver::{DriverError, Order, words};
use base64::Engine as _;
use serde_json::{Value, json};

/// Cores as the API server writes them.
pub(super) fn milli(cores: f64) -> String {
    let milli = (cores * 1000.0).round().max(1.0) as u64;
    if milli.is_multiple_of(1000) { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// Name of the object and of the pod in a handle.
pub(super) fn parts(handle: &str) -> (&str, &str) {
    handle.split_once('/').unwrap_or((handle, ""))
}

/// A name that Kubernetes takes, for label values too: small letters, digits and `-`, at most 63.
/// The number at the end of an instance keeps it apart from others.
pub(super) fn object_name(manager: &str, instance: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let instance: String = instance.chars().map(fit).collect();
    let begin = format!("onym-{manager}-");
    let room = 46_usize.saturating_sub(begin.len());
    let tail = &instance[instance.len().saturating_sub(room)..];
    format!("{begin}{}", tail.trim_start_matches('-'))
}

pub(super) fn pod_name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}

/// Whether the service runs since its start: one that was started again lost its links.
pub(super) fn runs(pod: &Value) -> bool {
    let container = &pod["status"]["containerStatuses"][0];
    pod["metadata"]["deletionTimestamp"].is_null()
        && pod["status"]["phase"] == "Running"
        && container["restartCount"] == 0
        && !container["state"]["running"].is_null()
}

/// Why a Deployment got no pod.
pub(super) fn refused(deployment: &Value) -> Option<&str> {
    let failure = condition(deployment, "ReplicaFailure").filter(|c| c["status"] == "True")?;
    failure["message"].as_str()
}

/// The order as it is inside of a pod, and the ports that are shown outside.
fn inside(order: &Order) -> Result<(Order, Vec<Port>), DriverError> {
    let (mut inside, mut ports) = (order.clone(), Vec::new());
    for uri in inside.function.listen.values_mut().flatten() {
        let parsed = uri.split_once("://").and_then(|(scheme, rest)| {
            let (host, port) = rest.rsplit_once(':')?;
            let protocol = match scheme {
                "tcp4" => "TCP",
                "udp4" => "UDP",
                _ => return None,
            };
            let port = Port { number: port.parse().ok()?, protocol, host: host.to_owned() };
            Some((scheme.to_owned(), port))
        });
        let Some((scheme, port)) = parsed else {
            let why = format!("{uri}: pods listen at tcp4:// and udp4:// only");
            return Err(DriverError::start(&order.name, why));
        };
        *uri = format!("{scheme}://0.0.0.0:{}", port.number);
        ports.push(port);
    }
    Ok((inside, ports))
}

impl KubernetesDriver {
    pub(super) fn objects(
        &self,
        order: &Order,
        name: &str,
    ) -> Result<Vec<(&'static str, Value)>, DriverError> {
        let labels = json!({
            "app.kubernetes.io/managed-by": "onym",
            "onym/manager": self.options.manager,
            "onym/instance": name,
        });
        let meta = json!({"name": name, "labels": labels});
        let (inside, ports) = inside(order)?;
        // Without the secret: annotations are for everybody who may read Deployments.
        let told = json!(Order { token: String::new(), ..order.clone() }).to_string();
        let token = base64::engine::general_purpose::STANDARD.encode(&order.token);
        let limits = order.function.quota.map_or(json!({}), |cores| json!({"cpu": milli(cores)}));
        let container = json!({
            "name": "service",
            "image": self.options.image,
            "imagePullPolicy": "IfNotPresent",
            "args": words(&inside, "0.0.0.0", "0.0.0.0:0", "/run/onym/token"),
            "ports": ports.iter().map(Port::of_container).collect::<Vec<_>>(),
            // A request makes the pod burstable at once: its class cannot change later.
            "resources": {"requests": {"cpu": "1m"}, "limits": limits},
            // A quota is changed without a restart.
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "secret", "mountPath": "/run/onym", "readOnly": true}],
        });
        let pod = json!({
            "metadata": {"labels": labels},
            "spec": {
                "containers": [container],
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 3,
                "securityContext": {
                    "runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY, "runAsNonRoot": true,
                },
                "volumes": [{"name": "secret", "secret": {"secretName": name, "defaultMode": 0o440}}],
            },
        });
        let secret = json!({"metadata": meta, "data": {"token": token}});
        let deployment = json!({
            "metadata": {"name": name, "labels": labels, "annotations": {"onym/order": told}},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"onym/instance": name}},
                "template": pod,
            },
        });
        let mut objects = vec![("secrets", secret), ("deployments", deployment)];
        if !ports.is_empty() {
            let service = json!({"metadata": meta, "spec": {
                "selector": {"onym/instance": name},
                "ports": ports.iter().map(Port::of_service).collect::<Vec<_>>(),
            }});
            objects.push(("services", service));
        }
        Ok(objects)
    }
}
