//! A page that is text or data and no HTML: JSON, tables, feeds, XML, plain text.
//!
//! Markdown is made of what is a document (feeds) or a table; the rest is shown as it is, in a fence where markdown would
//! read something into it. `rawHtml` is always the file's own text.

use serde_json::{Map, Value, json};
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Format, ScrapeOptions};

use super::attributes::attribute_values;
use super::markdown_html::html;
use super::media;
use crate::extract::feed::{self, Feed};
use crate::extract::media::Offers;
use crate::extract::{self, ExtractOptions, PageInput};
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::kind::BodyKind;
use crate::page::task::PageTask;

/// Most rows and columns of a table.
const MAX_ROWS: usize = 50_000;
const MAX_COLUMNS: usize = 500;
/// Most bytes of a table's markdown.
const MAX_TABLE: usize = 32 << 20;

/// What a file says, before it is known which formats are wanted.
#[derive(Default)]
struct Said {
    markdown: String,
    links: Vec<String>,
    metadata: Map<String, Value>,
    warning: Option<&'static str>,
}

/// What the formats that look for elements of a page find in a file.
///
/// # Errors
/// When a sound or a film is asked for: a file offers none.
pub fn without_elements(options: &ScrapeOptions) -> Result<Document, PageError> {
    media::taken(options, Offers::default())?;
    Ok(Document {
        images: options.wants(&Format::Images).then(Vec::new),
        attributes: options.attributes().map(|wanted| attribute_values(wanted, vec![Vec::new(); wanted.len()])),
        ..Document::default()
    })
}

/// Makes the document of a file of text.
pub fn document(task: &PageTask, mut response: SiteResponse, text: &str, kind: BodyKind) -> Result<Made, PageError> {
    let Said { markdown, links, metadata, warning } = match kind {
        BodyKind::Json => fenced("json", text),
        BodyKind::Table => table(text).unwrap_or_else(|| plain(text)),
        BodyKind::Xml => match feed::read(text, &response.url) {
            Some(feed) => of_feed(feed, &response.url),
            None => fenced("xml", text),
        },
        _ => plain(text),
    };
    response.warnings.extend(warning.map(str::to_owned));
    if text.trim().is_empty() {
        response.warnings.push("The file is empty.".to_owned());
    }
    let options = task.options();
    let as_html = options.wants(&Format::Html).then(|| match kind {
        BodyKind::Text | BodyKind::Json => preformatted(text),
        _ => html(&markdown, metadata.get("title").and_then(Value::as_str)),
    });
    let harvest = task.harvest(&response.url, links.clone());
    let document = Document {
        html: as_html,
        raw_html: options.wants(&Format::RawHtml).then(|| text.to_owned()),
        links: options.wants(&Format::Links).then_some(links),
        markdown: task.wants_markdown().then_some(markdown),
        metadata,
        ..without_elements(options)?
    };
    Draft { harvest, ..Draft::new(response, document, options) }.advance(task)
}

fn plain(text: &str) -> Said {
    Said { markdown: text.to_owned(), ..Said::default() }
}

/// The text in a fence that is longer than any in it.
fn fenced(language: &str, text: &str) -> Said {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    Said { markdown: format!("{fence}{language}\n{}\n{fence}\n", text.trim_end()), ..Said::default() }
}

fn preformatted(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"></head><body>\n<pre>{text}</pre>\n</body></html>\n")
}

/// A table in markdown; `None` when the text has but one column.
///
/// A file that is uploaded is read by `weir_office`, in a process that can be killed: it takes all bytes for a sheet whose empty
/// columns are left out, guesses their charset, and refuses what is too wide. What a site sends is decoded by its head
/// already, may be a text of one column after all, and is cut instead of refused; so it needs no process, and what separates
/// its values is the one rule that both share.
fn table(text: &str) -> Option<Said> {
    let (separator, text) = weir_office::separated(text);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    let mut markdown = String::with_capacity(text.len() * 3 / 2);
    let mut columns = 0;
    let mut warning = None;
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    // The text is UTF-8, and a flexible reader finds no other fault.
    while reader.read_record(&mut record).unwrap_or(false) {
        if rows == 0 {
            columns = record.len().min(MAX_COLUMNS);
            if columns < 2 {
                return None;
            }
        }
        if rows >= MAX_ROWS || markdown.len() > MAX_TABLE {
            warning = Some("The table was cut: it has more rows than are shown.");
            break;
        }
        if record.len() > columns && warning.is_none() {
            warning = Some("Some rows of the table have more cells than the first one; those cells are left out.");
        }
        markdown.push('|');
        for cell in (0..columns).map(|n| record.get(n).unwrap_or("")) {
            markdown.push(' ');
            push_cell(&mut markdown, cell.trim());
            markdown.push_str(" |");
        }
        markdown.push('\n');
        if rows == 0 {
            markdown.push_str(&format!("|{}\n", " --- |".repeat(columns)));
        }
        rows += 1;
    }
    (rows > 0).then(|| Said { markdown, warning, ..Said::default() })
}

