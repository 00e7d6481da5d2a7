//! Address and credentials of a Kubernetes API server: from a kubeconfig file or from within a pod.

use base64::Engine as _;
use onym_http::client::Client;
use onym_http::tls::Tls;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keys that name files.
const FILES: &[&str] = &["certificate-authority", "client-certificate", "client-key", "tokenFile"];

/// What a pod finds inside of a cluster.
const IN_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An API server to ask.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(crate) client: Client,
    /// Where it is, for errors.
    pub(super) server: String,
}

impl Cluster {
    /// The cluster of a kubeconfig file's present context; of those that `KUBECONFIG` lists, of the pod
    /// that this runs in, or of `~/.kube/config`, when no file is named.
    ///
    /// # Errors
    /// A sentence: which file, what is wrong with it.
    pub fn find(file: Option<&Path>, timeout: Duration) -> Result<Self, String> {
        if let Some(file) = file {
            return Self::of_file(file, timeout);
        }
        if let Some(files) = std::env::var_os("KUBECONFIG").filter(|f| !f.is_empty()) {
            return Self::of_files(&std::env::split_paths(&files).collect::<Vec<_>>(), timeout);
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
        let url = format!("https://{host}:{port}");
        let mut cluster = Self::new(&url, Some(&tls), Some(token), timeout)?;
        // It is replaced long before it expires.
        cluster.client = cluster.client.with_token_file(Path::new(IN_POD).join("token"));
        Ok(cluster)
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
        let config = read(file)?;
        Self::of_config(&config, timeout).map_err(|e| format!("{shown}: {e}"))
    }

    /// As kubectl merges them: of what stands in several files, the first holds; those that are not there
    /// are passed over.
    fn of_files(files: &[PathBuf], timeout: Duration) -> Result<Self, String> {
        let mut there = files.iter().filter(|file| file.exists()).peekable();
        if there.peek().is_none() {
            let shown: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            return Err(format!("KUBECONFIG: none of these is there: {}", shown.join(", ")));
        }
        let mut all = json!({"contexts": [], "clusters": [], "users": []});
        for file in there {
            let config = read(file)?;
            let context = &config["current-context"];
            if all["current-context"].is_null() && *context != "" {
                all["current-context"] = context.clone();
            }
            for list in ["contexts", "clusters", "users"] {
                let more = config[list].as_array().cloned().unwrap_or_default();
                if let Some(rows) = all[list].as_array_mut() {
                    rows.extend(more);
                }
            }
        }
        Self::of_config(&all, timeout).map_err(|e| format!("KUBECONFIG: {e}"))
    }

    fn of_config(config: &Value, timeout: Duration) -> Result<Self, String> {
        let context = config["current-context"].as_str().ok_or("there is no current-context")?;
        let context = named(config, "contexts", context, "context")?;
        let part = |list: &str, key: &str| {
            let name = context[key].as_str().ok_or_else(|| format!("the context has no {key}"))?;
            named(config, list, name, key)
        };
        let (cluster, user) = (part("clusters", "cluster")?, part("users", "user")?);
        let server = cluster["server"].as_str().ok_or("the cluster has no server")?;
        if cluster["insecure-skip-tls-verify"] == true {
            return Err("insecure-skip-tls-verify: a server is asked only when its certificate can be verified; name certificate-authority".to_owned());
        }
        let identity = match (pem(user, "client-certificate")?, pem(user, "client-key")?) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => None,
        };
        let identity = identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
        let authority = pem(cluster, "certificate-authority")?;
        let tls = authority.map(|a| Tls::new(&a, identity)).transpose();
        let tls = tls.map_err(|e| e.to_string())?;
        let file = user["tokenFile"].as_str().map(PathBuf::from);
        let token = match (user["token"].as_str(), &file) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file);
                Some(text.map_err(|e| format!("{}: {e}", file.display()))?.trim().to_owned())
            }
            (None, None) => None,
        };
        if token.is_none() && identity.is_none() {
            return Err("the user has neither a token nor a client certificate".to_owned());
        }
        let mut made = Self::new(server, tls.as_ref(), token, timeout)?;
        // kubectl, too, prefers the file where both are given.
        if let Some(file) = file {
            made.client = made.client.with_token_file(file);
        }
        Ok(made)
    }
}

