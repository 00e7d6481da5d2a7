//! The paths of the console.

use crate::access::Door;
use crate::change::Change;
use crate::lab::Lab;
use crate::live::Live;
use crate::node::{Nodes, Question};
use crate::pool::Pool;
use crate::refused::{Kind, Refused};
use crate::tail::Tails;
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_http::entries::Entries;
use onym_http::page::{Page, SAFE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest body, in octets.
const BODY_MAX: usize = 64 << 10;

/// The page, built from `web/` and kept in the tree.
static PAGE: LazyLock<Page> = LazyLock::new(|| {
    Page::new(include_str!("../page/index.html"), |text| {
        BASE64_STANDARD.encode(onym_crypto::sha256(&[text.as_bytes()]))
    })
});

/// A text that nobody guesses.
fn secret() -> String {
    let mut octets = [0; 16];
    SystemEntropy.fill(&mut octets);
    onym_crypto::digest::hex(&octets)
}

/// A console of one node.
#[derive(Clone)]
pub struct Console {
    door: Door,
    entries: Arc<Entries>,
    nodes: Arc<dyn Nodes>,
    pool: Pool,
    live: Live,
    tails: Tails,
    lab: Option<Lab>,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("door", &self.door).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    code: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfNetwork {
    #[serde(default)]
    network: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfItem {
    #[serde(default)]
    item: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    #[serde(default)]
    since: u64,
}

impl Console {
    /// A console at `door` of the node that `nodes` opens.
    #[must_use]
    pub fn new(nodes: Arc<dyn Nodes>, door: Door) -> Self {
        Self {
            door,
            entries: Arc::new(Entries::new(secret)),
            pool: Pool::new(Arc::clone(&nodes)),
            live: Live::new(Arc::clone(&nodes)),
            tails: Tails::new(Arc::clone(&nodes)),
            nodes,
            lab: None,
        }
    }

    /// It also shows the laboratory's results in `folder`.
    #[must_use]
    pub fn with_lab(self, folder: PathBuf) -> Self {
        Self { lab: Some(Lab::new(folder)), ..self }
    }

    /// An address at which a browser finds the page and is let in, once.
    #[must_use]
    pub fn address(&self) -> String {
        // What is behind # stays in the browser: it is in no request line and in no log.
        format!("{}/#code={}", self.door.url(), self.entries.code())
    }

    /// Everything that is served.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).layer(from_fn(safe)).with_state(self.clone())
    }

    async fn respond(&self, request: Request) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        if path == "/" {
            self.door.check_place(&parts)?;
            return match parts.method {
                Method::GET => Ok(PAGE.into_response()),
                _ => Err(method()),
            };
        }
        if path == "/v1/session" {
            self.door.check_page(&parts)?;
            return match parts.method {
                Method::POST => self.enter(&read::<Session>(body).await?),
                _ => Err(method()),
            };
        }
        self.door.check_browser(&parts, &self.entries)?;
        match parts.method {
            Method::GET => {
                let query = parts.uri.query().unwrap_or_default();
                if path == "/v1/tail" {
                    return self.tails.open(pairs(query)?).await;
                }
                self.told(&path, query).await
            }
            Method::POST if path == "/v1/session/end" => {
                if let Some(own) = self.door.own(&parts.headers) {
                    self.entries.end(own);
                }
                Ok(([(SET_COOKIE, self.door.set_cookie(None))], json("{}".to_owned()))
                    .into_response())
            }
            Method::POST => {
                let question = posted(&path, body).await?;
                self.pool.ask(question).await.map(json)
            }
            _ => Err(method()),
        }
    }

    /// Lets the browser in that has a code.
    fn enter(&self, session: &Session) -> Result<Response, Refused> {
        let own = self.entries.exchange(&session.code).ok_or_else(|| {
            let text = "this code was used, or is too old; press Enter where `onym console` runs \
                        for another address";
            Refused::new(Kind::Session, text)
        })?;
        let cookie = self.door.set_cookie(Some(&own));
        Ok(([(SET_COOKIE, cookie)], json("{}".to_owned())).into_response())
    }

    /// What a GET asks for.
    async fn told(&self, path: &str, query: &str) -> Result<Response, Refused> {
        if let Some(file) = path.strip_prefix(LAB_FILE) {
            let file = file.to_owned();
            let report = self.of_lab(move |lab| lab.file(&file)).await?;
            let mut response = report.octets.into_response();
            response.headers_mut().extend(report.headers);
            return Ok(response);
        }
        let question = match path {
            "/v1/about" => Question::About,
            "/v1/status" => Question::Status,
            "/v1/faces" => Question::Faces,
            "/v1/routes" => Question::Routes,
            "/v1/strategies" => Question::Strategies,
            "/v1/history" => Question::History { since: parsed::<Since>(query)?.since },
            "/v1/routing" => Question::Routing { network: parsed::<OfNetwork>(query)?.network },
            "/v1/push" => Question::Push { item: parsed::<OfItem>(query)?.item },
            "/v1/explain" => Question::Explain { name: parsed::<Named>(query)?.name },
            "/v1/lab" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now_ms = u64::try_from(now.as_millis()).unwrap_or(0);
                return self.of_lab(move |lab| lab.runs(now_ms)).await.map(json);
            }
            "/v1/top" => return self.live.ask().await.map(json),
            "/v1/verdicts" => {
                let words: serde_json::Map<_, _> = self
                    .nodes
                    .verdicts()
                    .into_iter()
                    .map(|(w, t)| (w.to_owned(), t.into()))
                    .collect();
                return Ok(axum::Json(words).into_response());
            }
            other if is_posted(other) => return Err(method()),
            _ => return Err(nowhere()),
        };
        self.pool.ask(question).await.map(json)
    }
}

