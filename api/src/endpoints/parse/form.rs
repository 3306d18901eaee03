//! The parts of a request that sends a file, in whichever order they come.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_TYPE, Charset};
use actix_web::web::{BytesMut, Payload};
use futures_util::{Stream, StreamExt as _};
use weir_shared::domain::upload::{MAX_BYTES, TOO_LARGE, clean_name};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::uploads::{self, Receiving};

use super::PATIENCE;
use super::formats::check_kind;
use crate::app::App;
use crate::auth::Caller;
use crate::bodies::Room;
use crate::error::{ApiError, ApiResult};
use crate::extract;

/// Longest `options`, bytes.
const MAX_OPTIONS: usize = 1 << 20;
/// Most parts.
const MAX_PARTS: usize = 16;
/// How long nothing may come of a form.
const SILENCE: Duration = Duration::from_secs(60);
/// What is said where there is no file.
pub const MISSING: &str = "Missing file upload. Send multipart/form-data with the file in the part 'file', or JSON with \
    the uploadRef of a file that was sent before.";
pub const EMPTY: &str = "The uploaded file is empty.";

/// What a request sends.
pub struct Form {
    /// The file's, among the uploads.
    pub id: JobId,
    /// Where it lies among the blobs.
    pub blob: String,
    /// Without folders.
    pub name: String,
    pub content_type: Option<String>,
    /// A JSON text; `{}` where there is none.
    pub options: BytesMut,
}

/// Reads the parts, and stores the file as it comes.
///
/// # Errors
/// 400 when there is no file, it is of no kind that is read, there is too much, or it does not come; 429 when the key's
/// bodies take up too much room. Nothing is stored then.
pub async fn read(app: &App, caller: &Caller, request: &HttpRequest, payload: Payload) -> ApiResult<Form> {
    extract::refuse_compressed(request)?;
    let mut begun = None;
    let form = tokio::time::timeout(PATIENCE, parts(app, caller, request, payload, &mut begun)).await;
    let form = form.unwrap_or_else(|_| Err(refused("The form took longer than ten minutes to come.")));
    if let (Err(_), Some(id)) = (&form, begun) {
        uploads::remove(&app.blobs, id).await;
    }
    form
}

/// Reads the parts; `begun`: under which id something may be stored.
async fn parts(
    app: &App,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
    begun: &mut Option<JobId>,
) -> ApiResult<Form> {
    let mut room = app.bodies.room(caller.key);
    let is_over = Rc::new(Cell::new(false));
    let noted = Rc::clone(&is_over);
    let payload = payload.chain(futures_util::stream::poll_fn(move |_| {
        noted.set(true);
        Poll::Ready(None)
    }));
    let mut form = Multipart::new(request.headers(), payload);
    let (mut file, mut options, mut taken) = (None, None, 0);
    let mut parts = 0;
    while let Some(mut field) = next(&mut form, &is_over).await? {
        parts += 1;
        if parts > MAX_PARTS {
            return Err(refused(&format!("The form has more than {MAX_PARTS} parts.")));
        }
        match field.name() {
            Some("file") if file.is_none() => {
                let (name, content_type) = describe(&field)?;
                check_kind(&name, content_type.as_deref())?;
                let id = *begun.insert(uploads::begin(&app.db).await?);
                let mut receiving = Receiving::begin(&app.blobs, id).await?;
                let length = store(&mut field, &is_over, &mut receiving, &mut taken, &mut room).await?;
                if length == 0 {
                    return Err(refused(EMPTY));
                }
                file = Some((id, receiving.end().await?, name, content_type));
            }
            Some("options") if options.is_none() => {
                options = Some(text(&mut field, &is_over, &mut taken, &mut room).await?);
            }
            _ => {
                return Err(refused("The form has a part that is neither 'file' nor 'options', or one of them twice."));
            }
        }
    }
    let (id, blob, name, content_type) = file.ok_or_else(missing)?;
    let options = options.unwrap_or_else(|| BytesMut::from("{}"));
    if options.trim_ascii_start().first() != Some(&b'{')
        && serde_json::from_slice::<serde_json::Value>(&options).is_ok()
    {
        return Err(refused("The 'options' field must parse to a JSON object."));
    }
    Ok(Form { id, blob, name, content_type, options })
}

/// How the request says that its body is to be read.
pub fn has_type(request: &HttpRequest, kind: &str) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
}

/// The next part of a form, or the next bytes of a part. Whatever the library would still wait for, nothing comes once the
/// body `is_over`: it waits for what follows a line's end.
async fn next<T>(
    stream: &mut (impl Stream<Item = Result<T, MultipartError>> + Unpin),
    is_over: &Cell<bool>,
) -> ApiResult<Option<T>> {
    let mut next = pin!(stream.next());
    let next = std::future::poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Pending if is_over.get() => Poll::Ready(Some(Err(MultipartError::Incomplete))),
        polled => polled,
    });
    let next = tokio::time::timeout(SILENCE, next).await;
    let next = next.map_err(|_| refused("Nothing has come of the form for a minute."))?;
    next.transpose().map_err(|error| broken(&error))
}

/// A name in UTF-8 or Latin 1 goes before the one that clients without them are told.
fn file_name(field: &Field) -> Option<String> {
    let disposition = field.content_disposition()?;
    let extended = disposition.get_filename_ext().and_then(|name| match name.charset {
        Charset::Ext(ref charset) if charset.eq_ignore_ascii_case("utf-8") => {
            String::from_utf8(name.value.clone()).ok()
        }
        Charset::Iso_8859_1 => Some(name.value.iter().copied().map(char::from).collect()),
        _ => None,
    });
    extended.as_deref().and_then(clean_name).or_else(|| disposition.get_filename().and_then(clean_name))
}

fn describe(field: &Field) -> ApiResult<(String, Option<String>)> {
    let name = file_name(field).ok_or_else(|| refused("The part 'file' has no filename."))?;
    Ok((name, field.content_type().map(|kind| kind.essence_str().to_ascii_lowercase())))
}

/// Stores the bytes of a part. Returns how many there were.
async fn store(
    field: &mut Field,
    is_over: &Cell<bool>,
    receiving: &mut Receiving,
    taken: &mut usize,
    room: &mut Room,
) -> ApiResult<usize> {
    let mut length = 0;
    while let Some(chunk) = next(field, is_over).await? {
        length += chunk.len();
        if length > MAX_BYTES {
            return Err(refused(TOO_LARGE));
        }
        *taken += chunk.len();
        room.reach(*taken)?;
        receiving.push(&chunk).await?;
    }
    Ok(length)
}

/// The options.
async fn text(field: &mut Field, is_over: &Cell<bool>, taken: &mut usize, room: &mut Room) -> ApiResult<BytesMut> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = next(field, is_over).await? {
        if bytes.len() + chunk.len() > MAX_OPTIONS {
            return Err(refused("The 'options' field is longer than 1 MB."));
        }
        *taken += chunk.len();
        room.reach(*taken)?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

pub fn refused(text: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, text)
}

pub fn missing() -> ApiError {
    refused(MISSING)
}

fn broken(error: &dyn std::fmt::Display) -> ApiError {
    refused(&format!("The form cannot be read: {error}."))
}