/// A kubeconfig file; the files that it names are named from its folder.
fn read(file: &Path) -> Result<Value, String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| format!("{shown}: {e}"))?;
    let base = file.parent().unwrap_or(Path::new("."));
    parsed(&text, base).map_err(|e| format!("{shown}: {e}"))
}

fn parsed(text: &str, base: &Path) -> Result<Value, String> {
    let mut config = crate::describe::yaml_value(text).map_err(|e| e.to_string())?;
    for (list, key) in [("clusters", "cluster"), ("users", "user")] {
        let rows = config.get_mut(list).and_then(Value::as_array_mut);
        for object in rows.into_iter().flatten().filter_map(|row| row.get_mut(key)) {
            for name in FILES {
                if let Some(Value::String(file)) = object.get_mut(*name) {
                    *file = base.join(&file).to_string_lossy().into_owned();
                }
            }
        }
    }
    Ok(config)
}

/// The object `name` of one of the lists, which are `[{name: …, KEY: {…}}]`.
fn named<'a>(config: &'a Value, list: &str, name: &str, key: &str) -> Result<&'a Value, String> {
    let rows = config[list].as_array().map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row["name"] == name);
    Ok(&row.ok_or_else(|| format!("there is no {key} {name:?} in {list}"))?[key])
}

/// `KEY-data`, which is base64, or the file that `KEY` names.
fn pem(object: &Value, key: &str) -> Result<Option<Vec<u8>>, String> {
    if let Some(data) = object[format!("{key}-data")].as_str() {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        return decoded.map(Some).map_err(|e| format!("{key}-data: {e}"));
    }
    let Some(file) = object[key].as_str() else { return Ok(None) };
    std::fs::read(file).map(Some).map_err(|e| format!("{key}: {file}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Cluster, String> {
        Cluster::of_config(&parsed(text, Path::new("/nowhere"))?, Duration::from_secs(1))
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

    #[test]
    fn of_what_several_files_say_the_first_holds() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let users = "current-context: c\nusers: [{name: u, user: {tokenFile: secret}}]\n";
        let first = file("first", users);
        let second = file("second", &PLAIN.replace("current-context: c", "current-context: d"));
        file("secret", " one\n");
        let absent = folder.path().join("absent");
        let time = Duration::from_secs(1);
        let empty = file("empty", "current-context: \"\"\nclusters: []\n");
        let found = Cluster::of_files(&[absent.clone(), empty, first, second], time).unwrap();
        assert_eq!(found.server, "http://127.0.0.1:1");
        let none = Cluster::of_files(&[absent], time).unwrap_err();
        assert!(none.contains("none of these is there") && none.contains("absent"), "{none}");
    }

    #[tokio::test]
    async fn a_token_that_was_replaced_is_the_one_that_is_sent() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "old\n").unwrap();
        let text = PLAIN.replace("127.0.0.1:1", &at).replace("token: t", "tokenFile: token");
        let config = parsed(&text, folder.path()).unwrap();
        let cluster = Cluster::of_config(&config, Duration::from_secs(10)).unwrap();
        for token in ["old", "new", "new"] {
            std::fs::write(&file, token).unwrap();
            let asked = cluster.client.ask(
                onym_http::client::Method::GET,
                "/",
                onym_http::client::Body::None,
            );
            let heard = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut octets = vec![0; 4096];
                let count = stream.read(&mut octets).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                String::from_utf8_lossy(&octets[..count]).into_owned()
            };
            let (answer, heard) = tokio::join!(asked, heard);
            answer.unwrap();
            assert!(heard.contains(&format!("Bearer {token}\r\n")), "{heard}");
        }
    }
}
