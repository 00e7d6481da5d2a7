//! `onym net`: the client of a manager's interface.

mod reach;
mod show;

use crate::exit::{Exit, Failure};
use crate::output::{Context, write_json, write_line};
use crate::secure::{self, Asking};
use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use onym_http::client::{Body, Client, HttpError, Method};
use onym_manager::describe::Form;
use onym_manager::kind::Kind;
use onym_manager::network::Function;
use reach::{failure, leader};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// A change may start many services: longer than a service's answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// Whether a manager leads is answered at once.
const HEALTH: Duration = Duration::from_secs(5);

/// Control a manager: apply, plan, show, insert, remove, scale.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym net preset nfd
  onym net show
  onym net plan network.toml               # what would be done
  onym net apply network.toml
  onym net insert cs br sv signature-verifier
  onym net scale br 2
  onym net events -f
  onym net down")]
pub(crate) struct Args {
    /// URL of the manager, or of its replicas, separated by commas: the leader is asked.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "ONYM_MANAGER",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8080"
    )]
    manager: Vec<String>,
    /// File of the manager's token.
    #[arg(long, global = true, value_name = "FILE", env = "ONYM_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Strategy {
    /// New links first; nothing is lost.
    MakeBeforeBreak,
    /// Keep packets while links change.
    BreakAndBuffer,
    /// Old links first; what comes meanwhile is lost.
    BreakAndDrop,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Words {
    Toml,
    Yaml,
    Tosca,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the network that a file describes.
    #[command(after_help = "Example:\n  onym net apply network.toml")]
    Apply {
        /// The description: .toml, .yaml, or .tosca.yaml.
        file: PathBuf,
        /// Order in which a chain is changed.
        #[arg(long, value_enum, default_value = "make-before-break")]
        strategy: Strategy,
        /// Only show what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Allow that more than half of the functions are removed.
        #[arg(long)]
        yes: bool,
    },
    /// Show what `apply` would do.
    #[command(after_help = "Example:\n  onym net plan network.toml")]
    Plan {
        /// The description.
        file: PathBuf,
    },
    /// Check a description without a manager.
    #[command(after_help = "Example:\n  onym net check network.toml")]
    Check {
        /// The description.
        file: PathBuf,
    },
    /// Build one of the manager's own networks, or list them.
    #[command(after_help = "Example:\n  onym net preset nfd")]
    Preset {
        /// nfd, minimal, interlinked, scaling, poisoning.
        name: Option<String>,
        /// Only print its description.
        #[arg(long)]
        print: bool,
        /// Allow that more than half of the functions are removed.
        #[arg(long)]
        yes: bool,
    },
    /// Show the running network.
    #[command(after_help = "Example:\n  onym net show")]
    Show,
    /// Print the description that the manager follows.
    #[command(after_help = "Example:\n  onym net export --form tosca > network.tosca.yaml")]
    Export {
        /// In which form.
        #[arg(long, value_enum, default_value = "toml")]
        form: Words,
    },
    /// Insert a function into a link.
    #[command(
        after_help = "Example:\n  onym net insert cs br sv signature-verifier --strategy break-and-buffer"
    )]
    Insert {
        /// Who opened the link.
        from: String,
        /// Where it ends.
        to: String,
        /// Name of the function.
        name: String,
        /// What it does.
        kind: String,
        /// The link ends at a producer side.
        #[arg(long)]
        producer: bool,
        /// Order of the changes.
        #[arg(long, value_enum, default_value = "make-before-break")]
        strategy: Strategy,
    },
    /// Remove a function and link its neighbours.
    #[command(after_help = "Example:\n  onym net remove sv")]
    Remove {
        /// Its name.
        name: String,
        /// Do not link its neighbours.
        #[arg(long)]
        apart: bool,
        /// Order of the changes.
        #[arg(long, value_enum, default_value = "make-before-break")]
        strategy: Strategy,
    },
    /// Set the number of instances of a function.
    #[command(after_help = "Example:\n  onym net scale br 2")]
    Scale {
        /// Its name.
        name: String,
        /// Instances, itself counted.
        instances: u32,
    },
    /// Add a function without links.
    #[command(after_help = "Example:\n  onym net deploy nf name-filter")]
    Deploy {
        /// Its name.
        name: String,
        /// What it does.
        kind: String,
    },
    /// Add a link.
    #[command(after_help = "Example:\n  onym net link cs2 nr --producer")]
    Link {
        /// Who opens it.
        from: String,
        /// Where it ends.
        to: String,
        /// At the producer side.
        #[arg(long)]
        producer: bool,
    },
    /// Remove a link.
    #[command(after_help = "Example:\n  onym net unlink cs br")]
    Unlink {
        /// Who opened it.
        from: String,
        /// Where it ends.
        to: String,
        /// At the producer side.
        #[arg(long)]
        producer: bool,
    },
    /// Show what happened.
    #[command(after_help = "Example:\n  onym net events -f")]
    Events {
        /// Keep printing events as they happen.
        #[arg(short, long)]
        follow: bool,
    },
    /// Show prefixes, and the functions that a name would cross.
    #[command(after_help = "Example:\n  onym net trace cs /example/file")]
    Trace {
        /// The function at which the Interest enters.
        start: String,
        /// Its name.
        name: String,
    },
    /// Stop everything and delete the description.
    #[command(after_help = "Example:\n  onym net down")]
    Down,
    /// Print an address that admits one browser to the manager's page.
    #[command(after_help = "Example:\n  xdg-open $(onym net page)")]
    Page,
    /// Print the description of the manager's interface.
    #[command(after_help = "Example:\n  onym net openapi > spec/openapi.json")]
    Openapi,
}

