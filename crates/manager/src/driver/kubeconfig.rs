//! Address and credentials of a Kubernetes API server: from a kubeconfig file or from within a pod.

use base64::Engine as _;
use onym_http::client::Client;
use onym_http::tls::Tls;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a pod finds inside of a cluster.
const IN_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An API server to ask.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(super) client: Client,
    /// Where it is, for errors.
    pub(super) server: String,
}

impl Cluster {
    /// The cluster of a kubeconfig file's present context; of `KUBECONFIG`, of the pod that this
    /// runs in, or of `~/.kube/config`, when no file is named.
    ///
    /// # Errors
    /// A sentence: which file, what is wrong with it.
    pub fn find(file: Option<&Path>, timeout: Duration) -> Result<Self, String> {
        if let Some(file) = file {
            return Self::of_file(file, timeout);
        }
        if let Some(file) = std::env::var_os("KUBECONFIG").filter(|f| !f.is_empty()) {
            return Self::of_file(Path::new(&file), timeout);
        }
        if let Some(host) = std::env::var_os("KUBERNETES_SERVICE_HOST") {
            return Self::of_pod(&host.to_string_lossy(), timeout);
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        Self::of_file(&home.join(".kube/config"), timeout)
    }

    fn of_pod(host: &str, timeout: Duration) -> Result<Self, String> {
        let read = |name: &str| {
            let path = Path::new(IN_POD).join(name);
            std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let token = String::from_utf8_lossy(&read("token")?).trim().to_owned();
        let tls = Tls::new(&read("ca.crt")?, None).map_err(|e| e.to_string())?;
        let port = std::env::var("KUBERNETES_SERVICE_PORT").unwrap_or_else(|_| "443".to_owned());
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Self::new(&format!("https://{host}:{port}"), Some(&tls), Some(token), timeout)
    }

    fn new(
        server: &str,
        tls: Option<&Tls>,
        token: Option<String>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let client = Client::of_url_with(server, tls, token, timeout);
        Ok(Self { client: client.map_err(|e| e.to_string())?, server: server.to_owned() })
    }

    fn of_file(file: &Path, timeout: Duration) -> Result<Self, String> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{shown}: {e}"))?;
        let base = file.parent().unwrap_or(Path::new("."));
        Self::of_text(&text, base, timeout).map_err(|e| format!("{shown}: {e}"))
    }

    fn of_text(text: &str, base: &Path, timeout: Duration) -> Result<Self, String> {
        let config = crate::describe::yaml_value(text).map_err(|e| e.to_string())?;
        let context = config["current-context"].as_str().ok_or("there is no current-context")?;
        let context = named(&config, "contexts", context, "context")?;
        let part = |list: &str, key: &str| {
            let name = context[key].as_str().ok_or_else(|| format!("the context has no {key}"))?;
            named(&config, list, name, key)
        };
        let (cluster, user) = (part("clusters", "cluster")?, part("users", "user")?);
        let server = cluster["server"].as_str().ok_or("the cluster has no server")?;
        if cluster["insecure-skip-tls-verify"] == true {
            return Err("insecure-skip-tls-verify: a server is asked only when its certificate can be verified; name certificate-authority".to_owned());
        }
        let pem = |object: &Value, key: &str| pem(object, key, base);
        let identity = match (pem(user, "client-certificate")?, pem(user, "client-key")?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => None,
        };
        let identity = identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
        let authority = pem(cluster, "certificate-authority")?;
        let tls = authority.map(|a| Tls::new(&a, identity)).transpose();
        let tls = tls.map_err(|e| e.to_string())?;
        let token = match (user["token"].as_str(), user["tokenFile"].as_str()) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(base.join(file));
                Some(text.map_err(|e| format!("{file}: {e}"))?.trim().to_owned())
            }
            (None, None) => None,
        };
        if token.is_none() && identity.is_none() {
            return Err("the user has neither a token nor a client certificate".to_owned());
        }
        Self::new(server, tls.as_ref(), token, timeout)
    }
}

/// The object `name` of one of the lists, which are `[{name: …, KEY: {…}}]`.
fn named<'a>(config: &'a Value, list: &str, name: &str, key: &str) -> Result<&'a Value, String> {
    let rows = config[list].as_array().map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row["name"] == name);
    Ok(&row.ok_or_else(|| format!("there is no {key} {name:?} in {list}"))?[key])
}

/// `KEY-data`, which is base64, or the file that `KEY` names.
fn pem(object: &Value, key: &str, base: &Path) -> Result<Option<Vec<u8>>, String> {
    if let Some(data) = object[format!("{key}-data")].as_str() {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        return decoded.map(Some).map_err(|e| format!("{key}-data: {e}"));
    }
    let Some(file) = object[key].as_str() else { return Ok(None) };
    std::fs::read(base.join(file)).map(Some).map_err(|e| format!("{key}: {file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Cluster, String> {
        Cluster::of_text(text, Path::new("/nowhere"), Duration::from_secs(1))
    }

    const PLAIN: &str = "current-context: c\ncontexts: [{name: c, context: {cluster: l, user: u}}]\nclusters: [{name: l, cluster: {server: \"http://127.0.0.1:1\"}}]\nusers: [{name: u, user: {token: t}}]\n";

    #[test]
    fn a_file_names_its_server_and_what_is_missing_is_said() {
        assert_eq!(of(PLAIN).unwrap().server, "http://127.0.0.1:1");
        let without = |what: &str, with: &str| of(&PLAIN.replace(what, with)).unwrap_err();
        assert!(without("current-context: c", "").contains("current-context"));
        assert!(without("name: l, ", "name: m, ").contains("no cluster \"l\""));
        assert!(without("token: t", "").contains("neither a token"));
        assert!(without("http:", "https:").contains("authority"));
        let skips = without("server:", "insecure-skip-tls-verify: true, server:");
        assert!(skips.contains("certificate-authority"), "{skips}");
        let missing = without("server:", "certificate-authority: ca.crt, server:");
        assert!(missing.contains("ca.crt"), "{missing}");
    }
}
