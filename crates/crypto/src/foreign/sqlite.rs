//! Reads the tables of an SQLite file, and nothing else: no query, no index, no write, no lock.
//!
//! A key store of ndn-cxx is such a file. It must stay as it is, so it is read as octets; a journal
//! beside it, which a program left that died while it wrote, is not applied.
//! Format: <https://www.sqlite.org/fileformat2.html>.

use std::collections::BTreeSet;

/// Longest file that is read, in octets.
pub(super) const FILE_LEN_MAX: usize = 64 << 20;
/// Rows of one table, at most.
const ROWS_MAX: usize = 100_000;
/// Deepest tree of pages.
const DEPTH_MAX: usize = 20;
/// Longest row, in octets.
const ROW_LEN_MAX: usize = 1 << 20;

const MAGIC: &[u8] = b"SQLite format 3\0";
const TABLE_LEAF: u8 = 13;
const TABLE_INTERIOR: u8 = 5;

/// What cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Bad {
    #[error("it is no SQLite file")]
    Magic,
    #[error("it is damaged, or another program writes it now")]
    Damaged,
    #[error("it is larger than a key store is")]
    TooLarge,
    #[error("it has no table {0}")]
    Table(&'static str),
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Number(i64),
    Octets(Vec<u8>),
}

impl Value {
    pub(super) fn octets(&self) -> &[u8] {
        if let Self::Octets(octets) = self { octets } else { &[] }
    }

    pub(super) fn number(&self) -> Option<i64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }
}

/// A row: its number, and its values in the order of the columns.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) values: Vec<Value>,
}

impl Row {
    pub(super) fn value(&self, at: usize) -> &Value {
        self.values.get(at).unwrap_or(&Value::Null)
    }
}

/// A file as it is.
#[derive(Debug)]
pub(super) struct File<'a> {
    octets: &'a [u8],
    page_len: usize,
    /// Octets of a page that are used.
    usable: usize,
}

fn be16(octets: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?)))
}

fn be32(octets: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(octets.get(at..at + 4)?.try_into().ok()?)).ok()
}

/// A number of one to nine octets, and where it ends.
fn varint(octets: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for i in 0..9 {
        let octet = *octets.get(at + i)?;
        if i == 8 {
            return Some((number << 8 | u64::from(octet), at + 9));
        }
        number = number << 7 | u64::from(octet & 0x7F);
        if octet < 0x80 {
            return Some((number, at + i + 1));
        }
    }
    None
}

impl<'a> File<'a> {
    pub(super) fn open(octets: &'a [u8]) -> Result<Self, Bad> {
        if octets.len() > FILE_LEN_MAX {
            return Err(Bad::TooLarge);
        }
        if !octets.starts_with(MAGIC) {
            return Err(Bad::Magic);
        }
        let page_len = match be16(octets, 16) {
            Some(1) => 65_536,
            Some(len) if len.is_power_of_two() && len >= 512 => len,
            _ => return Err(Bad::Damaged),
        };
        let reserved = usize::from(*octets.get(20).ok_or(Bad::Damaged)?);
        let usable = page_len.checked_sub(reserved).filter(|n| *n >= 480).ok_or(Bad::Damaged)?;
        Ok(Self { octets, page_len, usable })
    }

    /// Page `number`, which counts from 1, and where its tree begins in it.
    fn page(&self, number: usize) -> Option<(&'a [u8], usize)> {
        let start = number.checked_sub(1)?.checked_mul(self.page_len)?;
        let page = self.octets.get(start..start.checked_add(self.page_len)?)?;
        Some((page, if number == 1 { 100 } else { 0 }))
    }

    /// All rows of a table.
    pub(super) fn table(&self, name: &'static str) -> Result<Vec<Row>, Bad> {
        let is_it = |row: &Row| {
            row.value(0).octets() == b"table" && row.value(1).octets() == name.as_bytes()
        };
        let schema = self.rows(1)?;
        let row = schema.iter().find(|row| is_it(row)).ok_or(Bad::Table(name))?;
        let root = row.value(3).number().and_then(|root| usize::try_from(root).ok());
        self.rows(root.ok_or(Bad::Damaged)?)
    }

    fn rows(&self, root: usize) -> Result<Vec<Row>, Bad> {
        let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
        self.tree(root, 0, &mut seen, &mut rows).ok_or(Bad::Damaged)?;
        Ok(rows)
    }

