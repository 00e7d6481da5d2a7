//! Requests and answers.

use crate::model::{Compare, Entry, EtcdError, Lease, Listing, Operation, Outcome};
use crate::wire;
use onym_http::client::{Body, Client, HttpError, Method};
use onym_http::tls::Tls;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Most members of a cluster.
const MEMBERS_MAX: usize = 16;
/// Longest value, in octets.
const VALUE_MAX: usize = 1 << 20;

/// A cluster of etcd.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Client>,
    /// The one that answered last.
    good: AtomicUsize,
}

impl Etcd {
    /// A client of the members at `http://host:port` or, with `tls`, `https://host:port`; each is
    /// given `timeout` to answer. Nothing is asked yet.
    ///
    /// # Errors
    /// [`EtcdError::Config`]: no member, too many, or a URL that is none.
    pub fn new(
        members: &[impl AsRef<str>],
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, EtcdError> {
        if !(1..=MEMBERS_MAX).contains(&members.len()) {
            return Err(EtcdError::Config(format!("1 to {MEMBERS_MAX} members must be named")));
        }
        let client = |url: &str| Client::of_url_with(url, tls, None, timeout);
        let clients: Result<_, HttpError> = members.iter().map(|u| client(u.as_ref())).collect();
        let members = clients.map_err(|e| EtcdError::Config(e.to_string()))?;
        Ok(Self { members, good: AtomicUsize::new(0) })
    }

    /// Asks the members in turn. What may have been done is asked of another one only when
    /// `may_repeat`.
    async fn ask(&self, path: &str, body: Value, may_repeat: bool) -> Result<Value, EtcdError> {
        let first = self.good.load(Ordering::Relaxed);
        let mut faults = Vec::new();
        for offset in 0..self.members.len() {
            let index = (first + offset) % self.members.len();
            let asked = self.members[index].ask(Method::POST, path, Body::Json(body.clone()));
            match asked.await {
                Ok(Value::Null) => return Err(EtcdError::Broken("no JSON")),
                Ok(answer) => {
                    self.good.store(index, Ordering::Relaxed);
                    return Ok(answer);
                }
                // Without a leader, or while it starts, another member may know more.
                Err(HttpError::Refused { status, message, .. }) if status != 503 => {
                    return Err(EtcdError::Refused(message));
                }
                Err(error) => {
                    let is_unsent = matches!(error, HttpError::Connect { .. });
                    faults.push(error.to_string());
                    if !may_repeat && !is_unsent {
                        break;
                    }
                }
            }
        }
        Err(EtcdError::Away(faults.join("; ")))
    }

    /// One key.
    ///
    /// # Errors
    /// Every [`EtcdError`] but `LeaseEnded`, as with all requests here.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, EtcdError> {
        let body = json!({"key": wire::octets(key.as_bytes())});
        let answer = self.ask("/v3/kv/range", body, true).await?;
        revision(&answer)?;
        let mut entries = wire::entries(&answer).ok_or(EtcdError::Broken("kvs"))?;
        match entries.pop() {
            Some(entry) if entry.key != key || !entries.is_empty() => {
                Err(EtcdError::Broken("other keys than the one that was asked for"))
            }
            entry => Ok(entry),
        }
    }

