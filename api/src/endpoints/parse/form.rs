//! The parts of a request that sends a file, in whichever order they come.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_TYPE, Charset};
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::{Stream, StreamExt as _, stream};
use serde::de::IgnoredAny;
use weir_shared::domain::upload::{MAX_BYTES, TOO_LARGE, clean_name};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::JobId;
use weir_shared::store::contents::uploads::{self, Receiving};

use super::formats::check_kind;
use super::in_time;
use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::http::arriving::{self, Arriving, Interrupted};
use crate::http::bodies::Room;
use crate::http::extract;

/// Longest `options`, bytes.
const MAX_OPTIONS: usize = 1 << 20;
/// Most parts.
const MAX_PARTS: usize = 16;
/// Most bytes beside what the parts hold: their heads, what stands between them and before the first. The library keeps what
/// it looks for the end of, and this is far more than comes at once.
const MAX_BETWEEN: usize = 1 << 20;
const BETWEEN: &str = "The form has too much beside what its parts hold: 1 MiB of heads and boundaries is taken.";
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

/// How far the body has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Open,
    Over,
    /// It is given up.
    Late,
    /// More than [`MAX_BETWEEN`] of it are in no part.
    Between,
}

/// A body on its way, as both ends of the library see it.
struct Coming {
    body: Cell<Body>,
    /// Bytes that have come, and those of them that parts hold.
    come: Cell<usize>,
    taken: Cell<usize>,
}

impl Coming {
    /// Notes what has come.
    fn come(&self, bytes: usize) -> Result<(), PayloadError> {
        self.come.set(self.come.get() + bytes);
        if self.come.get() - self.taken.get() <= MAX_BETWEEN {
            return Ok(());
        }
        self.body.set(Body::Between);
        Err(PayloadError::Overflow)
    }

    /// Notes what parts hold. Returns how much that is by now.
    fn take(&self, bytes: usize) -> usize {
        self.taken.set(self.taken.get() + bytes);
        self.taken.get()
    }
}

/// Reads the parts, and stores the file as it comes.
///
/// # Errors
/// 400 when there is no file, it is of no kind that is read, or there is too much; 408 when it does not come; 429 when the
/// key's bodies take up too much room. Nothing is stored then.
pub async fn read(app: &App, caller: &Caller, request: &HttpRequest, payload: Payload) -> ApiResult<Form> {
    extract::refuse_compressed(request)?;
    let mut begun = None;
    let form = in_time(parts(app, caller, request, payload, &mut begun)).await;
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
    let body = Rc::new(Coming { body: Cell::new(Body::Open), come: Cell::new(0), taken: Cell::new(0) });
    let mut form = Multipart::new(request.headers(), coming(Arriving::new(request, payload), Rc::clone(&body)));
    let (mut file, mut options) = (None, None);
    let mut parts = 0;
    while let Some(mut field) = next(&mut form, &body).await? {
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
                let length = store(&mut field, &body, &mut receiving, &mut room).await?;
                if length == 0 {
                    return Err(refused(EMPTY));
                }
                file = Some((id, receiving.end().await?, name, content_type));
            }
            Some("options") if options.is_none() => {
                options = Some(text(&mut field, &body, &mut room).await?);
            }
            _ => {
                return Err(refused("The form has a part that is neither 'file' nor 'options', or one of them twice."));
            }
        }
    }
    let (id, blob, name, content_type) = file.ok_or_else(missing)?;
    let options = options.unwrap_or_else(|| BytesMut::from("{}"));
    if options.trim_ascii_start().first() != Some(&b'{') && serde_json::from_slice::<IgnoredAny>(&options).is_ok() {
        return Err(refused("The 'options' field must parse to a JSON object."));
    }
    Ok(Form { id, blob, name, content_type, options })
}

/// What comes of a body, for the library to read. Why it ends is noted in `body`.
fn coming(arriving: Arriving, body: Rc<Coming>) -> impl Stream<Item = Result<Bytes, PayloadError>> {
    let parts = stream::unfold((arriving, body), |(mut arriving, body)| async move {
        let part = match arriving.next().await {
            Ok(Some(part)) => body.come(part.len()).map(|()| part),
            Ok(None) => {
                body.body.set(Body::Over);
                return None;
            }
            Err(Interrupted::Broken(error)) => Err(error),
            Err(Interrupted::Late) => {
                body.body.set(Body::Late);
                Err(PayloadError::Incomplete(None))
            }
        };
        Some((part, (arriving, body)))
    });
    // The library asks on after the end.
    parts.fuse()
}

/// How the request says that its body is to be read.
pub fn has_type(request: &HttpRequest, kind: &str) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
}

/// The next part of a form, or the next bytes of a part. Whatever the library would still wait for, nothing comes once the
/// body is over: it waits for what follows a line's end.
async fn next<T>(
    stream: &mut (impl Stream<Item = Result<T, MultipartError>> + Unpin),
    Coming { body, .. }: &Coming,
) -> ApiResult<Option<T>> {
    let mut next = pin!(stream.next());
    let next = std::future::poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Pending if body.get() != Body::Open => Poll::Ready(Some(Err(MultipartError::Incomplete))),
        polled => polled,
    });
    next.await.transpose().map_err(|error| match body.get() {
        Body::Late => arriving::late(),
        Body::Between => refused(BETWEEN),
        Body::Open | Body::Over => broken(&error),
    })
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
async fn store(field: &mut Field, body: &Coming, receiving: &mut Receiving, room: &mut Room) -> ApiResult<usize> {
    let mut length = 0;
    while let Some(chunk) = next(field, body).await? {
        length += chunk.len();
        if length > MAX_BYTES {
            return Err(refused(TOO_LARGE));
        }
        room.reach(body.take(chunk.len()))?;
        receiving.push(&chunk).await?;
    }
    Ok(length)
}

/// The options.
async fn text(field: &mut Field, body: &Coming, room: &mut Room) -> ApiResult<BytesMut> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = next(field, body).await? {
        if bytes.len() + chunk.len() > MAX_OPTIONS {
            return Err(refused("The 'options' field is longer than 1 MB."));
        }
        room.reach(body.take(chunk.len()))?;
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
