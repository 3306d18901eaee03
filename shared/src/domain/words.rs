//! States and kinds: enums that are stored and shown as words.

/// Declares an enum that is stored and shown as a lower-case word.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every variant, in the order of their declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The stored word.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $word,)+ } }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("{word} is no {}", stringify!($name))),
                }
            }
        }
    )+};
}

pub(super) use words;
