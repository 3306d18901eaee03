//! How every body is read: judged whole, with every wrong field told, then refused for the first option that is not
//! available.

use serde_json::Value;

use super::unavailable::{Unavailable, refuse_unavailable};
use crate::domain::api_version::ApiVersion;
use crate::domain::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// What a `null` at the top of a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// A value of the wrong type.
    Wrong,
    /// As good as nothing: clients send them for what is not set.
    Absent,
}

impl Nulls {
    /// As scrapes and batches of this version have it.
    pub fn of(version: ApiVersion) -> Self {
        if version == ApiVersion::V1 { Self::Absent } else { Self::Wrong }
    }
}

/// Reads a body of this version with `read`, which takes every field it knows and notes what is not available.
///
/// # Errors
/// Every wrong field, those that `read` does not know among them; or the first option that is not available.
pub(super) fn read_body<T>(
    version: ApiVersion,
    body: &Value,
    nulls: Nulls,
    read: impl FnOnce(&mut Fields<'_, '_>, &mut Vec<Unavailable>) -> T,
) -> Result<T, ValidationError> {
    let mut issues = Issues::default();
    let mut unavailable = Vec::new();
    let request = Fields::open(body, Path::new(), &mut issues).map(|fields| {
        let mut fields = if nulls == Nulls::Absent { fields.nulls_are_absent() } else { fields };
        let request = read(&mut fields, &mut unavailable);
        fields.finish();
        request
    });
    issues.into_result_of(version)?;
    refuse_unavailable(unavailable)?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}
