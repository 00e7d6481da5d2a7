//! `onym sim --record DIR`: samples of the nodes, transfers, and captures of links as files.

use anyhow::Context as _;
use onym_sim::record::Sample;
use onym_sim::{Crossing, Network};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

/// Columns of samples.csv; what is counted is counted since the run began.
const SAMPLE_HEAD: &str = "t_s,node,pending,waiting,pit_octets,cs_entries,cs_octets,cs_hits,\
    cs_misses,interests_in,data_in,nacks_in,interests_out,data_out,nacks_out,dropped,used_s,busy_s";
/// Columns of transfers.csv.
const TRANSFER_HEAD: &str = "app,node,object,began_s,ended_s,octets,retransmissions,complete";

/// samples.csv under way.
#[derive(Debug)]
pub(super) struct Samples(BufWriter<File>);

impl Samples {
    pub(super) fn create(dir: &Path) -> anyhow::Result<Self> {
        let mut file = create(&dir.join("samples.csv"))?;
        writeln!(file, "{SAMPLE_HEAD}")?;
        Ok(Self(file))
    }

    pub(super) fn write(&mut self, name: &str, s: &Sample) -> std::io::Result<()> {
        let ([ii, di, ni], [io, dout, no]) = (s.received, s.sent);
        writeln!(
            self.0,
            "{:.6},{name},{},{},{},{},{},{},{},{ii},{di},{ni},{io},{dout},{no},{},{:.6},{:.6}",
            s.at.as_secs_f64(),
            s.pending,
            s.waiting,
            s.pit_octets,
            s.cs_entries,
            s.cs_octets,
            s.cs_hits,
            s.cs_misses,
            s.dropped,
            s.used_s,
            s.busy_s,
        )
    }

    pub(super) fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Writes transfers.csv. `rows` are an application's number, its node and its transfers.
pub(crate) fn transfers<'a>(
    path: &Path,
    rows: impl Iterator<Item = (usize, &'a str, Vec<onym_sim::Transfer>)>,
) -> anyhow::Result<()> {
    let mut file = create(path)?;
    writeln!(file, "{TRANSFER_HEAD}")?;
    let seconds = |time: Option<std::time::Duration>| {
        time.map_or_else(String::new, |time| format!("{:.6}", time.as_secs_f64()))
    };
    for (app, node, transfers) in rows {
        for one in transfers {
            writeln!(
                file,
                "{app},{node},{},{},{},{},{},{}",
                one.name,
                seconds(one.began),
                seconds(one.ended),
                one.octets,
                one.retransmissions,
                one.is_complete
            )?;
        }
    }
    Ok(file.flush()?)
}

/// A link to capture, as it is typed: `A-B` for node names without a hyphen, or `A:B`.
pub(super) fn ends(text: &str) -> Result<(String, String), String> {
    text.split_once(':')
        .or_else(|| text.split_once('-'))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .ok_or_else(|| format!("{text:?} is no link: A:B is expected"))
}

/// Captures of links, each a pcap file of Ethernet frames of type 0x8624.
#[derive(Debug, Default)]
struct Captures {
    files: Vec<BufWriter<File>>,
    /// Node and port to the file.
    by_port: HashMap<(usize, usize), usize>,
    snaplen: usize,
    failed: Option<std::io::Error>,
}

/// Captures under way; to be finished when the run is over.
#[derive(Debug)]
pub(super) struct Tapped(Rc<RefCell<Captures>>);

/// Taps the `links` of `network`, both directions, as frames are put on the line.
pub(super) fn tap(
    network: &mut Network,
    dir: &Path,
    links: &[(String, String)],
    snaplen: usize,
) -> anyhow::Result<Tapped> {
    let mut captures = Captures { snaplen, ..Captures::default() };
    for (a, b) in links {
        let of = |name: &str| network.nodes().iter().position(|node| node.name == name);
        let ends = of(a).zip(of(b)).and_then(|(a, b)| {
            let is_it =
                |[x, y]: &&[(usize, usize); 2]| (x.0 == a && y.0 == b) || (x.0 == b && y.0 == a);
            network.links().iter().find(is_it)
        });
        let ends = ends.with_context(|| format!("there is no link between {a} and {b}"))?;
        let mut file = create(&dir.join(format!("{a}-{b}.pcap")))?;
        file.write_all(&file_head(snaplen))?;
        for end in ends {
            captures.by_port.insert(*end, captures.files.len());
        }
        captures.files.push(file);
    }
    let shared = Rc::new(RefCell::new(captures));
    let seen = Rc::clone(&shared);
    network.tap(move |crossing| seen.borrow_mut().take(crossing));
    Ok(Tapped(shared))
}

impl Captures {
    fn take(&mut self, crossing: &Crossing<'_>) {
        let Some(file) = self.by_port.get(&(crossing.node, crossing.port)) else { return };
        let Some(file) = self.files.get_mut(*file) else { return };
        if let Err(error) = write_frame(file, crossing, self.snaplen) {
            self.failed.get_or_insert(error);
        }
    }
}

impl Tapped {
    pub(super) fn finish(self) -> std::io::Result<()> {
        let mut captures = self.0.borrow_mut();
        if let Some(error) = captures.failed.take() {
            return Err(error);
        }
        captures.files.iter_mut().try_for_each(Write::flush)
    }
}

/// The head of a pcap file: microseconds, Ethernet.
fn file_head(snaplen: usize) -> Vec<u8> {
    let mut head = Vec::with_capacity(24);
    head.extend_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    head.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.extend_from_slice(&u32::try_from(snaplen).unwrap_or(u32::MAX).to_le_bytes());
    head.extend_from_slice(&1_u32.to_le_bytes());
    head
}

/// One frame with an Ethernet header; the source address has the number of the node and the port.
fn write_frame(
    out: &mut impl Write,
    crossing: &Crossing<'_>,
    snaplen: usize,
) -> std::io::Result<()> {
    let since = crossing.now.since(onym_tables::Tick::default());
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let len = crossing.frame.len() + 14;
    let kept = len.min(snaplen.max(14));
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    for word in [seconds, since.subsec_micros(), short(kept), short(len)] {
        out.write_all(&word.to_le_bytes())?;
    }
    let node = short(crossing.node).to_be_bytes();
    let port = short(crossing.port).to_be_bytes();
    out.write_all(&[0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa])?;
    out.write_all(&[0x02, node[1], node[2], node[3], port[2], port[3], 0x86, 0x24])?;
    out.write_all(&crossing.frame[..kept - 14])
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("{} cannot be made", path.display()))?;
    Ok(BufWriter::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_at_the_snap_length_and_its_length_is_kept() {
        let frame = [7; 100];
        let now = onym_tables::Tick(1_500_000_000);
        let crossing = Crossing { now, node: 3, port: 1, frame: &frame };
        let mut out = Vec::new();
        write_frame(&mut out, &crossing, 50).unwrap();
        assert_eq!(out.len(), 16 + 50);
        assert_eq!(out[..16], [1, 0, 0, 0, 0x20, 0xa1, 7, 0, 50, 0, 0, 0, 114, 0, 0, 0]);
        assert_eq!(out[22..30], [2, 0, 0, 3, 0, 1, 0x86, 0x24]);
    }
}
