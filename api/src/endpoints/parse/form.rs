//! The parts of a request that sends a file, in whichever order they come.

use actix_multipart::{Field, Multipart};
use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::TryStreamExt as _;
use weir_shared::domain::upload::{MAX_BYTES, clean_name};
use weir_shared::error_code::ErrorCode;

use crate::app::App;
use crate::auth::Caller;
use crate::bodies::Room;
use crate::error::{ApiError, ApiResult};

/// Longest `options`, bytes.
const MAX_OPTIONS: usize = 1 << 20;
/// Most parts.
const MAX_PARTS: usize = 16;

/// What a request sends.
pub struct Form {
    pub file: Vec<u8>,
    /// Without folders.
    pub name: String,
    pub content_type: Option<String>,
    /// A JSON text; `{}` where there is none.
    pub options: BytesMut,
}

/// Reads the parts. The room is to be held as long as the file is.
///
/// # Errors
/// 400 when there is no file, or too much; 429 when the key's bodies take up too much room.
pub async fn read(app: &App, caller: &Caller, request: &HttpRequest, payload: Payload) -> ApiResult<(Form, Room)> {
    if !is_form(request) {
        return Err(missing());
    }
    let mut room = app.bodies.room(caller.key);
    let mut form = Multipart::new(request.headers(), payload);
    let (mut file, mut options, mut taken) = (None, None, 0);
    let mut parts = 0;
    while let Some(mut field) = form.try_next().await.map_err(|error| broken(&error))? {
        parts += 1;
        if parts > MAX_PARTS {
            return Err(refused(&format!("The form has more than {MAX_PARTS} parts.")));
        }
        match field.name() {
            Some("file") if file.is_none() => {
                let described = describe(&field)?;
                let bytes = bytes(&mut field, MAX_BYTES, &mut taken, &mut room).await?;
                let bytes = bytes.ok_or_else(|| refused("Uploaded file exceeds maximum size of 50MB."))?;
                file = Some((bytes, described));
            }
            Some("options") if options.is_none() => {
                let bytes = bytes(&mut field, MAX_OPTIONS, &mut taken, &mut room).await?;
                options = Some(bytes.ok_or_else(|| refused("The 'options' field is longer than 1 MB."))?);
            }
            _ => {
                return Err(refused("The form has a part that is neither 'file' nor 'options', or one of them twice."));
            }
        }
    }
    let (file, (name, content_type)) = file.ok_or_else(missing)?;
    if file.is_empty() {
        return Err(refused("The uploaded file is empty."));
    }
    let options = options.map_or_else(|| BytesMut::from("{}"), |bytes| BytesMut::from(bytes.as_slice()));
    if options.trim_ascii_start().first() != Some(&b'{')
        && serde_json::from_slice::<serde_json::Value>(&options).is_ok()
    {
        return Err(refused("The 'options' field must parse to a JSON object."));
    }
    Ok((Form { file, name, content_type, options }, room))
}

fn is_form(request: &HttpRequest) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn describe(field: &Field) -> ApiResult<(String, Option<String>)> {
    let name = field.content_disposition().and_then(|disposition| disposition.get_filename());
    let name = name.and_then(clean_name).ok_or_else(|| refused("The part 'file' has no filename."))?;
    Ok((name, field.content_type().map(|kind| kind.essence_str().to_ascii_lowercase())))
}

/// The bytes of a part; `None`: there are more than `most`.
async fn bytes(field: &mut Field, most: usize, taken: &mut usize, room: &mut Room) -> ApiResult<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.try_next().await.map_err(|error| broken(&error))? {
        let chunk: Bytes = chunk;
        if bytes.len() + chunk.len() > most {
            return Ok(None);
        }
        *taken += chunk.len();
        room.reach(*taken)?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

fn refused(text: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, text)
}

fn missing() -> ApiError {
    refused("Missing file upload. Send multipart/form-data with the file in the part 'file'.")
}

fn broken(error: &dyn std::fmt::Display) -> ApiError {
    refused(&format!("The form cannot be read: {error}."))
}
