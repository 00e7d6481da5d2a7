//! A bucket by the protocol of S3.

use crate::wire::Wire;
use crate::{Error, Settings};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, MultipartUpload as _, ObjectStore as _, ObjectStoreExt as _, PutPayload,
    RetryConfig,
};
use onym_http::tls::Tls;
use onym_store::Bucket;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Octets that are put with one request; longer objects are put in parts.
const PART: usize = 8 << 20;
/// How often a request is tried again.
const RETRIES: usize = 2;
/// Longest sentence about a fault.
const SENTENCE: usize = 400;

/// A bucket of a service that speaks S3, by path (`endpoint/bucket/key`), with signed requests.
pub struct S3 {
    store: AmazonS3,
    prefix: Key,
    shown: String,
    runtime: Handle,
    /// Dropped, it ends the thread that drives the connections.
    _ends: oneshot::Sender<()>,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3({})", self.shown)
    }
}

impl S3 {
    /// Opens a bucket; relative paths of `settings` start at `base`. Nothing is asked of it yet.
    ///
    /// # Errors
    /// What of the settings is no good.
    pub fn open(settings: &Settings, base: &Path) -> Result<Self, Error> {
        let url = settings.url();
        let is_tls = url.starts_with("https://");
        if !is_tls && !url.starts_with("http://") {
            let why =
                format!("bucket.endpoint must be http://host:port or https://host, not {url}");
            return Err(Error::Setting(why));
        }
        let tls = match is_tls {
            true => Some(Tls::new(&settings.authorities(base)?, None)?),
            false => None,
        };
        let who = settings.who(base)?;
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(1),
                base: 2.0,
            },
            max_retries: RETRIES,
            retry_timeout: settings.timeout(),
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.name)
            .with_region(&settings.region)
            .with_endpoint(url)
            .with_access_key_id(&who.key)
            .with_secret_access_key(&who.secret)
            .with_allow_http(!is_tls)
            .with_virtual_hosted_style_request(false)
            .with_disable_bulk_delete(true)
            .with_retry(retry)
            .with_http_connector(Wire::new(tls, settings.timeout()));
        if let Some(token) = &who.token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| Error::Setting(error.to_string()))?;
        let prefix = Key::parse(settings.prefix.trim_matches('/'));
        let prefix = prefix.map_err(|error| Error::Setting(format!("bucket.prefix: {error}")))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (ends, ended) = oneshot::channel::<()>();
        std::thread::Builder::new().name("onym-bucket".into()).spawn(move || {
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { store, prefix, shown: settings.shown(), runtime: handle, _ends: ends })
    }

    fn key(&self, name: &str) -> Key {
        self.prefix.clone().join(name)
    }

    /// Waits for a request. The thread of the bucket drives its connections.
    fn wait<T>(&self, ask: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(ask).map_err(|error| self.sentence(&error))
    }

    /// What went wrong, in one line of a bounded length.
    fn sentence(&self, error: &object_store::Error) -> io::Error {
        let kind = match error {
            object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let why: String = error.to_string().chars().map(printable).take(SENTENCE).collect();
        io::Error::new(kind, format!("{}: {why}", self.shown))
    }

    fn put_in_parts(&self, key: &Key, first: Vec<u8>, octets: &mut dyn Read) -> io::Result<()> {
        let mut upload = self.wait(self.store.put_multipart(key))?;
        let mut part = first;
        let done = loop {
            if part.is_empty() {
                break Ok(());
            }
            if let Err(error) = self.wait(upload.put_part(PutPayload::from(part))) {
                break Err(error);
            }
            part = match next_part(octets) {
                Ok(part) => part,
                Err(error) => break Err(error),
            };
        };
        let done = done.and_then(|()| self.wait(upload.complete()).map(drop));
        if done.is_err() {
            // Parts that nobody completes cost room: what cannot be removed now, a rule of the bucket
            // may.
            let _ = self.wait(upload.abort());
        }
        done
    }
}

/// The next octets, a whole part unless they end.
fn next_part(octets: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut part = Vec::with_capacity(PART);
    Read::take(octets, PART as u64).read_to_end(&mut part)?;
    Ok(part)
}

impl Bucket for S3 {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let listed = self.wait(self.store.list_with_delimiter(prefix))?;
        let named = |object: object_store::ObjectMeta| {
            Some((object.location.filename()?.to_owned(), object.size))
        };
        Ok(listed.objects.into_iter().filter_map(named).collect())
    }

    fn put(&self, name: &str, octets: &mut dyn Read, len: u64) -> io::Result<()> {
        let key = self.key(name);
        let first = next_part(octets)?;
        if first.len() as u64 == len {
            return self.wait(self.store.put(&key, PutPayload::from(first))).map(drop);
        }
        self.put_in_parts(&key, first, octets)
    }

    fn len(&self, name: &str) -> io::Result<Option<u64>> {
        match self.wait(self.store.head(&self.key(name))) {
            Ok(object) => Ok(Some(object.size)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let range = at..at.saturating_add(len as u64);
        let octets = self.wait(self.store.get_range(&self.key(name), range))?;
        Ok(octets.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.wait(self.store.delete(&self.key(name))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}