impl Console {
    /// Reads in the laboratory's folder, where there is one.
    async fn of_lab<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Lab) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let Some(lab) = self.lab.clone() else {
            let next = Some("start it as `onym console --lab FOLDER`".to_owned());
            let message = "this console was given no results of a laboratory".to_owned();
            return Err(Refused { kind: Kind::NotFound, message, next });
        };
        let gone = |_| Refused::new(Kind::Failed, "the console ends");
        tokio::task::spawn_blocking(move || work(&lab)).await.map_err(gone)?
    }
}

/// Behind it: experiment, run and file of a report.
const LAB_FILE: &str = "/v1/lab/file/";

/// Paths that only POST has.
const POSTED: [&str; 11] = [
    "/v1/session/end",
    "/v1/trace",
    "/v1/nodes/ask",
    "/v1/faces/create",
    "/v1/faces/destroy",
    "/v1/routes/add",
    "/v1/routes/remove",
    "/v1/strategies/set",
    "/v1/strategies/unset",
    "/v1/cs/config",
    "/v1/cs/erase",
];

fn is_posted(path: &str) -> bool {
    POSTED.contains(&path)
}

/// What a POST asks for.
async fn posted(path: &str, body: Body) -> Result<Question, Refused> {
    Ok(Question::Change(match path {
        "/v1/trace" => {
            return read::<Named>(body).await.map(|named| Question::Trace { name: named.name });
        }
        "/v1/nodes/ask" => {
            return read::<Named>(body).await.map(|named| Question::Other { name: named.name });
        }
        "/v1/faces/create" => Change::FaceCreate(read(body).await?),
        "/v1/faces/destroy" => Change::FaceDestroy(read(body).await?),
        "/v1/routes/add" => Change::RouteAdd(read(body).await?),
        "/v1/routes/remove" => Change::RouteRemove(read(body).await?),
        "/v1/strategies/set" => Change::StrategySet(read(body).await?),
        "/v1/strategies/unset" => Change::StrategyUnset(read(body).await?),
        "/v1/cs/config" => Change::CacheSettings(read(body).await?),
        "/v1/cs/erase" => Change::CacheErase(read(body).await?),
        _ => return Err(nowhere()),
    }))
}

fn method() -> Refused {
    Refused::new(Kind::Method, "this path does not have this method")
}

fn nowhere() -> Refused {
    Refused::new(Kind::NotFound, "there is no such path")
}

fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// A body.
async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Refused> {
    let octets = axum::body::to_bytes(body, BODY_MAX).await.map_err(|_| {
        Refused::new(Kind::TooLarge, format!("a body has at most {} KiB", BODY_MAX >> 10))
    })?;
    let wrong = |e: serde_json::Error| Refused::new(Kind::Usage, format!("the body: {e}"));
    serde_json::from_slice(&octets).map_err(wrong)
}

/// What follows the question mark.
fn parsed<T: DeserializeOwned>(query: &str) -> Result<T, Refused> {
    let uri = format!("/?{query}").parse();
    let wrong = |e: &dyn std::fmt::Display| Refused::new(Kind::Usage, format!("the query: {e}"));
    let uri = uri.map_err(|e: axum::http::uri::InvalidUri| wrong(&e))?;
    Query::<T>::try_from_uri(&uri).map(|Query(found)| found).map_err(|e| wrong(&e))
}

/// The pairs of a query whose values are not empty.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Refused> {
    let all: Vec<(String, String)> = parsed(query)?;
    Ok(all.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}

async fn answer(State(console): State<Console>, request: Request) -> Response {
    console.respond(request).await.unwrap_or_else(IntoResponse::into_response)
}

/// Adds what every answer has.
async fn safe(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in SAFE {
        response.headers_mut().insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}
