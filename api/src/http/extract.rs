//! Bodies, queries and path ids as handlers take them: read or refused, in our error shape.

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::web::{Buf as _, Bytes, BytesMut, Payload};
use serde_json::Value;
use uuid::Uuid;
use weir_shared::domain::json_schema::depth;
use weir_shared::domain::target::RequestContext;
use weir_shared::domain::validation::{Issues, ValidationError};
use weir_shared::error_code::ErrorCode;
use weir_shared::{memory, texts};

use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::http::arriving::{Arriving, announced};
use crate::http::bodies::Room;
use crate::http::json::{self, Fault, Reader};

/// Largest JSON body, bytes (wire 1.8).
pub const MAX_BODY: usize = 10 * 1024 * 1024;

/// Deepest body. What is kept of one stands inside of other values, and is read again by a reader with a bound (128).
const MAX_DEPTH: usize = 100;

/// From here on the memory of a body that was read is given back at once, bytes.
const LARGE: usize = 1024 * 1024;

/// What some programs put before a text in UTF-8. It is no part of it, and may be passed over (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Content codings under which a body is not what it stands for. Another word is a client's slip ("utf-8").
const COMPRESSED: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress"];

/// What reads the bodies of an operation in one version of the API.
pub type Parser<T> = fn(&Value, RequestContext<'_>) -> Result<T, ValidationError>;

/// Reads a JSON body of any shape for `parser` to judge. What the parser makes of it is all that is left when this
/// returns: handlers wait for pages and sessions, and a body of any size would wait with them. The room is to be held as
/// long as that is used.
///
/// Call it with a caller: nobody else's body is read.
///
/// # Errors
/// 413 over 10 MB, 408 when it does not come, 429 when the key's bodies or the team's unread answers take up too much room,
/// 400 when it is compressed or not JSON or its values are too many for its length, and what the parser says.
pub async fn json<T>(
    app: &App,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
    parser: impl FnOnce(&Value) -> Result<T, ValidationError>,
) -> ApiResult<(T, Room)> {
    let (body, room) = bytes(app, caller, request, payload).await?;
    Ok((parsed(body, parser)?, room))
}

/// The same where every field is optional: no body at all is an empty object.
///
/// # Errors
/// As [`json`].
pub async fn optional_json<T>(
    app: &App,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
    parser: impl FnOnce(&Value) -> Result<T, ValidationError>,
) -> ApiResult<(T, Room)> {
    let (body, room) = bytes(app, caller, request, payload).await?;
    let body = if body.is_empty() { BytesMut::from("{}") } else { body };
    Ok((parsed(body, parser)?, room))
}

/// The body as text. It is to be judged by [`check`] before anything reads it. The room is to be held as long as what is
/// made of it is used.
///
/// # Errors
/// 413 over 10 MB, 408 when it does not come, 429 when the key's bodies take up too much room, 400 when it is compressed.
pub async fn json_text(
    app: &App,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
) -> ApiResult<(Bytes, Room)> {
    let (body, room) = bytes(app, caller, request, payload).await?;
    Ok((body.freeze(), room))
}

/// Judges a JSON text for who is going to read it.
///
/// # Errors
/// 400 when its values are too many for its length.
pub fn check(text: &[u8], reader: Reader) -> ApiResult<()> {
    json::check(text, reader).map_err(refused)
}

/// What a parser makes of a JSON text.
///
/// # Errors
/// 400 when it is not JSON, is nested too deeply, has U+0000 in a text or too many values for its length, and what the parser
/// says.
pub fn parsed<T>(body: BytesMut, parser: impl FnOnce(&Value) -> Result<T, ValidationError>) -> ApiResult<T> {
    let value = json::decode(&body).map_err(refused)?;
    if depth(&value) > MAX_DEPTH {
        let text = format!("Bad request: the JSON body is nested more than {MAX_DEPTH} levels deep");
        return Err(ApiError::new(ErrorCode::BadRequest, text));
    }
    // Not every database has it in a text, so it is refused whatever the text is for.
    if texts::names_nul(&body) {
        let text = "Bad request: a text of the JSON body holds the character U+0000, which is not taken";
        return Err(ApiError::new(ErrorCode::BadRequest, text));
    }
    let length = body.len();
    drop(body);
    let made = parser(&value);
    drop(value);
    given_back(length);
    Ok(made?)
}

/// Call when the values of a text of this length, bytes, are freed and somebody is waited for.
pub fn given_back(length: usize) {
    if length > LARGE {
        memory::give_back_now();
    }
}

/// Refuses a body that would have to be unpacked: nothing here does, and what is small as it comes may be endless.
///
/// # Errors
/// 400 when the request says that it is compressed.
pub fn refuse_compressed(request: &HttpRequest) -> ApiResult<()> {
    let coding = request.headers().get(CONTENT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if COMPRESSED.iter().any(|name| coding.eq_ignore_ascii_case(name)) {
        let text = format!("Bad request: the body is compressed ({coding}), which is not taken. Send it as it is");
        return Err(ApiError::new(ErrorCode::BadRequest, text));
    }
    Ok(())
}

async fn bytes(app: &App, caller: &Caller, request: &HttpRequest, payload: Payload) -> ApiResult<(BytesMut, Room)> {
    app.answers.refuse_unread(caller.team_id())?;
    let mut room = app.bodies.room(caller.key);
    refuse_compressed(request)?;
    let announced = announced(request);
    if announced > MAX_BODY {
        return Err(too_large());
    }
    room.reach(announced)?;
    // The whole of it at once: growing would need the room twice.
    let mut body = BytesMut::with_capacity(announced);
    let mut arriving = Arriving::new(request, payload);
    while let Some(chunk) = arriving.next().await.map_err(|end| end.or(|cause| malformed(cause)))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(too_large());
        }
        room.reach(body.len() + chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    Ok((body, room))
}

fn refused(fault: Fault) -> ApiError {
    match fault {
        Fault::Malformed(error) => malformed(&error),
        Fault::TooDense => {
            let text = "Bad request: the JSON body has far more values than its length is for. Leave out what the \
                request does not need, or split it.";
            ApiError::new(ErrorCode::BadRequest, text)
        }
    }
}

fn too_large() -> ApiError {
    ApiError::new(ErrorCode::PayloadTooLarge, "Payload too large: the body may have at most 10 MB")
}

fn malformed(cause: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(ErrorCode::InvalidJson, format!("Bad request, malformed JSON: {cause}"))
}

/// Reads an id from the path: a UUID in its usual form.
///
/// # Errors
/// 400 with the text of wire 2.1.
pub fn path_id<T: std::str::FromStr>(text: &str) -> ApiResult<T> {
    let hyphenated = text.len() == 36 && Uuid::parse_str(text).is_ok();
    let invalid = || ApiError::new(ErrorCode::Invalid, "Invalid job ID format. Job ID must be a valid UUID.");
    if hyphenated { text.parse().map_err(|_| invalid()) } else { Err(invalid()) }
}

/// Documents in one page of results at most (wire 5.7).
pub const MAX_PAGE: i64 = 1_000;

/// `skip` and `limit` of a page of results (wire 5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Documents already delivered; `None`: not given, as in a client's first read.
    pub skip: Option<i64>,
    /// 1 to 1,000.
    pub limit: Option<i64>,
}

/// Reads the paging parameters; others are ignored.
///
/// # Errors
/// 400 for values out of range or not numbers.
pub fn paging(query: &str) -> ApiResult<Paging> {
    let mut paging = Paging { skip: None, limit: None };
    if query.is_empty() {
        return Ok(paging);
    }
    let mut issues = Issues::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let (slot, range) = match name.as_ref() {
            "skip" => (&mut paging.skip, 0..=i64::from(u32::MAX)),
            "limit" => (&mut paging.limit, 1..=MAX_PAGE),
            _ => continue,
        };
        let path = vec![name.as_ref().into()];
        match value.parse::<i64>() {
            Ok(number) if range.contains(&number) => *slot = Some(number),
            Ok(number) => issues.out_of_range(path, "number", number, &range),
            Err(_) => issues.wrong_type(path, "number", Some(&Value::String(value.into_owned()))),
        }
    }
    issues.into_result().map_err(|e: ValidationError| ApiError::from(e))?;
    Ok(paging)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use weir_shared::ids::JobId;

    use super::*;

    #[test]
    fn a_path_id_is_a_uuid_with_hyphens() {
        let id = JobId::new().to_string();
        assert_eq!(path_id::<JobId>(&id).unwrap().to_string(), id);
        for wrong in ["", "5", &id.replace('-', ""), &format!("{{{id}}}"), "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"] {
            let error = path_id::<JobId>(wrong).unwrap_err();
            assert_eq!(error.to_string(), "Invalid job ID format. Job ID must be a valid UUID.");
        }
    }

    #[test]
    fn a_text_with_a_nul_is_refused_wherever_it_stands() {
        let read = |text: &str| parsed(BytesMut::from(text), |value| Ok(value.clone()));
        for text in [r#"{"origin":"a\u0000"}"#, r#"{"a":[{"b\u0000":1}]}"#] {
            let error = read(text).unwrap_err();
            assert!(error.code() == ErrorCode::BadRequest && error.to_string().contains("U+0000"), "{error}");
        }
        assert_eq!(read(r#"{"code":"'\\u0000'"}"#).unwrap()["code"], r"'\u0000'");
    }

    #[test]
    fn a_body_that_could_not_be_read_again_inside_of_others_is_refused() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let read = |levels| parsed(BytesMut::from(nested(levels).as_str()), |_| Ok(()));
        assert!(read(MAX_DEPTH).is_ok());
        let error = read(MAX_DEPTH + 1).unwrap_err();
        assert!(error.code() == ErrorCode::BadRequest && error.to_string().contains("nested"), "{error}");
    }

    #[test]
    fn paging_is_read_or_refused() {
        let read = |query| paging(query).unwrap();
        assert_eq!(read(""), Paging { skip: None, limit: None });
        assert_eq!(read("skip=5&limit=1000&x=y"), Paging { skip: Some(5), limit: Some(1_000) });
        for wrong in ["skip=-1", "skip=a", "limit=0", "limit=1001", "limit=", "skip=1.5"] {
            assert_eq!(paging(wrong).unwrap_err().code(), ErrorCode::BadRequest, "{wrong}");
        }
    }
}