pub(crate) fn run(args: Args, cx: &Context) -> Result<()> {
    match &args.command {
        Command::Openapi => {
            return write_json(&serde_json::to_string_pretty(&onym_manager::rest::document())?);
        }
        Command::Check { file } => return check(file, cx),
        Command::Preset { name: None, .. } => {
            let rows = json!(onym_manager::presets::list());
            return cx.print(&rows, show::presets);
        }
        Command::Preset { name: Some(name), print: true, .. } => {
            let text = onym_manager::presets::find(name).ok_or_else(|| no_preset(name))?;
            return write_line(text);
        }
        _ => {}
    }
    let token = args.token_file.as_deref().map(secure::read_token).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = leader(&args.manager, &args.asking, token).await?;
        Net { client, cx }.command(args.command).await
    })
}

struct Net<'a> {
    client: Client,
    cx: &'a Context,
}

pub(super) fn no_preset(name: &str) -> Failure {
    let names: Vec<&str> = onym_manager::presets::PRESETS.iter().map(|(n, _, _)| *n).collect();
    Failure::new(Exit::Usage, format!("there is no preset {name:?}"))
        .next(format!("one of: {}", names.join(", ")))
}

pub(super) fn read(file: &std::path::Path) -> Result<(String, Form)> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| {
        Failure::new(Exit::Usage, format!("{shown}: cannot be read")).why(e).next("name a file")
    })?;
    let form = Form::of_file(file).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{shown}: unknown format"))
            .next("name it .toml, .yaml or .tosca.yaml")
    })?;
    Ok((text, form))
}

fn check(file: &std::path::Path, cx: &Context) -> Result<()> {
    let (text, form) = read(file)?;
    let described = onym_manager::describe::read(&text, form).map_err(|e| {
        Failure::new(Exit::Failed, format!("{}: {e}", file.display()))
            .next("fix it and check again")
    })?;
    let graph = &described.description.graph;
    let value = json!({"functions": graph.functions.len(), "links": graph.links.len()});
    cx.print(&value, |_| {
        format!("good: {} functions, {} links", graph.functions.len(), graph.links.len())
    })
}

fn word<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

fn side(producer: bool) -> &'static str {
    if producer { "producer" } else { "consumer" }
}

fn function(kind: &str) -> Result<Value> {
    let found = Kind::find(kind).ok_or_else(|| {
        let words: Vec<&str> = onym_manager::kind::KINDS.iter().map(|(k, _)| k.word()).collect();
        Failure::new(Exit::Usage, format!("there is no kind {kind:?}"))
            .next(format!("one of: {}", words.join(", ")))
    })?;
    Ok(json!(Function::new(found)))
}

