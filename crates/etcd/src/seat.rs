//! Leader election: a key that one holder has at a time.

use crate::client::Etcd;
use crate::model::{Compare, Entry, EtcdError, Lease, Operation};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who has a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This one.
    Held,
    /// Another one, who wrote this into it.
    Taken(Vec<u8>),
}

/// A seat, seen by one who wants it.
#[derive(Debug)]
pub struct Seat {
    etcd: Arc<Etcd>,
    key: String,
    value: Vec<u8>,
    time: Duration,
    /// The lease, and until when it holds for certain.
    lease: Option<(Lease, Instant)>,
    /// The revision at which it was taken.
    taken: Option<i64>,
}

impl Seat {
    /// Wants the seat `key`, to write `value` into it, which nobody else writes, and to keep it
    /// for `time`, in whole seconds, after the last [`Seat::sit`].
    #[must_use]
    pub fn new(etcd: Arc<Etcd>, key: &str, value: Vec<u8>, time: Duration) -> Self {
        // etcd counts whole seconds.
        let time = Duration::from_secs(time.as_secs().max(1));
        Self { etcd, key: key.to_owned(), value, time, lease: None, taken: None }
    }

    /// Renews the lease and takes the seat when it is free. To be called at least three times in
    /// the seat's time.
    ///
    /// # Errors
    /// etcd did not answer; who held the seat holds it for as long as [`Seat::is_held`] says.
    pub async fn sit(&mut self) -> Result<Standing, EtcdError> {
        let lease = self.renew().await?;
        if self.taken.is_some() {
            return Ok(Standing::Held);
        }
        let put =
            Operation::Put { key: self.key.clone(), value: self.value.clone(), lease: Some(lease) };
        let get = Operation::Get { key: self.key.clone() };
        let outcome = self.etcd.transact(&[Compare::absent(&*self.key)], &[put], &[get]).await?;
        if outcome.is_done {
            self.taken = Some(outcome.revision);
            return Ok(Standing::Held);
        }
        let held: Option<Entry> = outcome.found.into_iter().flatten().next();
        match held {
            // A write of our own, whose answer was lost.
            Some(entry) if entry.value == self.value => {
                self.taken = Some(entry.created);
                Ok(Standing::Held)
            }
            Some(entry) => Ok(Standing::Taken(entry.value)),
            None => Err(EtcdError::Broken("a seat that is neither free nor taken")),
        }
    }

    async fn renew(&mut self) -> Result<Lease, EtcdError> {
        // Counted from before it is asked: etcd counts from a later moment.
        let until = Instant::now() + self.time;
        if let Some((lease, _)) = self.lease {
            match self.etcd.renew(lease).await {
                Ok(()) => {
                    self.lease = Some((lease, until));
                    return Ok(lease);
                }
                Err(EtcdError::LeaseEnded) => (self.lease, self.taken) = (None, None),
                Err(error) => return Err(error),
            }
        }
        let lease = self.etcd.grant(self.time).await?;
        self.lease = Some((lease, until));
        Ok(lease)
    }

    /// Whether it is held, for certain, now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.taken.is_some() && !self.left().is_zero()
    }

    /// For how long the lease holds for certain.
    #[must_use]
    pub fn left(&self) -> Duration {
        let until = self.lease.map(|(_, until)| until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// What makes a write depend on holding it; `None` when it is not held.
    #[must_use]
    pub fn guard(&self) -> Option<Compare> {
        self.taken.map(|revision| Compare::Created(self.key.clone(), revision))
    }

    /// Gives it up at once.
    ///
    /// # Errors
    /// etcd did not answer; it is free when the lease ends.
    pub async fn leave(&mut self) -> Result<(), EtcdError> {
        self.taken = None;
        match self.lease.take() {
            Some((lease, _)) => self.etcd.revoke(lease).await,
            None => Ok(()),
        }
    }
}
