//! Files of the caller's, for `firecrawl_parse`. A server that the caller has started reads them itself. Any other one has
//! nothing to do with paths: it answers how the file is uploaded, as the official server does where it is hosted, and what
//! to call then.

use std::path::Path;

use actix_web::web::Bytes;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt as _;
use weir_office::Format;
use weir_shared::domain::upload::{MAX_BYTES, TOO_LARGE, clean_name};

use super::arguments;
use super::tools::PARSE;
use super::weir::{Answer, File, Weir};

/// The route that gives out addresses for files.
pub const UPLOAD_URL: &str = "/v2/parse/upload-url";
/// Where neither the caller nor the file's name says what it is.
const ANY: &str = "application/octet-stream";

/// A file that a call names by its path.
#[derive(Debug)]
pub struct Named {
    path: String,
    /// Without folders.
    name: String,
    /// As the caller says it, or the name does.
    content_type: Option<String>,
    /// As the caller says it.
    size: Option<Value>,
}

impl Named {
    /// Takes what a call says of a file out of its arguments; `None`: it names none.
    ///
    /// # Errors
    /// With words for the caller when the path has no file name, or the type is none.
    pub fn take(given: &mut Map<String, Value>) -> Result<Option<Self>, String> {
        let text = |value: Option<Value>| {
            value.and_then(|value| value.as_str().map(str::to_owned)).filter(|text| !text.trim().is_empty())
        };
        let path = text(given.shift_remove("filePath"));
        let content_type = text(given.shift_remove("contentType"));
        let size = given.shift_remove("declaredSizeBytes").filter(|size| !size.is_null());
        let Some(path) = path else { return Ok(None) };
        let name = clean_name(&path).ok_or_else(|| format!("{path} has no file name."))?;
        if content_type.as_deref().is_some_and(|kind| !kind.bytes().all(|b| b.is_ascii_graphic() || b == b' ')) {
            return Err("contentType must be a media type such as application/pdf.".to_owned());
        }
        let by_name = || Format::of_name(&name)?.info().mime_types.first().map(|kind| (*kind).to_owned());
        let content_type = content_type.or_else(by_name);
        Ok(Some(Self { path, name, content_type, size }))
    }

    /// Reads the file and has it parsed.
    ///
    /// # Errors
    /// With words for the caller when it cannot be read, or there is no answer.
    pub async fn send(self, weir: &Weir, route: &str, options: &Value) -> Result<Answer, String> {
        let bytes = read(Path::new(&self.path)).await.map_err(|why| format!("{} cannot be read: {why}", self.path))?;
        let content_type = self.content_type.unwrap_or_else(|| ANY.to_owned());
        weir.send_file(route, File { name: self.name, content_type, bytes }, options).await
    }

    /// What [`UPLOAD_URL`] is told of it.
    pub fn announcement(&self) -> Value {
        let mut body = json!({"filename": self.name, "origin": "mcp"});
        if let Some(kind) = &self.content_type {
            body["contentType"] = json!(kind);
        }
        if let Some(size) = &self.size {
            body["declaredSizeBytes"] = size.clone();
        }
        body
    }

    /// How the file is sent to the address that was given out for it, and what to call then, with these options.
    pub fn instructions(&self, address: &Value, options: Map<String, Value>) -> Value {
        let mut arguments = Map::new();
        arguments.insert("uploadRef".to_owned(), address["uploadRef"].clone());
        arguments.extend(options.into_iter().filter(|(_, value)| !arguments::is_empty(value)));
        let kind = self.content_type.as_deref().unwrap_or(ANY);
        let headers = match &address["headers"] {
            Value::Object(headers) if !headers.is_empty() => headers.clone(),
            _ => Map::from_iter([("Content-Type".to_owned(), json!(kind))]),
        };
        json!({
            "success": true,
            "mode": "hosted-upload-ref-awaiting-upload",
            "message": "This server cannot read the user's files. Run the command where the file is, then make the next call. \
                The command holds no key.",
            "upload": {
                "command": self.command(&headers, address["uploadUrl"].as_str().unwrap_or_default()),
                "method": address["method"],
                "headers": headers,
                "uploadUrl": address["uploadUrl"],
                "uploadRef": address["uploadRef"],
                "expiresAt": address["expiresAt"],
                "maxSizeBytes": address["maxSizeBytes"],
            },
            "nextToolCall": {"name": PARSE, "arguments": arguments},
            "notes": [
                "Run the command on the machine that has the file.",
                "Make the next call when the command has answered success.",
            ],
        })
    }