    fn tree(
        &self,
        number: usize,
        depth: usize,
        seen: &mut BTreeSet<usize>,
        rows: &mut Vec<Row>,
    ) -> Option<()> {
        // A page that leads to itself would never end.
        if depth > DEPTH_MAX || !seen.insert(number) {
            return None;
        }
        let (page, at) = self.page(number)?;
        let (kind, cells) = (*page.get(at)?, be16(page, at + 3)?);
        let pointers = at + if kind == TABLE_INTERIOR { 12 } else { 8 };
        for cell in 0..cells {
            let start = be16(page, pointers + cell * 2)?;
            match kind {
                TABLE_INTERIOR => self.tree(be32(page, start)?, depth + 1, seen, rows)?,
                TABLE_LEAF => {
                    if rows.len() >= ROWS_MAX {
                        return None;
                    }
                    rows.push(self.row(page, start)?);
                }
                _ => return None,
            }
        }
        match kind {
            TABLE_INTERIOR => self.tree(be32(page, at + 8)?, depth + 1, seen, rows),
            TABLE_LEAF => Some(()),
            _ => None,
        }
    }

    fn row(&self, page: &[u8], at: usize) -> Option<Row> {
        let (len, at) = varint(page, at)?;
        let (id, at) = varint(page, at)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= ROW_LEN_MAX)?;
        let payload = self.payload(page, at, len)?;
        Some(Row { id: id.cast_signed(), values: record(&payload)? })
    }

    /// What a leaf holds of a row, and the rest on the pages that it leads to.
    fn payload(&self, page: &[u8], at: usize, len: usize) -> Option<Vec<u8>> {
        let most = self.usable - 35;
        if len <= most {
            return Some(page.get(at..at + len)?.to_vec());
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let here = least + (len - least) % (self.usable - 4);
        let here = if here <= most { here } else { least };
        let mut payload = page.get(at..at + here)?.to_vec();
        let mut next = be32(page, at + here)?;
        while payload.len() < len {
            let (page, _) = self.page(next)?;
            let rest = (len - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(page.get(4..4 + rest)?);
            next = be32(page, 0)?;
        }
        Some(payload)
    }
}

/// The values of a row.
fn record(payload: &[u8]) -> Option<Vec<Value>> {
    let (header_len, mut at) = varint(payload, 0)?;
    let header_len = usize::try_from(header_len).ok()?;
    let mut body = header_len;
    let mut values = Vec::new();
    while at < header_len {
        let (kind, next) = varint(payload, at)?;
        at = next;
        let len = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            text => usize::try_from((text - 12) / 2).ok()?,
        };
        let octets = payload.get(body..body.checked_add(len)?)?;
        body += len;
        values.push(match kind {
            // No part of a key store is a real number.
            0 | 7 => Value::Null,
            8 => Value::Number(0),
            9 => Value::Number(1),
            1..=6 => {
                let negative = octets.first().is_some_and(|octet| *octet >= 0x80);
                let start = if negative { -1_i64 } else { 0 };
                Value::Number(octets.iter().fold(start, |n, octet| n << 8 | i64::from(*octet)))
            }
            _ => Value::Octets(octets.to_vec()),
        });
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_to_nine_octets() {
        assert_eq!(varint(&[0x7F], 0), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0], 0), Some((128, 2)));
        assert_eq!(varint(&[0xFF; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0xFF; 8], 0), None);
        let values = record(&[5, 1, 2, 0, 18, 0xFF, 1, 0, b'a', b'b', b'c']).unwrap();
        let octets = Value::Octets(b"abc".to_vec());
        assert_eq!(values, [Value::Number(-1), Value::Number(256), Value::Null, octets]);
        assert_eq!(record(&[3, 10, 1, 7]), None);
    }

    #[test]
    fn what_is_no_file_of_it_is_refused() {
        assert_eq!(File::open(b"").unwrap_err(), Bad::Magic);
        assert_eq!(File::open(MAGIC).unwrap_err(), Bad::Damaged);
        let mut octets = vec![0; 1024];
        octets[..16].copy_from_slice(MAGIC);
        octets[16] = 2;
        let file = File::open(&octets).unwrap();
        assert_eq!(file.table("keys").unwrap_err(), Bad::Damaged);
        // A page that leads to itself.
        octets[100] = TABLE_INTERIOR;
        octets[111] = 1;
        assert_eq!(File::open(&octets).unwrap().table("keys").unwrap_err(), Bad::Damaged);
    }
}
