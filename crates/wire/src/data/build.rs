//! Writing Data.

use crate::name::{Component, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv;
use crate::types;

/// Writes Data. Fill in the fields and call [`DataBuilder::write`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DataBuilder<'a> {
    /// The name.
    pub name: NameRef<'a>,
    /// ContentType; 0 is not written.
    pub content_type: u64,
    /// FreshnessPeriod in milliseconds; 0 is not written.
    pub freshness_ms: u64,
    /// The last component of the last segment.
    pub final_block_id: Option<Component<'a>>,
    /// Elements that an application adds to MetaInfo (types 128 to 252), encoded.
    pub app_meta_info: &'a [u8],
    /// Content; the element is always written.
    pub content: &'a [u8],
}

impl<'a> DataBuilder<'a> {
    /// Data `name` with `content` and nothing else.
    #[must_use]
    pub fn new(name: NameRef<'a>, content: &'a [u8]) -> Self {
        Self { name, content, ..Self::default() }
    }

    /// Appends the Data.
    ///
    /// `sign` gets the signed portion and returns the signature.
    ///
    /// # Errors
    /// What `sign` returns; `out` is then as before.
    pub fn write<S: AsRef<[u8]>, E>(
        &self,
        out: &mut Vec<u8>,
        info: &SignatureInfo<'_>,
        sign: impl FnOnce(&[u8]) -> Result<S, E>,
    ) -> Result<(), E> {
        let start = out.len();
        let expected = self.name.wire_len() + self.content.len() + 100;
        out.reserve(expected + 100);
        let done = tlv::put_nested_sized(out, types::DATA, expected, |out| {
            let signed = out.len();
            self.name.write_tlv(out);
            self.write_meta_info(out);
            tlv::put_tlv(out, types::CONTENT, self.content);
            info.write(out, types::SIGNATURE_INFO);
            let signature = sign(out.get(signed..).unwrap_or_default())?;
            tlv::put_tlv(out, types::SIGNATURE_VALUE, signature.as_ref());
            Ok(())
        });
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn write_meta_info(&self, out: &mut Vec<u8>) {
        let start = out.len();
        tlv::put_nested(out, types::META_INFO, |out| {
            if self.content_type != types::CONTENT_BLOB {
                tlv::put_nni_tlv(out, types::CONTENT_TYPE, self.content_type);
            }
            if self.freshness_ms != 0 {
                tlv::put_nni_tlv(out, types::FRESHNESS_PERIOD, self.freshness_ms);
            }
            if let Some(component) = self.final_block_id {
                tlv::put_nested(out, types::FINAL_BLOCK_ID, |out| component.write(out));
            }
            out.extend_from_slice(self.app_meta_info);
        });
        // Nothing to say: no MetaInfo element.
        if out.len() == start + 2 {
            out.truncate(start);
        }
    }
}
