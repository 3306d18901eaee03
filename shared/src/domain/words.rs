//! How a closed list of words is declared: an enum whose variants are stored, sent and shown as one lower-case word.

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

            /// The stored word as a part of SQL.
            pub const fn sql(self) -> &'static str { match self { $(Self::$variant => concat!("'", $word, "'"),)+ } }
        }

        impl<DB: sqlx::Database> sqlx::Type<DB> for $name where String: sqlx::Type<DB> {
            fn type_info() -> DB::TypeInfo { <String as sqlx::Type<DB>>::type_info() }
            fn compatible(ty: &DB::TypeInfo) -> bool { <String as sqlx::Type<DB>>::compatible(ty) }
        }

        impl<'q, DB: sqlx::Database> sqlx::Encode<'q, DB> for $name where String: sqlx::Encode<'q, DB> {
            fn encode_by_ref(
                &self,
                buf: &mut DB::ArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                self.as_str().to_owned().encode(buf)
            }
        }

        impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name where String: sqlx::Decode<'r, DB> {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Ok(String::decode(value)?.parse()?)
            }
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
