//! Scans a segment and skips damaged records.

use crate::disk::DiskFile;
use crate::record::{BODY_MAX, HEADER, Place, Record, padded};
use std::io;
use std::sync::Arc;

/// Octets that are read at once.
const CHUNK: usize = 1 << 18;

/// A walk over the records of a segment.
#[derive(Debug)]
pub(crate) struct Scan {
    file: Arc<dyn DiskFile>,
    segment: u32,
    len: u64,
    /// Offset of the first octet of `buffer`.
    start: u64,
    buffer: Vec<u8>,
    /// Where the next record is looked for.
    at: u64,
    /// Behind the last valid record.
    valid_end: u64,
    damaged_octets: u64,
}

impl Scan {
    /// Begins at offset `at` and ends at `len`.
    pub(crate) fn new(file: Arc<dyn DiskFile>, segment: u32, at: u64, len: u64) -> Self {
        let len = len.min(u64::from(u32::MAX));
        Self {
            file,
            segment,
            len,
            start: at,
            buffer: Vec::new(),
            at,
            valid_end: at,
            damaged_octets: 0,
        }
    }

    /// Behind the last valid record.
    pub(crate) fn valid_end(&self) -> u64 {
        self.valid_end
    }

    /// Octets between valid records that belong to none.
    pub(crate) fn damaged_octets(&self) -> u64 {
        self.damaged_octets
    }

    /// Has `want` octets from `self.at` on in the buffer, as far as the file has them.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        let have = (self.start + self.buffer.len() as u64).saturating_sub(self.at);
        if self.at >= self.start && have >= (want as u64).min(self.len.saturating_sub(self.at)) {
            return Ok(());
        }
        let len = (want.max(CHUNK) as u64).min(self.len.saturating_sub(self.at));
        self.start = self.at;
        self.buffer.resize(usize::try_from(len).unwrap_or(0), 0);
        let mut done = 0;
        while done < self.buffer.len() {
            let n = self.file.read_at(self.start + done as u64, &mut self.buffer[done..])?;
            if n == 0 {
                break;
            }
            done += n;
        }
        self.buffer.truncate(done);
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        let from = usize::try_from(self.at - self.start).unwrap_or(usize::MAX);
        self.buffer.get(from..).unwrap_or_default()
    }

    /// Places the walk on the next valid record and returns its place and octets with its padding.
    fn seek(&mut self) -> io::Result<Option<(Place, usize)>> {
        while self.at + HEADER as u64 <= self.len {
            self.fill(HEADER)?;
            if let Some(len) = Record::body_len(self.rest()) {
                self.fill(HEADER + len)?;
                let offset = u32::try_from(self.at).expect("invariant: len is below 4 GiB");
                let place = Place { segment: self.segment, offset };
                if Record::read(self.rest(), place).is_some() {
                    return Ok(Some((place, padded(len))));
                }
            }
            self.at += 8;
        }
        Ok(None)
    }

    /// The next valid record.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Place, Record<'_>)>> {
        let Some((place, len)) = self.seek()? else { return Ok(None) };
        self.damaged_octets += u64::from(place.offset) - self.valid_end;
        self.at += len as u64;
        self.valid_end = self.at;
        let from = usize::try_from(u64::from(place.offset) - self.start).unwrap_or(usize::MAX);
        let octets = self.buffer.get(from..).unwrap_or_default();
        Ok(Record::read(octets, place).map(|record| (place, record)))
    }
}

/// Records that are whole, and octets that belong to none.
pub(crate) fn scan_all(file: Arc<dyn DiskFile>, segment: u32, len: u64) -> io::Result<(u64, u64)> {
    let mut scan = Scan::new(file, segment, 0, len);
    let mut records = 0;
    while scan.next()?.is_some() {
        records += 1;
    }
    Ok((records, scan.damaged_octets() + len.saturating_sub(scan.valid_end())))
}

const _: () = assert!(BODY_MAX + HEADER < u32::MAX as usize);
