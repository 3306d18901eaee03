//! Prints the markdown of files: `cargo run -p weir-office --example convert -- FILE...`

use std::process::ExitCode;

use weir_extract::{ExtractOptions, PageInput, extract};
use weir_office::{Limits, convert, detect};

fn markdown(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let format = detect(&bytes, Some(path), None).ok_or("nothing that is known")?;
    let converted = convert(&bytes, format, &Limits::default()).map_err(|error| error.to_string())?;
    for warning in &converted.warnings {
        eprintln!("{path}: {warning}");
    }
    if let Some(markdown) = converted.markdown {
        return Ok(markdown);
    }
    let url = url::Url::parse("https://files.example/").map_err(|error| error.to_string())?;
    let options = ExtractOptions { markdown: true, ..ExtractOptions::default() };
    let page = extract(&PageInput { url: &url, html: &converted.html, rendered: false }, &options);
    Ok(page.markdown.unwrap_or_default())
}

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        match markdown(&path) {
            Ok(markdown) => print!("{markdown}"),
            Err(error) => {
                eprintln!("{path}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
