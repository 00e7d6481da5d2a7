//! Declaring outcomes.

/// Declares an enum of outcomes once: variant, word, whether something was lost, and what it means.
/// The word is the counter, the metric label, the trace text and the word of packet scripts.
///
/// ```
/// onym_tables::outcomes! {
///     /// How a letter ended.
///     Letter {
///         Read "read" false "Opened by who it was for"
///         Lost "lost" true "Nobody knows"
///     }
/// }
/// assert_eq!(Letter::ALL.len(), Letter::COUNT);
/// assert!(Letter::Lost.is_drop());
/// ```
#[macro_export]
macro_rules! outcomes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $label:literal $drop:literal $text:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $(#[doc = $text] $variant,)*
        }

        impl $name {
            /// All of them, in the order of the counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The word that metrics, traces and scripts use.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }

            /// What it means, for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Whether it is a loss.
            #[must_use]
            pub const fn is_drop(self) -> bool {
                match self { $(Self::$variant => $drop,)* }
            }
        }
    };
}
