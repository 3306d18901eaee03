//! `weir-extract`: the extraction as a program. HTML in, JSON (or markdown alone) out.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use clap::Parser;
use serde_json::{Value, json};
use url::Url;
use weir_extract::template::{Blocks, Site};
use weir_extract::{AttributeSelector, ExtractOptions, PageInput, charset};

/// Turns an HTML page into markdown, links and metadata.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The page; absent or `-`: standard input.
    file: Option<PathBuf>,
    /// Address of the page, which relative addresses are relative to. Without it they are left out of lists of links
    /// and images.
    #[arg(long, default_value = "about:blank")]
    url: Url,
    /// The charset that the `Content-Type` header named, where it did.
    #[arg(long)]
    charset: Option<String>,
    /// The HTML is a browser's, with scripts run: `noscript` is then not part of the page.
    #[arg(long)]
    rendered: bool,
    /// Keep navigation, footers and the like, which are left out otherwise.
    #[arg(long)]
    full_page: bool,
    /// Keep only elements that match this CSS selector; may be given more than once.
    #[arg(long, value_name = "SELECTOR")]
    include: Vec<String>,
    /// Leave out elements that match this CSS selector; may be given more than once.
    #[arg(long, value_name = "SELECTOR")]
    exclude: Vec<String>,
    /// Read an attribute of the elements that a CSS selector chooses, as `SELECTOR@NAME`; may be given more than once.
    #[arg(long, value_name = "SELECTOR@NAME", value_parser = attribute)]
    attribute: Vec<AttributeSelector>,
    /// What is known of the pages of its site, from calls before: what most of them have is left out. The page is added to
    /// it, and the file is made where it is not there.
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Also write the cleaned HTML, and JSON-LD, microdata and OpenGraph as data.
    #[arg(long)]
    all: bool,
    /// Write the markdown alone instead of JSON.
    #[arg(long)]
    markdown: bool,
}

fn attribute(text: &str) -> Result<AttributeSelector, String> {
    let (selector, attribute) = text.rsplit_once('@').ok_or("expected SELECTOR@NAME")?;
    Ok(AttributeSelector { selector: selector.to_owned(), attribute: attribute.to_owned() })
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let bytes = read(&arguments)?;
    let html = charset::decode(&bytes, arguments.charset.as_deref());
    let output = run(&arguments, &html)?;
    std::io::stdout().write_all(output.as_bytes()).context("writing the result")
}

fn read(arguments: &Arguments) -> anyhow::Result<Vec<u8>> {
    match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            std::fs::read(path).with_context(|| format!("reading {}", path.display()))
        }
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).context("reading standard input")?;
            Ok(bytes)
        }
    }
}

/// What is known of a site.
fn site(path: &Path) -> anyhow::Result<Site> {
    match std::fs::read(path) {
        Ok(bytes) => {
            Site::from_bytes(&bytes).with_context(|| format!("{} is not what this program writes", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Site::default()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing else is here that would know the time")]
fn learn(path: &Path, mut site: Site, blocks: &Blocks) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    site.learn(blocks, now);
    std::fs::write(path, site.to_bytes()).with_context(|| format!("writing {}", path.display()))
}

fn run(arguments: &Arguments, html: &str) -> anyhow::Result<String> {
    let input = PageInput { url: &arguments.url, html, rendered: arguments.rendered };
    let site = arguments.site.as_deref().map(site).transpose()?;
    let options = ExtractOptions {
        markdown: true,
        html: arguments.all,
        links: true,
        images: true,
        attributes: arguments.attribute.clone(),
        media: arguments.all,
        structured: arguments.all,
        product: false,
        menu: false,
        only_main_content: !arguments.full_page,
        include_tags: arguments.include.clone(),
        exclude_tags: arguments.exclude.clone(),
        remove_base64_images: true,
        block_ads: true,
        blocks: site.is_some(),
        site: site.map(Arc::new),
    };
    let page = weir_extract::extract(&input, &options);
    if let (Some(path), Some(site), Some(blocks)) = (&arguments.site, options.site, &page.blocks) {
        learn(path, Arc::unwrap_or_clone(site), blocks)?;
    }
    if arguments.markdown {
        return Ok(page.markdown.unwrap_or_default());
    }
    let read = |(wanted, values): (&AttributeSelector, Vec<String>)| json!({"selector": wanted.selector, "attribute": wanted.attribute, "values": values});
    let fields = [
        ("markdown", json!(page.markdown)),
        ("html", json!(page.html)),
        ("links", json!(page.links)),
        ("images", json!(page.images)),
        ("attributes", arguments.attribute.iter().zip(page.attributes).map(read).collect()),
        ("audio", json!(page.media.audio)),
        ("video", json!(page.media.video)),
        ("metadata", Value::Object(page.metadata)),
        ("structured", json!(page.structured)),
        ("templateChars", json!((page.repeated > 0).then_some(page.repeated))),
        ("warning", json!(page.warning)),
    ];
    let is_said = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    let object: serde_json::Map<_, _> =
        fields.into_iter().filter(|(_, value)| is_said(value)).map(|(key, value)| (key.to_owned(), value)).collect();
    Ok(serde_json::to_string_pretty(&object)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html lang=en><title>News</title><nav><a href=/>Home</a></nav>\
         <main><h1>News</h1><p>The boats came back before noon, see <a href=more>more</a>.</p></main>";

    fn output(words: &[&str]) -> String {
        let arguments = Arguments::parse_from([&["weir-extract", "--url", "https://x.test/d/"], words].concat());
        run(&arguments, PAGE).expect("JSON")
    }

    #[test]
    fn a_page_becomes_json() {
        let page: Value = serde_json::from_str(&output(&["--attribute", "main a@href"])).expect("JSON");
        let markdown = "# News\n\nThe boats came back before noon, see [more](https://x.test/d/more).\n";
        assert_eq!(page["markdown"], markdown);
        assert_eq!(page["links"], json!(["https://x.test/", "https://x.test/d/more"]));
        assert_eq!(page["metadata"]["title"], "News");
        assert_eq!(page["attributes"], json!([{"selector": "main a", "attribute": "href", "values": ["more"]}]));
        assert_eq!(page.get("html"), None);
    }

    #[test]
    fn the_markdown_can_be_had_alone() {
        assert!(output(&["--markdown", "--full-page"]).contains("[Home](https://x.test/)"));
        assert!(!output(&["--markdown", "--exclude", "p"]).contains("boats"));
    }
}