    fn command(&self, headers: &Map<String, Value>, url: &str) -> String {
        let mut words = vec!["curl".to_owned(), "-X".to_owned(), quoted("PUT")];
        for (name, value) in headers {
            words.extend(["-H".to_owned(), quoted(&format!("{name}: {}", value.as_str().unwrap_or_default()))]);
        }
        words.extend(["--upload-file".to_owned(), quoted(&self.path), quoted(url)]);
        words.join(" ")
    }
}

/// One word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A file's bytes. Only a file: a pipe or a device may never end.
async fn read(path: &Path) -> Result<Bytes, String> {
    let told = |error: std::io::Error| error.to_string();
    if !tokio::fs::metadata(path).await.map_err(told)?.is_file() {
        return Err("it is not a file.".to_owned());
    }
    let file = tokio::fs::File::open(path).await.map_err(told)?;
    let found = file.metadata().await.map_err(told)?;
    let length = usize::try_from(found.len()).unwrap_or(usize::MAX);
    if !found.is_file() || length > MAX_BYTES {
        return Err(TOO_LARGE.to_owned());
    }
    let mut bytes = Vec::with_capacity(length);
    // It may have grown meanwhile.
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).await.map_err(told)?;
    if bytes.len() > MAX_BYTES { Err(TOO_LARGE.to_owned()) } else { Ok(bytes.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn take(given: Value) -> (Result<Option<Named>, String>, Value) {
        let mut given = given.as_object().unwrap().clone();
        let file = Named::take(&mut given);
        (file, Value::Object(given))
    }

    #[test]
    fn a_file_is_taken_out_of_the_arguments() {
        let given = json!({"filePath": "/home/me/a b.pdf", "contentType": "application/pdf", "declaredSizeBytes": 5,
            "formats": ["markdown"]});
        let (file, rest) = take(given);
        let file = file.unwrap().unwrap();
        assert_eq!(rest, json!({"formats": ["markdown"]}));
        let announced =
            json!({"filename": "a b.pdf", "contentType": "application/pdf", "declaredSizeBytes": 5, "origin": "mcp"});
        assert_eq!(file.announcement(), announced);
        let bare = take(json!({"filePath": "a.pdf"})).0.unwrap().unwrap();
        assert_eq!(bare.announcement()["contentType"], "application/pdf", "as its name says");
        assert!(take(json!({"filePath": " ", "uploadRef": "x"})).0.unwrap().is_none());
        assert!(take(json!({"filePath": "/"})).0.is_err());
        assert!(take(json!({"filePath": "a.pdf", "contentType": "a\r\nX: y"})).0.is_err());
    }

    #[test]
    fn a_shell_takes_the_command_word_by_word() {
        let (file, rest) = take(json!({"filePath": "it's $(here).pdf", "formats": ["links"], "includeTags": []}));
        let address = json!({"uploadUrl": "http://h/u?a=1&b='", "uploadRef": "r", "method": "PUT", "headers": {}});
        let told = file.unwrap().unwrap().instructions(&address, rest.as_object().unwrap().clone());
        let command = told["upload"]["command"].as_str().unwrap();
        let words =
            std::process::Command::new("sh").args(["-c", &format!("printf '%s\\n' {command}")]).output().unwrap();
        let words = String::from_utf8(words.stdout).unwrap();
        assert_eq!(
            words.lines().collect::<Vec<_>>(),
            [
                "curl",
                "-X",
                "PUT",
                "-H",
                "Content-Type: application/pdf",
                "--upload-file",
                "it's $(here).pdf",
                "http://h/u?a=1&b='"
            ]
        );
        let next = json!({"name": PARSE, "arguments": {"uploadRef": "r", "formats": ["links"]}});
        assert_eq!(told["nextToolCall"], next);
    }

    #[tokio::test]
    async fn only_files_within_the_bound_are_read() {
        let folder = std::env::temp_dir().join(format!("weir-files-{}", weir_shared::random::id()));
        std::fs::create_dir(&folder).unwrap();
        let (small, large) = (folder.join("small"), folder.join("large"));
        std::fs::write(&small, "text").unwrap();
        std::fs::File::create(&large).unwrap().set_len(MAX_BYTES as u64 + 1).unwrap();
        assert_eq!(read(&small).await.unwrap(), "text");
        assert_eq!(read(&large).await.unwrap_err(), TOO_LARGE);
        for none in [folder.as_path(), Path::new("/dev/zero"), &folder.join("missing")] {
            assert!(read(none).await.is_err(), "{}", none.display());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
