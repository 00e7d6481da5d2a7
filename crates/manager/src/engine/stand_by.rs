//! Several managers of one network: one leads, the others stand by.
//!
//! The leader holds a seat in etcd and writes its state there, each write on condition that it
//! still holds the seat. When it is silent for the time of the lease, another manager takes the
//! seat, reads the state and adopts what runs, as after a restart.

use super::{Core, Manager, Message, Options, Shared, Standing, WAITING_MAX};
use crate::allow::Allowed;
use crate::driver::Driver;
use crate::store::EtcdStore;
use onym_etcd::{Compare, Etcd, EtcdError, Operation, Seat};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What managers that stand by for each other share, and how this one is reached.
#[derive(Debug)]
pub struct Candidate {
    /// Where they agree.
    pub etcd: Arc<Etcd>,
    /// Before each of their keys, such as `onym/manager/`.
    pub prefix: String,
    /// The URL at which this one is asked.
    pub url: String,
    /// Time without a word after which another one leads.
    pub lease: Duration,
    /// Where services run: the same for all of them.
    pub driver: Arc<dyn Driver>,
    /// Time between two looks at all services.
    pub watch: Duration,
    /// Where functions may listen.
    pub allowed: Allowed,
}

/// The mark of the services of all managers that share `prefix`: the first one makes it.
///
/// # Errors
/// etcd does not answer.
pub async fn agree_mark(etcd: &Etcd, prefix: &str) -> Result<String, EtcdError> {
    let (key, mark) = (format!("{prefix}mark"), super::new_mark());
    let put = Operation::Put { key: key.clone(), value: mark.into_bytes(), lease: None };
    etcd.transact(&[Compare::absent(&*key)], &[put], &[]).await?;
    let entry = etcd.get(&key).await?.ok_or(EtcdError::Broken("the mark is gone"))?;
    String::from_utf8(entry.value).map_err(|_| EtcdError::Broken("the mark is no text"))
}

impl Manager {
    /// Starts a manager that leads when no other one does, on this runtime. It stands by first.
    #[must_use]
    pub fn stand_by(candidate: Candidate) -> Self {
        let shared = Arc::new(Shared::default());
        shared.stand(Standing::StandsBy(None));
        let (changes, inbox) = mpsc::channel(WAITING_MAX);
        let term = Term { seat: candidate.seat(), candidate, shared: Arc::clone(&shared), inbox };
        tokio::spawn(term.run());
        Self { changes, shared }
    }
}

impl Shared {
    fn stand(&self, standing: Standing) {
        *self.standing.write().expect("invariant: no panic under this lock") = standing;
    }
}

impl Candidate {
    fn seat(&self) -> Seat {
        // Another value in each life, so that it is nobody else's.
        let value = format!("{} {}", super::new_mark(), self.url);
        let key = format!("{}leader", self.prefix);
        Seat::new(Arc::clone(&self.etcd), &key, value.into_bytes(), self.lease)
    }
}

struct Term {
    candidate: Candidate,
    seat: Seat,
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Message>,
}

impl Term {
    async fn run(mut self) {
        let mut told = String::new();
        while !self.inbox.is_closed() {
            let text = match self.seat.sit().await {
                Ok(onym_etcd::Standing::Held) => self.lead().await,
                Ok(onym_etcd::Standing::Taken(value)) => {
                    let value = String::from_utf8_lossy(&value).into_owned();
                    let url = value.split_once(' ').map(|(_, url)| url.to_owned());
                    let text = format!("{} leads", url.as_deref().unwrap_or("another manager"));
                    self.shared.stand(Standing::StandsBy(url));
                    text
                }
                Err(error) => {
                    self.shared.stand(Standing::StandsBy(None));
                    error.to_string()
                }
            };
            if text != told {
                self.shared.journal.note("stands-by", "manager", text.clone(), Value::Null);
                told = text;
            }
            // What was asked before it was known who leads.
            while self.inbox.try_recv().is_ok() {}
            tokio::time::sleep(self.candidate.lease / 5).await;
        }
    }

    /// Leads until the seat is lost, and says why it leads no more.
    async fn lead(&mut self) -> String {
        let Some(guard) = self.seat.guard() else { return "the seat was lost".to_owned() };
        let Candidate { etcd, prefix, driver, watch, allowed, lease, .. } = &self.candidate;
        let store = EtcdStore::new(Arc::clone(etcd), format!("{prefix}state"), guard);
        let options = Options {
            driver: Arc::clone(driver),
            store: Box::new(store),
            watch: *watch,
            allowed: allowed.clone(),
        };
        let shared = Arc::clone(&self.shared);
        let work = async {
            let core = match Core::begin(options, Arc::clone(&shared)).await {
                Ok(core) => core,
                Err(error) => return format!("it cannot lead: {error}"),
            };
            shared.stand(Standing::Leads);
            shared.journal.note("leads", "manager", "this manager leads", Value::Null);
            core.run(&mut self.inbox).await;
            "it ends".to_owned()
        };
        let seat = &mut self.seat;
        let why = tokio::select! {
            why = work => why,
            why = keep(seat, *lease) => why,
        };
        self.shared.stand(Standing::StandsBy(None));
        // Another one may be able to lead where this one is not.
        let _ = self.seat.leave().await;
        why
    }
}

/// Keeps the seat; ends with why it is lost, before etcd gives it to another one.
async fn keep(seat: &mut Seat, lease: Duration) -> String {
    loop {
        tokio::time::sleep(lease / 5).await;
        match tokio::time::timeout(seat.left(), seat.sit()).await {
            Ok(Ok(onym_etcd::Standing::Held)) => {}
            Ok(Ok(onym_etcd::Standing::Taken(_))) => return "another manager leads".to_owned(),
            Ok(Err(error)) if !seat.is_held() => {
                return format!("the seat is not certain: {error}");
            }
            Ok(Err(error)) => tracing::warn!(%error, "leadership was not renewed"),
            Err(_) => return "the seat is not certain: etcd does not answer".to_owned(),
        }
    }
}
