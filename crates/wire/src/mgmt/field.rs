//! Fields of management structures, and the macros that declare structures from fields.

use super::Block;
use crate::name::{Name, NameRef};
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;

/// A value that is a field of a structure.
pub(crate) trait Field: Sized {
    /// Appends the field with TYPE `typ`.
    fn put(&self, typ: u32, out: &mut Vec<u8>);
    /// Finds the field in the VALUE of its structure, which was [checked](check).
    fn read(value: &[u8], typ: u32) -> Result<Self, Malformed>;
}

/// A field that is one element.
pub(crate) trait Single: Sized {
    fn put_single(&self, typ: u32, out: &mut Vec<u8>);
    fn parse_single(element: Element<'_>) -> Result<Self, Malformed>;
}

/// Checks that `value` is a sequence of elements.
pub(crate) fn check(value: &[u8]) -> Result<(), Malformed> {
    Reader::new(value).try_for_each(|element| element.map(drop))
}

/// The first element of type `typ`.
pub(crate) fn find(value: &[u8], typ: u32) -> Option<Element<'_>> {
    Reader::new(value).filter_map(Result::ok).find(|element| element.typ == typ)
}

impl<T: Single> Field for T {
    fn put(&self, typ: u32, out: &mut Vec<u8>) {
        self.put_single(typ, out);
    }

    fn read(value: &[u8], typ: u32) -> Result<Self, Malformed> {
        T::parse_single(find(value, typ).ok_or(Malformed::Missing(typ))?)
    }
}

impl<T: Single> Field for Option<T> {
    fn put(&self, typ: u32, out: &mut Vec<u8>) {
        if let Some(field) = self {
            field.put_single(typ, out);
        }
    }

    fn read(value: &[u8], typ: u32) -> Result<Self, Malformed> {
        find(value, typ).map(T::parse_single).transpose()
    }
}

impl<T: Block> Field for Vec<T> {
    fn put(&self, _: u32, out: &mut Vec<u8>) {
        self.iter().for_each(|block| block.write(out));
    }

    fn read(value: &[u8], typ: u32) -> Result<Self, Malformed> {
        Reader::new(value)
            .filter_map(Result::ok)
            .filter(|element| element.typ == typ)
            .map(|element| T::parse_value(element.value))
            .collect()
    }
}

impl Single for u64 {
    fn put_single(&self, typ: u32, out: &mut Vec<u8>) {
        tlv::put_nni_tlv(out, typ, *self);
    }

    fn parse_single(element: Element<'_>) -> Result<Self, Malformed> {
        element.nni()
    }
}

impl Single for String {
    fn put_single(&self, typ: u32, out: &mut Vec<u8>) {
        tlv::put_tlv(out, typ, self.as_bytes());
    }

    fn parse_single(element: Element<'_>) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(element.value);
        Ok(text.map_err(|_| Malformed::Value(element.typ))?.to_owned())
    }
}

/// A Name element, or an element of another type around one.
impl Single for Name {
    fn put_single(&self, typ: u32, out: &mut Vec<u8>) {
        if typ == types::NAME {
            self.as_ref().write_tlv(out);
        } else {
            tlv::put_nested(out, typ, |out| self.as_ref().write_tlv(out));
        }
    }

    fn parse_single(element: Element<'_>) -> Result<Self, Malformed> {
        let name = if element.typ == types::NAME {
            NameRef::parse_value(element.value)?
        } else {
            let inner = find(element.value, types::NAME);
            NameRef::parse_value(inner.ok_or(Malformed::Missing(types::NAME))?.value)?
        };
        Ok(name.to_name())
    }
}

/// Declares a structure whose fields are elements, in their canonical order.
macro_rules! structure {
    (
        $(#[$meta:meta])*
        pub struct $name:ident = $type:expr => {
            $($(#[$field_meta:meta])* $field:ident: $kind:ty = $field_type:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $kind,)*
        }

        impl $crate::mgmt::Block for $name {
            const TYPE: u32 = $type;

            fn parse_value(value: &[u8]) -> Result<Self, $crate::tlv::Malformed> {
                $crate::mgmt::field::check(value)?;
                Ok(Self {
                    $($field: $crate::mgmt::field::Field::read(value, $field_type)?,)*
                })
            }

            fn write_value(&self, out: &mut Vec<u8>) {
                $($crate::mgmt::field::Field::put(&self.$field, $field_type, out);)*
            }
        }
    };
}

/// Declares numbers with names; other numbers are not accepted.
macro_rules! enumeration {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $number:literal $word:literal),* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* #[doc = concat!("Number ", stringify!($number), ".")] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word for people.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value with this [word](Self::word).
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u64 {
                match self { $(Self::$variant => $number,)* }
            }

            /// The value with this number on the wire.
            #[must_use]
            pub const fn from_number(number: u64) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }

        impl $crate::mgmt::field::Single for $name {
            fn put_single(&self, typ: u32, out: &mut Vec<u8>) {
                $crate::tlv::put_nni_tlv(out, typ, self.number());
            }

            fn parse_single(
                element: $crate::tlv::Element<'_>,
            ) -> Result<Self, $crate::tlv::Malformed> {
                let value = Self::from_number(element.nni()?);
                value.ok_or($crate::tlv::Malformed::Value(element.typ))
            }
        }
    };
}

pub(crate) use {enumeration, structure};
