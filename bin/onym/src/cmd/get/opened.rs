//! Fetching what may be encrypted: keys are searched when the first segment says which.

use crate::exit::{Exit, Failure};
use crate::secrecy::{Opening, Whose};
use crate::session;
use onym_client::blocking::{Client, Watch};
use onym_client::verify::Verified;
use onym_client::{Error, FetchError, FetchOptions, Opener, Progress};
use onym_wire::Name;
use std::io::{self, Write};
use std::sync::Arc;

/// Content keys of one object that are searched, at most.
const KEYS_MAX: usize = 4;

/// What is done with content that is encrypted.
pub(super) enum Take {
    /// It is written as it is.
    AsItIs,
    /// It is decrypted; where a group is named, nothing else is taken.
    Opened(Option<Name>),
}

/// What is to be fetched, and who must have signed it.
pub(super) struct Plan {
    name: Name,
    options: FetchOptions,
    whose: Option<Whose>,
    opening: Arc<Opening>,
}

impl Plan {
    pub(super) fn new(
        name: Name,
        mut options: FetchOptions,
        whose: Option<Whose>,
        take: Take,
    ) -> anyhow::Result<Self> {
        let (is_opened, group) = match take {
            Take::AsItIs => (false, None),
            Take::Opened(group) => (true, group),
        };
        if group.is_some() && whose.is_none() {
            return Err(Failure::new(Exit::Usage, "--for needs somebody to trust")
                .why("nothing is decrypted that nobody signed whom you trust")
                .next("name --anchor CERT, --trust SCHEMA or --verify CERT")
                .into());
        }
        let verified = if whose.is_some() { Verified::Yes } else { Verified::No };
        let opening = Arc::new(Opening::new(verified, group));
        options.open = is_opened.then(|| Arc::<Opening>::clone(&opening) as Arc<dyn Opener>);
        Ok(Self { name, options, whose, opening })
    }

    fn once(
        &self,
        client: &mut Client,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> Result<Progress, Error> {
        let (name, options) = (&self.name, &self.options);
        match &self.whose {
            None | Some(Whose::Key(_)) => client.fetch(name.clone(), options.clone(), sink, watch),
            Some(Whose::Schema(schema)) => client.fetch_trusted(name, options, schema, sink, watch),
        }
    }

    /// Fetches it, and the keys that it needs before.
    pub(super) fn run(
        &self,
        client: &mut Client,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> anyhow::Result<Progress> {
        let mut sink = Counted { sink, octets: 0 };
        for _ in 0..KEYS_MAX {
            let error = match self.once(client, &mut sink, watch) {
                Ok(progress) => return Ok(progress),
                Err(error) => error,
            };
            // What was handed out cannot be begun again.
            match (needed(&error).filter(|_| sink.octets == 0), &self.whose) {
                (Some(key), Some(whose)) => self.opening.search(client, whose, key)?,
                _ => return Err(session::failure(error)),
            }
        }
        self.once(client, &mut sink, watch).map_err(session::failure)
    }
}

/// The content key without which a fetch ended.
fn needed(error: &Error) -> Option<Name> {
    match error {
        Error::Fetch(FetchError::NotOpened { source, .. }) => source.needs.clone(),
        _ => None,
    }
}

/// A sink that counts.
struct Counted<'a> {
    sink: &'a mut dyn Write,
    octets: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(octets)?;
        self.octets += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
