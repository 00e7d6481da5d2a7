//! What segments are called, on the disk and in a bucket.

/// The name of a segment.
pub(crate) fn file_name(segment: u32) -> String {
    format!("{segment:08x}.log")
}

/// The number of the segment that is called so.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".log")?;
    if digits.len() == 8 { u32::from_str_radix(digits, 16).ok() } else { None }
}
