//! Fetching what may be encrypted: keys are searched when the first segment says which.

use super::range::Octets;
use crate::exit::{Exit, Failure};
use crate::secrecy::{Opening, Whose};
use crate::session;
use onym_client::blocking::{Client, Watch};
use onym_client::fetch::Part;
use onym_client::verify::Verified;
use onym_client::{Error, FetchError, FetchOptions, Find, Opener, Progress, Request};
use onym_repo::file::FileMetadata;
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
    /// The octets to write, when not all.
    part: Option<Part>,
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
        Ok(Self { name, options, whose, opening, part: None })
    }

    /// Fetches `octets` of the newest version only; its metadata says where they are.
    pub(super) fn narrow(&mut self, client: &mut Client, octets: Octets) -> anyhow::Result<()> {
        let mut asked = self.name.clone();
        asked.append_keyword("metadata");
        let request =
            Request { can_be_prefix: true, must_be_fresh: true, retries: 3, ..Request::new(asked) };
        let packet = match &self.whose {
            Some(whose) => whose.ask(client, &request),
            None => client.request(&request),
        };
        let packet = packet.map_err(session::failure)?;
        let data = packet.data();
        let name = self.name.clone();
        let unknown = |why: &str| {
            Failure::new(Exit::Failed, format!("cannot tell where these octets of {name} are"))
                .why(why.to_owned())
                .next("without --range all of it is fetched")
        };
        self.options.verify.check(&data).map_err(|e| unknown(&e.to_string()))?;
        let metadata = FileMetadata::parse(data.content).map_err(|e| unknown(&e.to_string()))?;
        let is_within = name.as_ref().is_prefix_of(metadata.name.as_ref());
        if !is_within && self.whose.is_none() && !self.options.bounds.follow {
            return Err(unknown(&format!("its metadata leads to {}", metadata.name)).into());
        }
        let (Some(size), Some(segment)) = (metadata.size, metadata.segment_size) else {
            return Err(unknown("its metadata says no size").into());
        };
        let Some(part) = octets.within(size).and_then(|octets| Part::of(octets, segment)) else {
            return Err(Failure::new(Exit::NotFound, format!("{name} has {size} octets")).into());
        };
        self.options.segments = part.segments;
        self.options.find = Find::Nothing;
        self.name = metadata.name;
        self.part = Some(part);
        Ok(())
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
        let mut sink = Counted { sink, octets: 0, part: self.part.clone() };
        for _ in 0..KEYS_MAX {
            let error = match self.once(client, &mut sink, watch) {
                Ok(progress) => return sink.whole(progress),
                Err(error) => error,
            };
            // What was handed out cannot be begun again.
            match (needed(&error).filter(|_| sink.octets == 0), &self.whose) {
                (Some(key), Some(whose)) => self.opening.search(client, whose, key)?,
                _ => return Err(session::failure(error)),
            }
        }
        let progress = self.once(client, &mut sink, watch).map_err(session::failure)?;
        sink.whole(progress)
    }
}

/// The content key without which a fetch ended.
fn needed(error: &Error) -> Option<Name> {
    match error {
        Error::Fetch(FetchError::NotOpened { source, .. }) => source.needs.clone(),
        _ => None,
    }
}

/// A sink that counts, and writes what was asked for.
struct Counted<'a> {
    sink: &'a mut dyn Write,
    octets: u64,
    part: Option<Part>,
}

impl Counted<'_> {
    /// The end of a fetch; where a part was asked for, all of it came.
    fn whole(&self, progress: Progress) -> anyhow::Result<Progress> {
        match &self.part {
            None => Ok(progress),
            Some(part) if part.left() == 0 => Ok(Progress { bytes: self.octets, ..progress }),
            Some(_) => Err(Failure::new(Exit::Failed, "the object is shorter than it says").into()),
        }
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        // Each call brings one segment, and none is brought in parts.
        let wanted = match &mut self.part {
            None => octets,
            Some(part) => &octets[part.cut(octets)],
        };
        self.sink.write_all(wanted)?;
        self.octets += wanted.len() as u64;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
