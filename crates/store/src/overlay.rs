//! The file of the index as redb sees it: on the disk, or, where the disk is read-only, under a layer of memory.

use crate::disk::{DiskFile, read_exact};
use redb::StorageBackend;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// On the disk.
#[derive(Debug)]
pub(crate) struct OnDisk {
    pub(crate) file: Arc<dyn DiskFile>,
    /// Set when this database was given up and another one has the file.
    pub(crate) detached: Arc<AtomicBool>,
}

impl OnDisk {
    fn check(&self) -> io::Result<()> {
        if self.detached.load(Ordering::SeqCst) {
            return Err(io::Error::other("the index was opened again"));
        }
        Ok(())
    }
}

impl StorageBackend for OnDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact(&*self.file, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write_at(offset, data)
    }
}

const PAGE: u64 = 4096;

/// Under a layer of memory: what is written stays there.
#[derive(Debug)]
pub(crate) struct InMemory {
    file: Option<Arc<dyn DiskFile>>,
    layer: Mutex<Layer>,
}

#[derive(Debug, Default)]
struct Layer {
    len: u64,
    /// Octets of the file that count still.
    base_len: u64,
    pages: HashMap<u64, Vec<u8>>,
}

impl InMemory {
    /// Over `file`, or over nothing.
    pub(crate) fn over(file: Option<Arc<dyn DiskFile>>) -> io::Result<Self> {
        let len = file.as_ref().map_or(Ok(0), |f| f.len())?;
        let layer = Layer { len, base_len: len, pages: HashMap::new() };
        Ok(Self { file, layer: Mutex::new(layer) })
    }

    fn page(&self, layer: &Layer, number: u64) -> io::Result<Vec<u8>> {
        if let Some(page) = layer.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        let start = number * PAGE;
        let there = layer.base_len.saturating_sub(start).min(PAGE);
        if let Some(file) = &self.file
            && there > 0
        {
            read_exact(&**file, start, &mut page[..there as usize])?;
        }
        Ok(page)
    }

    fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done >= len {
                return None;
            }
            let at = offset + done as u64;
            let within = (at % PAGE) as usize;
            let count = (PAGE as usize - within).min(len - done);
            let piece = (at / PAGE, within, done, count);
            done += count;
            Some(piece)
        })
    }
}

impl StorageBackend for InMemory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.layer.lock().unwrap_or_else(PoisonError::into_inner).len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
        if offset + out.len() as u64 > layer.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, within, done, count) in Self::pieces(offset, out.len()) {
            let page = self.page(&layer, number)?;
            out[done..done + count].copy_from_slice(&page[within..within + count]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
        layer.len = len;
        layer.base_len = layer.base_len.min(len);
        layer.pages.retain(|number, _| number * PAGE < len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, within, done, count) in Self::pieces(offset, data.len()) {
            let mut page = self.page(&layer, number)?;
            page[within..within + count].copy_from_slice(&data[done..done + count]);
            layer.pages.insert(number, page);
        }
        layer.len = layer.len.max(offset + data.len() as u64);
        Ok(())
    }
}
