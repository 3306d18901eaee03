//! EPUB books: the chapters of the spine in its order, each with the HTML it has. Pictures, styles, scripts and the
//! navigation are left out; links between chapters have nowhere to lead and are their text.

use std::collections::{HashMap, HashSet};

use crate::archive::Archive;
use crate::html::{document, outside};
use crate::package::join;
use crate::text::decode_xml;
use crate::xhtml::with_end_tags;
use crate::xml::{Element, Tree};
use crate::{ConvertError, Converted, Limits};

/// Makes HTML of a book.
///
/// # Errors
/// As [`ConvertError`] says.
pub fn convert(bytes: &[u8], limits: &Limits) -> Result<Converted, ConvertError> {
    let mut archive = Archive::open(bytes, limits)?;
    let container = decode_xml(archive.need("META-INF/container.xml")?);
    let container = Tree::read(&container, "META-INF/container.xml", limits)?;
    let path = container.root().find("rootfile").and_then(|file| file.attr("full-path"));
    let path = path.ok_or_else(|| ConvertError::broken("it does not say where its list of chapters is"))?.into_owned();
    let source = decode_xml(archive.need(&path)?);
    let package = Tree::read(&source, &path, limits)?;
    let root = package.root();
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let locked = encrypted(&mut archive, limits)?;
    let mut parts: HashMap<String, (String, String)> = HashMap::new();
    for item in root.child("manifest").into_iter().flat_map(Element::children) {
        if let (Some(id), Some(href)) = (item.attr("id"), item.attr("href")) {
            let kind = item.attr("media-type").unwrap_or_default().into_owned();
            parts.insert(id.into_owned(), (join(folder, &decoded(&href)), kind));
        }
    }
    let mut body = String::new();
    let mut chapters = 0;
    let mut seen = HashSet::new();
    for reference in root.child("spine").into_iter().flat_map(Element::children) {
        let Some((name, kind)) = reference.attr("idref").and_then(|id| parts.get(&*id)) else { continue };
        if !kind.contains("html") || !seen.insert(name.clone()) {
            continue;
        }
        if locked.contains(name) {
            return Err(ConvertError::Encrypted);
        }
        let Some(source) = archive.read(name)?.map(decode_xml) else { continue };
        chapters += 1;
        chapter(&with_end_tags(&source), &mut body);
        if body.len() > limits.output {
            return Err(ConvertError::too_large("bytes of text", limits.output));
        }
    }
    if chapters == 0 {
        return Err(ConvertError::broken("it has no chapters"));
    }
    let said = |name: &str| {
        let text = root.child("metadata")?.find(name)?.text();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    let modified = root.child("metadata").and_then(|metadata| {
        let is_modified = |meta: &Element<'_>| meta.attr("property").is_some_and(|p| p == "dcterms:modified");
        metadata.children().find(is_modified).map(Element::text)
    });
    let title = said("title");
    Ok(Converted {
        html: document(title.as_deref(), &body),
        title,
        author: said("creator"),
        created: said("date"),
        modified,
        pages: u32::try_from(chapters).ok(),
        ..Converted::default()
    })
}

/// The parts that are encrypted. Fonts often are, which matters to nobody here.
fn encrypted(archive: &mut Archive<'_>, limits: &Limits) -> Result<HashSet<String>, ConvertError> {
    let Some(source) = archive.read("META-INF/encryption.xml")?.map(decode_xml) else { return Ok(HashSet::new()) };
    let tree = Tree::read(&source, "META-INF/encryption.xml", limits)?;
    let references = tree.root().descendants().filter(|element| element.name() == "CipherReference");
    Ok(references.filter_map(|reference| reference.attr("URI")).map(|name| join("", &decoded(&name))).collect())
}

/// `%20` and the like as the characters they stand for.
fn decoded(reference: &str) -> String {
    let mut out = Vec::with_capacity(reference.len());
    let mut bytes = reference.bytes();
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let code = (byte == b'%')
            .then(|| Some((char::from(ahead.next()?).to_digit(16)?, char::from(ahead.next()?).to_digit(16)?)))
            .flatten()
            .and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match code {
            Some(code) => {
                out.push(code);
                bytes = ahead;
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Adds the body of a chapter as it stands, without what only a reader within the book can use. Chapters need not be
/// well-formed, as few readers insist on it; so tags are looked at one by one.
fn chapter(source: &str, out: &mut String) {
    const DROPPED: [&str; 8] = ["script", "style", "svg", "head", "nav", "iframe", "audio", "video"];
    out.push_str("<section>\n");
    let mut rest = source;
    while let Some(at) = rest.find('<') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let tag = rest.get(at..).unwrap_or_default();
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let Some(end) = tag.find('>') else {
            rest = "";
            break;
        };
        let inside = tag.get(1..end).unwrap_or_default();
        rest = tag.get(end + 1..).unwrap_or_default();
        let is_end = inside.starts_with('/');
        let name = inside.trim_start_matches('/').split(|c: char| c.is_whitespace() || c == '/').next();
        let name = name.unwrap_or_default();
        let lower = name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
        match lower.as_str() {
            "" | "html" | "body" | "img" | "image" | "link" | "meta" | "base" => {}
            dropped if DROPPED.contains(&dropped) => {
                if !is_end {
                    let close = format!("</{name}");
                    let after = rest.find(&close).map_or("", |at| rest.get(at + close.len()..).unwrap_or_default());
                    rest = after.split_once('>').map_or("", |(_, after)| after);
                }
            }
            _ if inside.starts_with(['!', '?']) => {}
            "a" if !is_end => match href(inside).and_then(outside) {
                Some(target) => out.push_str(&format!("<a href=\"{}\">", target.replace('"', "%22"))),
                None => out.push_str("<a>"),
            },
            _ => {
                out.push('<');
                out.push_str(inside);
                out.push('>');
            }
        }
    }
    out.push_str(rest);
    out.push_str("\n</section>\n");
}

/// Where a tag leads to, as it stands.
fn href(inside: &str) -> Option<&str> {
    let after = inside.split_once("href")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    after.get(1..)?.split(quote).next()
}
