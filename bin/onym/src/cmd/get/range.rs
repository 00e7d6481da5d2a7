//! `--range`: some octets of an object.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Octets, as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Octets {
    /// From the first to the last one, or to the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

impl FromStr for Octets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write FIRST-LAST, FIRST- or -N, such as 0-99".to_owned();
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        match (first, last) {
            ("", last) => number(last).map(Self::Last),
            (first, "") => Ok(Self::From(number(first)?, None)),
            (first, last) => match (number(first)?, number(last)?) {
                (first, last) if first <= last => Ok(Self::From(first, Some(last))),
                _ => Err(wrong()),
            },
        }
    }
}

impl Octets {
    /// Which these are of an object of `size` octets; `None` when it has none of them.
    pub(super) fn within(self, size: u64) -> Option<RangeInclusive<u64>> {
        let end = size.checked_sub(1)?;
        match self {
            Self::Last(0) => None,
            Self::Last(count) => Some(size.saturating_sub(count)..=end),
            Self::From(first, _) if first > end => None,
            Self::From(first, last) => Some(first..=last.map_or(end, |last| last.min(end))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http_and_end_with_the_object() {
        let within = |text: &str, size| Octets::from_str(text).unwrap().within(size);
        assert_eq!(within("0-0", 10), Some(0..=0));
        assert_eq!(within("3-99", 10), Some(3..=9));
        assert_eq!(within("9-", 10), Some(9..=9));
        assert_eq!(within("-4", 10), Some(6..=9));
        assert_eq!(within("-40", 10), Some(0..=9));
        for nothing in ["10-", "10-12", "-0"] {
            assert_eq!(within(nothing, 10), None, "{nothing}");
        }
        assert_eq!(within("0-", 0), None);
        for wrong in ["", "-", "3", "4-3", "a-b", "1-2-3", "99999999999999999999-"] {
            assert!(Octets::from_str(wrong).is_err(), "{wrong}");
        }
    }
}