fn push_cell(out: &mut String, cell: &str) {
    for c in cell.chars() {
        match c {
            '|' => out.push_str("\\|"),
            '\n' => out.push_str("<br>"),
            '\r' => {}
            c => out.push(c),
        }
    }
}

fn of_feed(feed: Feed, base: &url::Url) -> Said {
    let mut said = Said::default();
    if feed.is_cut {
        said.warning = Some("The feed is damaged or too long; only a part of it was read.");
    }
    for (key, value) in [("title", &feed.title), ("description", &feed.description), ("language", &feed.language)] {
        if let Some(value) = value {
            let text = value.split_whitespace().collect::<Vec<_>>().join(" ");
            said.metadata.insert(key.to_owned(), json!(text.get(..text.floor_char_boundary(4096)).unwrap_or("")));
        }
    }
    let out = &mut said.markdown;
    if let Some(title) = &feed.title {
        out.push_str(&format!("# {}\n\n", line(title)));
    }
    if let Some(description) = &feed.description {
        push_block(out, &markdown_of(description, base));
    }
    let mut seen = std::collections::HashSet::new();
    let mut push_link = |link: &str| {
        if seen.insert(link.to_owned()) {
            said.links.push(link.to_owned());
        }
    };
    feed.link.iter().for_each(|link| push_link(link));
    for entry in &feed.entries {
        let title = entry.title.as_deref().map(line).or_else(|| entry.link.as_deref().map(line)).unwrap_or_default();
        match &entry.link {
            Some(link) => {
                push_link(link);
                out.push_str(&format!("## [{title}](<{}>)\n\n", link.replace('>', "%3E")));
            }
            None => out.push_str(&format!("## {title}\n\n")),
        }
        let by: Vec<String> = [&entry.date, &entry.author].into_iter().flatten().map(|text| line(text)).collect();
        if !by.is_empty() {
            push_block(out, &by.join(", "));
        }
        if let Some(text) = &entry.text {
            push_block(out, &markdown_of(text, base));
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    said
}

/// Plain text on one line of markdown.
fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn push_block(out: &mut String, block: &str) {
    let block = block.trim();
    if !block.is_empty() {
        out.push_str(block);
        out.push_str("\n\n");
    }
}

/// A text of a feed, which may be HTML, as markdown.
fn markdown_of(text: &str, base: &url::Url) -> String {
    if !text.contains(['<', '&']) {
        return line(text);
    }
    let options = ExtractOptions { markdown: true, remove_base64_images: true, ..ExtractOptions::default() };
    extract::extract(&PageInput { url: base, html: text, rendered: false }, &options).markdown.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_with_their_own_delimiter() {
        let markdown = |text: &str| table(text).map(|said| said.markdown);
        assert_eq!(
            markdown("a,b\n1,\"x|y\nz\"\n2\n").unwrap(),
            "| a | b |\n| --- | --- |\n| 1 | x\\|y<br>z |\n| 2 |  |\n"
        );
        assert_eq!(markdown("a;b,c;d\n1;2;3").unwrap(), "| a | b,c | d |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n");
        assert!(
            markdown("a\tb\n1\t2\n").is_some() && markdown("one column\nonly\n").is_none() && markdown("").is_none()
        );
        assert_eq!(markdown("sep=;\na;b\n1;2\n").unwrap(), "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
        assert!(markdown("Name;Price, net\nA;1,50\n").unwrap().starts_with("| Name | Price, net |"));
        assert!(table("a,b\n1,2,3\n").unwrap().warning.is_some());
    }

    #[test]
    fn a_fence_is_longer_than_what_is_in_it() {
        assert_eq!(fenced("json", "{}\n").markdown, "```json\n{}\n```\n");
        assert!(fenced("xml", "<a>````</a>").markdown.starts_with("`````xml\n"));
    }

    #[test]
    fn a_feed_becomes_a_document_with_its_links() {
        let base = url::Url::parse("https://x.test/feed").unwrap();
        let text = "<rss><channel><title>T *x*</title><item><title>A</title><link>/a</link><pubDate>Mon</pubDate>\
                    <description>&lt;p&gt;Some &lt;b&gt;bold&lt;/b&gt; text&lt;/p&gt;</description></item></channel></rss>";
        let said = of_feed(feed::read(text, &base).unwrap(), &base);
        let wanted = "# T \\*x\\*\n\n## [A](<https://x.test/a>)\n\nMon\n\nSome **bold** text\n";
        assert_eq!((said.markdown.as_str(), said.links.as_slice()), (wanted, &["https://x.test/a".to_owned()][..]));
        assert_eq!(said.metadata["title"], "T *x*");
    }
}
