//! What is said of pictures and charts in words stays when they themselves do not.

#![expect(clippy::unwrap_used, reason = "what a test is sure of")]

use std::io::{Cursor, Write as _};

use weir_office::{Format, Limits, convert};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn html(format: Format, parts: &[(&str, &str)]) -> String {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    convert(&zip.finish().unwrap().into_inner(), format, &Limits::default()).unwrap().html
}

#[test]
fn a_word_file_keeps_the_words_of_its_pictures_where_they_stand() {
    let body = "<w:document xmlns:w='w' xmlns:wp='wp' xmlns:a='a' xmlns:v='v'><w:body>
        <w:p><w:r><w:t>Before </w:t></w:r>
          <w:r><w:drawing><wp:inline><wp:docPr id='1' name='Picture 1' descr='Sales of &lt;2024&gt; as bars'/><a:graphic/></wp:inline></w:drawing></w:r>
          <w:r><w:t> after.</w:t></w:r></w:p>
        <w:p><w:r><w:pict><v:shape alt='An old picture'><v:imagedata/></v:shape></w:pict></w:r></w:p>
        <w:p><w:r><w:drawing><wp:anchor><wp:docPr id='2' name='Picture 2'/></wp:anchor></w:drawing></w:r></w:p>
        <w:p><w:r><w:drawing><wp:docPr descr='A box'/><w:txbxContent><w:p><w:r><w:t>In the box</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r></w:p>
        </w:body></w:document>";
    let html = html(Format::Docx, &[("word/document.xml", body)]);
    assert!(html.contains("<p>Before <em>Sales of &lt;2024&gt; as bars</em> after.</p>"), "{html}");
    assert!(html.contains("<p><em>An old picture</em></p>"), "{html}");
    assert!(html.contains("In the box") && !html.contains("A box") && !html.contains("Picture 2"), "{html}");
}

#[test]
fn slides_keep_the_words_of_pictures_and_charts() {
    let show = "<p:presentation xmlns:p='p' xmlns:r='r'><p:sldIdLst><p:sldId id='256' r:id='r1'/></p:sldIdLst></p:presentation>";
    let relations = "<Relationships><Relationship Id='r1' Type='x/slide' Target='slides/slide1.xml'/></Relationships>";
    let slide = "<p:sld xmlns:p='p' xmlns:a='a'><p:cSld><p:spTree>
        <p:pic><p:nvPicPr><p:cNvPr id='4' name='Picture 3' descr='A whale'/></p:nvPicPr></p:pic>
        <p:pic><p:nvPicPr><p:cNvPr id='5' name='Picture 4'/></p:nvPicPr></p:pic>
        <p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id='6' name='Chart 1' descr='Whales by year'/></p:nvGraphicFramePr></p:graphicFrame>
        </p:spTree></p:cSld></p:sld>";
    let html = html(
        Format::Pptx,
        &[
            ("ppt/presentation.xml", show),
            ("ppt/_rels/presentation.xml.rels", relations),
            ("ppt/slides/slide1.xml", slide),
        ],
    );
    assert!(html.contains("<p><em>A whale</em></p>") && html.contains("<p><em>Whales by year</em></p>"), "{html}");
    assert!(!html.contains("Picture 4"), "{html}");
}

#[test]
fn open_documents_keep_the_words_of_pictures_and_their_lists() {
    let frame = |words: &str| format!("<draw:frame draw:name='graphics1'><draw:image/>{words}</draw:frame>");
    let body = format!(
        "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:draw='d' xmlns:svg='s'><office:body><office:text>
        <text:p>Before{}.</text:p><text:list><text:list-item><text:p>One{}</text:p></text:list-item>
        <text:list-item><text:p>Two</text:p></text:list-item></text:list>
        </office:text></office:body></office:document-content>",
        frame("<svg:title>Title</svg:title><svg:desc>A harbour at night</svg:desc>"),
        frame(""),
    );
    let html = html(Format::Odt, &[("content.xml", &body)]);
    assert!(html.contains("<p><em>A harbour at night</em></p>") && !html.contains("Title"), "{html}");
    assert_eq!(html.matches("<ul>").count(), 1, "{html}");
}
