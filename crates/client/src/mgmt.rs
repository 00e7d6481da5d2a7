//! Management of a node: commands and datasets with their types.
//!
//! ```no_run
//! use onym_client::{blocking::Client, mgmt};
//! let mut client = Client::open(Default::default())?;
//! for face in mgmt::faces(&mut client)? {
//!     println!("{} {}", face.face_id, face.uri);
//! }
//! # Ok::<(), onym_client::Error>(())
//! ```

use crate::blocking::Client;
use crate::error::Error;
use crate::fetch::{FetchOptions, Find, PipelineOptions};
use onym_wire::Malformed;
use onym_wire::mgmt::{
    Block, ChannelStatus, ControlParameters, CsInfo, FaceQueryFilter, FaceStatus, FibEntry,
    ForwarderStatus, RibEntry, StrategyChoice, parse_list,
};
use onym_wire::name::Name;
use std::time::Duration;

/// Datasets larger than this are refused, in octets.
const DATASET_MAX: usize = 256 << 20;

/// Fetches the dataset `path` (such as `["faces", "list"]`) below the management prefix.
///
/// # Errors
/// Those of a fetch.
pub fn dataset(client: &mut Client, path: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let mut name = client.endpoint().management_prefix();
    for component in path {
        name.append_generic(component);
    }
    fetch_dataset(client, name)
}

/// Fetches the dataset `name`.
///
/// # Errors
/// Those of a fetch.
pub fn fetch_dataset(client: &mut Client, name: Name) -> Result<Vec<u8>, Error> {
    let pipeline = PipelineOptions {
        lifetime: Duration::from_secs(2),
        // The node keeps a dataset for about a second: ask for its segments soon.
        retries_max: 4,
        ..PipelineOptions::default()
    };
    let options = FetchOptions { pipeline, find: Find::Segment, ..FetchOptions::default() };
    let mut content = Bounded(Vec::new());
    client.fetch(name, options, &mut content, &mut |_| {})?;
    Ok(content.0)
}

/// A sink in memory with a bound.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + piece.len() > DATASET_MAX {
            return Err(std::io::Error::other("the dataset is larger than 256 MiB"));
        }
        self.0.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn read<T>(
    client: &mut Client,
    path: &[&str; 2],
    parse: impl FnOnce(&[u8]) -> Result<T, Malformed>,
) -> Result<T, Error> {
    let content = dataset(client, &path.map(str::as_bytes))?;
    parse(&content).map_err(|source| Error::Answer { command: path.join("/"), source })
}

/// General status of the node.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn status(client: &mut Client) -> Result<ForwarderStatus, Error> {
    read(client, &["status", "general"], ForwarderStatus::parse_value)
}

/// All faces.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn faces(client: &mut Client) -> Result<Vec<FaceStatus>, Error> {
    read(client, &["faces", "list"], parse_list)
}

/// The faces that `filter` describes.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn faces_query(
    client: &mut Client,
    filter: &FaceQueryFilter,
) -> Result<Vec<FaceStatus>, Error> {
    let content = dataset(client, &[b"faces", b"query", &filter.to_wire()])?;
    parse_list(&content).map_err(|source| Error::Answer { command: "faces/query".into(), source })
}

/// Where the node accepts faces.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn channels(client: &mut Client) -> Result<Vec<ChannelStatus>, Error> {
    read(client, &["faces", "channels"], parse_list)
}

/// The forwarding table.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn fib(client: &mut Client) -> Result<Vec<FibEntry>, Error> {
    read(client, &["fib", "list"], parse_list)
}

/// The routes.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn rib(client: &mut Client) -> Result<Vec<RibEntry>, Error> {
    read(client, &["rib", "list"], parse_list)
}

/// The content store.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn cs_info(client: &mut Client) -> Result<CsInfo, Error> {
    read(client, &["cs", "info"], CsInfo::parse)
}

/// Which prefix has which strategy.
///
/// # Errors
/// Those of a fetch; [`Error::Answer`].
pub fn strategies(client: &mut Client) -> Result<Vec<StrategyChoice>, Error> {
    read(client, &["strategy-choice", "list"], parse_list)
}

/// The status code that says that the face was there already.
const EXISTS: u64 = 409;

/// A face that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The face as the node describes it.
    pub face: ControlParameters,
    /// Whether it is new; otherwise it was there before.
    pub is_new: bool,
}

/// Creates the face that `wanted` describes (at least its URI), or finds it.
///
/// # Errors
/// Those of [`Client::command`].
pub fn create_face(client: &mut Client, wanted: &ControlParameters) -> Result<Created, Error> {
    let response = client.command_response(["faces", "create"], wanted)?;
    match response.body {
        Some(face) if response.code < 400 => Ok(Created { face, is_new: true }),
        Some(face) if response.code == EXISTS && face.face_id.is_some() => {
            Ok(Created { face, is_new: false })
        }
        _ => Err(Error::Refused {
            command: "faces/create".into(),
            code: response.code,
            text: response.text,
        }),
    }
}

/// Erases what the content store holds under `prefix`, at most `limit` packets; returns how many.
/// The node erases some at a time; this repeats the command until nothing is left.
///
/// # Errors
/// Those of [`Client::command`].
pub fn erase(client: &mut Client, prefix: &Name, limit: Option<u64>) -> Result<u64, Error> {
    // Commands in a row that erase nothing while the node looks for more.
    const IDLE_MAX: u32 = 1024;
    let (mut erased, mut idle) = (0, 0);
    loop {
        let count = limit.map(|limit| limit - erased);
        let parameters =
            ControlParameters { name: Some(prefix.clone()), count, ..Default::default() };
        let done = client.command(["cs", "erase"], &parameters)?;
        let now = done.count.unwrap_or(0);
        erased += now;
        idle = if now == 0 { idle + 1 } else { 0 };
        // Capacity in the answer means that more may be there.
        if idle > IDLE_MAX || done.capacity.is_none() || limit.is_some_and(|limit| erased >= limit)
        {
            return Ok(erased);
        }
    }
}