impl Net<'_> {
    async fn ask(&self, method: Method, path: &str, body: Body) -> Result<Value> {
        self.client.ask(method, path, body).await.map_err(|e| failure(e).into())
    }

    async fn change(&self, method: Method, path: &str, body: Body) -> Result<()> {
        let done = self.ask(method, path, body).await?;
        self.cx.print(&done, show::done)
    }

    async fn command(&self, command: Command) -> Result<()> {
        match command {
            Command::Apply { file, strategy, dry_run, yes } => {
                self.apply(&file, strategy, &[("dry_run", dry_run), ("confirm", yes)]).await
            }
            Command::Plan { file } => {
                self.apply(&file, Strategy::MakeBeforeBreak, &[("dry_run", true)]).await
            }
            Command::Preset { name: None, .. } | Command::Check { .. } | Command::Openapi => Ok(()),
            Command::Preset { name: Some(name), yes, .. } => {
                onym_manager::presets::find(&name).ok_or_else(|| no_preset(&name))?;
                let path = format!("/v1/presets/{name}?confirm={yes}");
                let done = self.meant(&path, Body::None).await.map_err(failure)?;
                self.cx.print(&done, show::done)
            }
            Command::Show => {
                let view = self.ask(Method::GET, "/v1/network", Body::None).await?;
                self.cx.print(&view, show::network)
            }
            Command::Export { form } => {
                let path = format!("/v1/description?form={}", word(form));
                let (_, text) =
                    self.client.octets(Method::GET, &path, Body::None).await.map_err(failure)?;
                write_line(&String::from_utf8_lossy(&text))
            }
            Command::Insert { from, to, name, kind, producer, strategy } => {
                let on = json!({"from": from, "to": to, "side": side(producer)});
                let body = json!({"on": on, "name": name, "function": function(&kind)?, "strategy": word(strategy)});
                self.change(Method::POST, "/v1/insert", Body::Json(body)).await
            }
            Command::Remove { name, apart, strategy } => {
                let path =
                    format!("/v1/functions/{name}?join={}&strategy={}", !apart, word(strategy));
                self.change(Method::DELETE, &path, Body::None).await
            }
            Command::Scale { name, instances } => {
                let path = format!("/v1/functions/{name}/instances");
                self.change(Method::PUT, &path, Body::Json(json!({ "instances": instances }))).await
            }
            Command::Deploy { name, kind } => {
                let body = Body::Json(function(&kind)?);
                self.change(Method::PUT, &format!("/v1/functions/{name}"), body).await
            }
            Command::Link { from, to, producer } => {
                let body = json!({"from": from, "to": to, "side": side(producer)});
                self.change(Method::PUT, "/v1/links", Body::Json(body)).await
            }
            Command::Unlink { from, to, producer } => {
                let path = format!("/v1/links?from={from}&to={to}&side={}", side(producer));
                self.change(Method::DELETE, &path, Body::None).await
            }
            Command::Events { follow } => self.events(follow).await,
            Command::Trace { start, name } => {
                let escaped = name.replace('%', "%25").replace('&', "%26").replace('+', "%2B");
                let path = format!("/v1/trace?start={start}&name={escaped}");
                let edges = self.ask(Method::GET, &path, Body::None).await?;
                self.cx.print(&edges, show::edges)
            }
            Command::Page => {
                let page = self.ask(Method::POST, "/v1/page", Body::None).await?;
                self.cx.print(&page, |page| page["url"].as_str().unwrap_or_default().to_owned())
            }
            // The word says what it does.
            Command::Down => {
                let path = "/v1/description?confirm=true";
                self.change(Method::DELETE, path, Body::None).await
            }
        }
    }

    /// Asks for a change of the whole; one that takes much away is asked back for at a terminal.
    async fn meant(&self, path: &str, body: Body) -> Result<Value, HttpError> {
        let asked = self.client.ask(Method::PUT, path, body.clone()).await;
        let Err(HttpError::Refused { status: 409, message, .. }) = &asked else { return asked };
        let unsure = path.contains("confirm=false") && message.contains("confirm=true");
        if !(unsure && std::io::stdin().is_terminal() && said_yes(message)) {
            return asked;
        }
        let path = path.replace("confirm=false", "confirm=true");
        self.client.ask(Method::PUT, &path, body).await
    }

    async fn apply(
        &self,
        file: &std::path::Path,
        strategy: Strategy,
        flags: &[(&str, bool)],
    ) -> Result<()> {
        let (text, form) = read(file)?;
        let form = serde_json::to_value(form)?;
        let flags: String = flags.iter().map(|(key, on)| format!("&{key}={on}")).collect();
        let path = format!(
            "/v1/description?form={}{flags}&strategy={}",
            form.as_str().unwrap_or("toml"),
            word(strategy)
        );
        let done = self.meant(&path, Body::Octets("text/plain", text.into())).await;
        let done = done.map_err(|e| match e {
            HttpError::Refused { status: 422, message, .. } => {
                Failure::new(Exit::Refused, format!("{}: {message}", file.display()))
                    .next("fix it and apply again; nothing was changed")
            }
            other => failure(other),
        })?;
        self.cx.print(&done, show::done)
    }

    async fn events(&self, follow: bool) -> Result<()> {
        let mut after = 0;
        loop {
            let wait_ms = if after > 0 { 20_000 } else { 0 };
            let path = format!("/v1/events?after={after}&wait_ms={wait_ms}");
            let answer = self.ask(Method::GET, &path, Body::None).await?;
            for event in answer["events"].as_array().into_iter().flatten() {
                self.cx.event(event, show::event)?;
            }
            after = answer["last"].as_u64().unwrap_or(after).max(1);
            if !follow {
                return Ok(());
            }
        }
    }
}

/// Asks a person.
fn said_yes(what: &str) -> bool {
    let first = what.split(';').next().unwrap_or_default();
    if crate::output::ask(&format!("{first}. Go on? [y/N] ")).is_err() {
        return false;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).is_ok() && line.trim().eq_ignore_ascii_case("y")
}
