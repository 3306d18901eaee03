//! The console's files, in the binary: the one page, and everything that it takes from an address that names their
//! digest, so that browsers keep them for good and a new release is seen at once.
//!
//! They are compressed when they are asked for first, once in a process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use actix_web::http::header;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::Embed;
use sha2::{Digest, Sha256};

#[derive(Embed)]
#[folder = "console/"]
struct Files;

/// The page that every address of the console shows.
const PAGE: &str = "index.html";
/// What stands in the page for the address of its files.
const PLACE: &str = "{{assets}}";
/// Where the files are.
const BASE: &str = "/console/assets";

/// What the page may do: everything comes from here, nothing is written into it, nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; frame-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A file of its own, where somebody opens it: a picture may have styles in it.
const FILE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";

/// Kinds of files, by the end of their names.
const KINDS: &[(&str, &str)] = &[
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
    ("txt", "text/plain; charset=utf-8"),
];

/// One file.
struct Asset {
    kind: &'static str,
    body: Cow<'static, [u8]>,
    etag: String,
    /// Compressed, if that is worth it.
    gzip: OnceLock<Option<Vec<u8>>>,
}

/// All of them.
struct Assets {
    page: String,
    digest: String,
    files: BTreeMap<String, Asset>,
}

/// The files. A build without the feature `console-embedded` reads them from the disk each time, for who writes them.
fn assets() -> Arc<Assets> {
    static ASSETS: OnceLock<Arc<Assets>> = OnceLock::new();
    if cfg!(feature = "console-embedded") {
        Arc::clone(ASSETS.get_or_init(|| Arc::new(Assets::load())))
    } else {
        Arc::new(Assets::load())
    }
}

impl Assets {
    fn load() -> Self {
        let mut files = BTreeMap::new();
        let mut page = String::new();
        for name in Files::iter() {
            let Some(file) = Files::get(&name) else { continue };
            if name == PAGE {
                page = String::from_utf8_lossy(&file.data).into_owned();
                continue;
            }
            let end = name.rsplit('.').next().unwrap_or_default();
            let Some((_, kind)) = KINDS.iter().find(|(ending, _)| *ending == end) else { continue };
            let etag = format!("\"{}\"", &hex::encode(Sha256::digest(&file.data))[..32]);
            files.insert(name.into_owned(), Asset { kind, body: file.data, etag, gzip: OnceLock::new() });
        }
        let mut all = Sha256::new();
        for (name, asset) in &files {
            all.update(name.as_bytes());
            all.update(asset.etag.as_bytes());
        }
        let digest = hex::encode(all.finalize())[..16].to_owned();
        Self { page: page.replace(PLACE, &format!("{BASE}/{digest}")), digest, files }
    }
}

impl Asset {
    /// The body as it is sent to who takes these codings, and the coding's name.
    fn coded(&self, taken: &str) -> (&[u8], Option<&'static str>) {
        if names(taken, "gzip")
            && let Some(body) = self.gzip.get_or_init(|| worth_it(&self.body, gzip(&self.body)))
        {
            return (body, Some("gzip"));
        }
        (&self.body, None)
    }
}

/// What was made smaller by a tenth at least.
fn worth_it(plain: &[u8], made: std::io::Result<Vec<u8>>) -> Option<Vec<u8>> {
    made.ok().filter(|made| made.len() < plain.len() - plain.len() / 10)
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    writer.write_all(body)?;
    writer.finish()
}

/// Whether a header such as `Accept-Encoding` or `Accept` names this one, and not with a weight of 0.
pub fn names(header: &str, one: &str) -> bool {
    header.split(',').any(|part| {
        let mut words = part.split(';').map(str::trim);
        let is_named = words.next().is_some_and(|name| name.eq_ignore_ascii_case(one));
        is_named && !words.any(|word| matches!(word.replace(' ', "").as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// `GET /console`, and every address below it that nothing else answers: the page, which reads its address by itself.
pub async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .body(assets().page.clone())
}

/// `GET /console/assets/{digest}/{path}`. A tab that is older than this process gets today's file, which it does not keep.
pub async fn file(request: HttpRequest, path: Path<(String, String)>) -> HttpResponse {
    let (digest, name) = path.into_inner();
    let assets = assets();
    let Some(asset) = assets.files.get(&name) else { return HttpResponse::NotFound().finish() };
    let text = |name: header::HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is_current = digest == assets.digest;
    let kept = if is_current { "public, max-age=31536000, immutable" } else { "no-cache" };
    let is_known = text(header::IF_NONE_MATCH).split(',').any(|tag| tag.trim().trim_start_matches("W/") == asset.etag);
    let mut answer = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer
        .insert_header((header::CACHE_CONTROL, kept))
        .insert_header((header::CONTENT_SECURITY_POLICY, FILE_POLICY))
        .insert_header((header::ETAG, asset.etag.clone()))
        .insert_header((header::VARY, "Accept-Encoding"));
    if is_known {
        return answer.finish();
    }
    let (body, coding) = asset.coded(text(header::ACCEPT_ENCODING));
    if let Some(coding) = coding {
        answer.insert_header((header::CONTENT_ENCODING, coding));
    }
    answer.content_type(asset.kind).body(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_taken_when_it_is_named_and_not_refused() {
        assert!(names("gzip, deflate, br", "br") && names("br;q=0.5", "br") && names("GZIP", "gzip"));
        assert!(
            !names("gzip", "br") && !names("br;q=0, gzip", "br") && !names("br; q=0.0", "br") && !names("", "gzip")
        );
        assert!(names("text/html,application/xhtml+xml,*/*;q=0.8", "text/html") && !names("*/*", "text/html"));
    }

    #[test]
    fn what_grows_when_it_is_compressed_is_sent_as_it_is() {
        let text = "console ".repeat(200).into_bytes();
        assert!(worth_it(&text, gzip(&text)).is_some());
        assert!(worth_it(b"x", gzip(b"x")).is_none() && worth_it(b"", gzip(b"")).is_none());
    }

    #[test]
    fn the_page_names_the_files_by_their_digest_and_there_is_one() {
        let assets = Assets::load();
        assert!(assets.page.contains("<html") && !assets.page.contains(PLACE));
        assert_eq!(assets.digest.len(), 16);
        assert_eq!(assets.digest, Assets::load().digest);
        assert!(!assets.files.contains_key(PAGE));
    }
}
