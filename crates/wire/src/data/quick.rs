//! The layout of nearly every Data, read straight through: name without digests, MetaInfo, Content,
//! signature, nothing else. What differs is left to the general parser, malformed Data too.

use super::{Data, only_component};
use crate::name::NameRef;
use crate::signature::SignatureInfo;
use crate::tlv::{self, take};
use crate::types;

/// The Data, if it has that layout, and whether its name is `expected`. Then the general parser would
/// find the same.
#[inline(always)]
pub(super) fn parse<'a>(wire: &'a [u8], expected: Option<NameRef<'_>>) -> Option<(Data<'a>, bool)> {
    let (inner, []) = take(wire, types::DATA)? else { return None };
    let (value, mut rest) = take(inner, types::NAME)?;
    let expected = expected.filter(|expected| expected.value() == value);
    let name = match expected {
        Some(expected) => NameRef::known(value, expected.len()),
        None => NameRef::plain(value)?,
    };
    let mut data = Data {
        wire,
        name,
        content_type: types::CONTENT_BLOB,
        freshness_ms: 0,
        final_block_id: None,
        meta_info: &[],
        content: &[],
        signature_value: &[],
        signed_range: &[],
        signature_info: &[],
    };
    if let Some((meta_info, tail)) = take(rest, types::META_INFO) {
        take_meta_info(&mut data, meta_info)?;
        rest = tail;
    }
    if let Some((content, tail)) = take(rest, types::CONTENT) {
        data.content = content;
        rest = tail;
    }
    let (info, tail) = take(rest, types::SIGNATURE_INFO)?;
    SignatureInfo::check(info).ok()?;
    let (value, []) = take(tail, types::SIGNATURE_VALUE)? else { return None };
    data.signature_info = info;
    data.signature_value = value;
    data.signed_range = inner.get(..inner.len() - tail.len())?;
    Some((data, expected.is_some()))
}

#[inline(always)]
fn take_meta_info<'a>(data: &mut Data<'a>, value: &'a [u8]) -> Option<()> {
    let mut rest = value;
    if let Some((content_type, tail)) = take(rest, types::CONTENT_TYPE) {
        data.content_type = tlv::nni(content_type).ok()?;
        rest = tail;
    }
    if let Some((freshness, tail)) = take(rest, types::FRESHNESS_PERIOD) {
        data.freshness_ms = tlv::nni(freshness).ok()?;
        rest = tail;
    }
    if let Some((component, tail)) = take(rest, types::FINAL_BLOCK_ID) {
        data.final_block_id = Some(only_component(component).ok()?);
        rest = tail;
    }
    data.meta_info = value;
    rest.is_empty().then_some(())
}
