//! Ids: UUIDs of version 7, so that they sort by time; one type per thing, so that they are never mixed up.

use std::fmt;
use std::str::FromStr;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};
use sqlx::{Database, Decode, Encode, Type};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh id.
            #[expect(clippy::new_without_default, reason = "a default id would be a different one each time")]
            pub fn new() -> Self { Self(crate::random::id()) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.hyphenated().fmt(f) }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> { Uuid::parse_str(text).map(Self) }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($name).into() }
            fn inline_schema() -> bool { true }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
            }
        }

        impl<DB: Database> Type<DB> for $name where String: Type<DB> {
            fn type_info() -> DB::TypeInfo { <String as Type<DB>>::type_info() }
            fn compatible(ty: &DB::TypeInfo) -> bool { <String as Type<DB>>::compatible(ty) }
        }

        impl PgHasArrayType for $name {
            fn array_type_info() -> PgTypeInfo { <String as PgHasArrayType>::array_type_info() }
        }

        impl<'q, DB: Database> Encode<'q, DB> for $name where String: Encode<'q, DB> {
            fn encode_by_ref(&self, buf: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
                self.to_string().encode(buf)
            }
        }

        impl<'r, DB: Database> Decode<'r, DB> for $name where String: Decode<'r, DB> {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
                Ok(Self(Uuid::parse_str(&String::decode(value)?)?))
            }
        }
    )+};
}

ids! {
    /// A team (tenant).
    TeamId;
    /// An API key's row, not the key.
    KeyId;
    /// A scrape, batch, crawl or map.
    JobId;
    /// One page of a job: the `scrapeId` on the wire.
    PageId;
    /// One worker process, from its start to its end.
    WorkerId;
    /// One webhook event: the `webhookId` on the wire, the same on every try.
    DeliveryId;
    /// Something that is watched by a schedule.
    MonitorId;
    /// One look at what a monitor watches.
    CheckId;
    /// What reads pages of one template without a language model.
    ExtractorId;
    /// One browser session, from its creation on; never used again.
    SessionId;
}