    /// The first `most` keys that begin with `prefix`.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn list(&self, prefix: &str, most: usize) -> Result<Listing, EtcdError> {
        let body = json!({
            "key": wire::octets(prefix.as_bytes()),
            "range_end": wire::octets(&wire::range_end(prefix)),
            "limit": most.to_string(),
        });
        let answer = self.ask("/v3/kv/range", body, true).await?;
        let entries = wire::entries(&answer).ok_or(EtcdError::Broken("kvs"))?;
        let is_more = answer["more"].as_bool().unwrap_or(false);
        let fits = entries.iter().all(|e| e.key.starts_with(prefix)) && entries.len() <= most;
        // Whoever asks for the rest goes on behind the last one.
        let rises = entries.is_sorted_by(|a, b| a.key < b.key) && !(is_more && entries.is_empty());
        if !(fits && rises) {
            return Err(EtcdError::Broken("other keys than those that were asked for"));
        }
        Ok(Listing { revision: revision(&answer)?, entries, is_more })
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn put(
        &self,
        key: &str,
        value: &[u8],
        lease: Option<Lease>,
    ) -> Result<(), EtcdError> {
        fits(value)?;
        let answer = self.ask("/v3/kv/put", wire::put(key, value, lease), false).await?;
        revision(&answer).map(drop)
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn delete(&self, key: &str) -> Result<(), EtcdError> {
        let body = json!({"key": wire::octets(key.as_bytes())});
        revision(&self.ask("/v3/kv/deleterange", body, true).await?).map(drop)
    }

    /// Does `then` when all of `when` holds, `otherwise` when not; all at once.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn transact(
        &self,
        when: &[Compare],
        then: &[Operation],
        otherwise: &[Operation],
    ) -> Result<Outcome, EtcdError> {
        for operation in then.iter().chain(otherwise) {
            if let Operation::Put { value, .. } = operation {
                fits(value)?;
            }
        }
        let all = |operations: &[Operation]| -> Vec<Value> {
            operations.iter().map(wire::operation).collect()
        };
        let body = json!({
            "compare": when.iter().map(wire::compare).collect::<Vec<_>>(),
            "success": all(then),
            "failure": all(otherwise),
        });
        let answer = self.ask("/v3/kv/txn", body, false).await?;
        let responses = answer["responses"].as_array().map_or(&[][..], Vec::as_slice);
        let ranges = responses.iter().map(|r| &r["response_range"]).filter(|r| !r.is_null());
        let found: Option<Vec<_>> = ranges.map(wire::entries).collect();
        let found = found.ok_or(EtcdError::Broken("kvs"))?;
        let is_done = answer["succeeded"].as_bool().unwrap_or(false);
        let branch = if is_done { then } else { otherwise };
        let asked = branch.iter().filter(|o| matches!(o, Operation::Get { .. })).count();
        if found.len() != asked {
            return Err(EtcdError::Broken("other answers than were asked for"));
        }
        Ok(Outcome { is_done, revision: revision(&answer)?, found })
    }

    /// A lease that ends `time` (whole seconds, at least one) after it was renewed last.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn grant(&self, time: Duration) -> Result<Lease, EtcdError> {
        let seconds = time.as_secs().max(1).to_string();
        let answer = self.ask("/v3/lease/grant", json!({"TTL": seconds}), true).await?;
        let granted = wire::number(&answer["TTL"]).and_then(|ttl| u64::try_from(ttl).ok());
        // A seat is held for as long as was asked for.
        if granted.is_none_or(|ttl| ttl < time.as_secs()) {
            return Err(EtcdError::Broken("a lease that is shorter than was asked for"));
        }
        match wire::number(&answer["ID"]) {
            Some(id) if id != 0 => Ok(Lease(id)),
            _ => Err(EtcdError::Broken("no lease")),
        }
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// [`EtcdError::LeaseEnded`], and as [`Etcd::get`].
    pub async fn renew(&self, lease: Lease) -> Result<(), EtcdError> {
        let body = json!({"ID": lease.0.to_string()});
        let answer = self.ask("/v3/lease/keepalive", body, true).await?;
        if wire::number(&answer["result"]["ID"]) != Some(lease.0) {
            return Err(EtcdError::Broken("another lease than the one that was renewed"));
        }
        match wire::number(&answer["result"]["TTL"]) {
            Some(left) if left > 0 => Ok(()),
            _ => Err(EtcdError::LeaseEnded),
        }
    }

    /// Ends a lease; its keys go at once.
    ///
    /// # Errors
    /// As [`Etcd::get`].
    pub async fn revoke(&self, lease: Lease) -> Result<(), EtcdError> {
        let body = json!({"ID": lease.0.to_string()});
        self.ask("/v3/lease/revoke", body, true).await.map(drop)
    }
}

/// The revision of the store, which every answer has: one without is none of etcd's.
fn revision(answer: &Value) -> Result<i64, EtcdError> {
    let revision = wire::number(&answer["header"]["revision"]);
    revision.filter(|n| *n > 0).ok_or(EtcdError::Broken("revision"))
}

fn fits(value: &[u8]) -> Result<(), EtcdError> {
    if value.len() <= VALUE_MAX {
        return Ok(());
    }
    Err(EtcdError::Refused(format!("{} octets; a value has at most {VALUE_MAX}", value.len())))
}
