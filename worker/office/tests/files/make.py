#!/usr/bin/env python3
"""Makes the files of this folder, and `expected.json`: what their markdown must hold.

Documents, workbooks and presentations are written by python-docx, openpyxl and python-pptx, then LibreOffice saves them
in its own formats and in those before 2007, so that each format is that of a real writer. Needs `soffice` and
`pip install python-docx openpyxl python-pptx xlwt ebooklib msoffcrypto-tool`.
"""

import datetime
import json
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import docx
import docx.enum.style
import openpyxl
import pptx
import xlwt
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from ebooklib import epub
from pptx.util import Inches

HERE = Path(__file__).parent
EXPECTED = {}


def slim(path):
    """Leaves out the picture of the template's first page."""
    with zipfile.ZipFile(path) as package:
        parts = [(name, package.read(name)) for name in package.namelist() if "thumbnail" not in name]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as package:
        for name, content in parts:
            if name == "_rels/.rels":
                content = re.sub(rb"<Relationship [^>]*thumbnail[^>]*/>", b"", content)
            package.writestr(name, content)


def expect(name, **what):
    EXPECTED[name] = what


SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Office.Common/Save/Document">
<prop oor:name="GenerateThumbnail" oor:op="fuse"><value>false</value></prop></item></oor:items>"""


def save(folder, source, *formats):
    """Has LibreOffice save a file in further formats beside it, without a picture of its first page."""
    profile = folder / "profile" / "user"
    if not profile.exists():
        profile.mkdir(parents=True)
        (profile / "registrymodifications.xcu").write_text(SETTINGS)
    for format in formats:
        subprocess.run(
            ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile", "--convert-to", format,
             "--outdir", str(HERE), str(source)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# Documents. Each function fills one and says what must come of it.

def link(paragraph, text, url):
    id = paragraph.part.relate_to(url, docx.opc.constants.RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    element = OxmlElement("w:hyperlink")
    element.set(qn("r:id"), id)
    run = OxmlElement("w:r")
    run.text = text
    element.append(run)
    paragraph._p.append(element)


def headings(document):
    document.core_properties.title = "The Report of Headings"
    document.core_properties.author = "Grace Hopper"
    document.add_heading("First part", 1)
    document.add_paragraph("Opening words of the first part.")
    document.add_heading("A section of it", 2)
    document.add_paragraph("Words of the section.")
    document.add_heading("A detail", 3)
    document.add_paragraph("Words of the detail.")
    document.add_heading("Second part", 1)
    document.add_paragraph("Closing words.")
    return dict(headings=["# First part", "## A section of it", "### A detail", "# Second part"],
                texts=["Opening words of the first part.", "Words of the section.", "Words of the detail.",
                       "Closing words."],
                order=["First part", "A section of it", "A detail", "Second part", "Closing words."],
                title="The Report of Headings", author="Grace Hopper")


def lists(document):
    document.add_paragraph("What to buy:")
    document.add_paragraph("Apples", style="List Bullet")
    document.add_paragraph("Red ones", style="List Bullet 2")
    document.add_paragraph("Green ones", style="List Bullet 2")
    document.add_paragraph("Pears", style="List Bullet")
    document.add_paragraph("How to get there:")
    document.add_paragraph("Go left", style="List Number")
    document.add_paragraph("Go right", style="List Number")
    document.add_paragraph("Arrive", style="List Number")
    document.add_paragraph("That is all.")
    return dict(items=[[0, False, "Apples"], [1, False, "Red ones"], [1, False, "Green ones"], [0, False, "Pears"],
                       [0, True, "Go left"], [0, True, "Go right"], [0, True, "Arrive"]],
                texts=["What to buy:", "Red ones", "Green ones", "How to get there:", "That is all."],
                whole="What to buy:\n\n- Apples\n  - Red ones\n  - Green ones\n- Pears\n\nHow to get there:\n\n"
                      "1. Go left\n2. Go right\n3. Arrive\n\nThat is all.\n")


def nested(document):
    numbering = document.part.numbering_part.element
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>'
        f'<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="{720 * (n + 1)}" w:hanging="360"/></w:pPr></w:lvl>'
        for n, (kind, text) in enumerate([("decimal", "%1."), ("bullet", "•"), ("lowerLetter", "%3)")]))
    first = numbering.find(qn("w:num"))
    first.addprevious(parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="77"><w:multiLevelType '
                                f'w:val="multilevel"/>{levels}</w:abstractNum>'))
    numbering.append(parse_xml(
        f'<w:num {nsdecls("w")} w:numId="77"><w:abstractNumId w:val="77"/></w:num>'))

    def item(text, level):
        paragraph = document.add_paragraph(text)
        paragraph._p.get_or_add_pPr().append(parse_xml(
            f'<w:numPr {nsdecls("w")}><w:ilvl w:val="{level}"/><w:numId w:val="77"/></w:numPr>'))

    for text, level in [("Plan", 0), ("Collect", 1), ("From the shelf", 2), ("From the shop", 2), ("Sort", 1),
                        ("Build", 0), ("Paint", 1)]:
        item(text, level)
    document.add_paragraph("A break between the steps.")
    item("Sell", 0)
    return dict(items=[[0, True, "Plan"], [1, False, "Collect"], [2, True, "From the shelf"],
                       [2, True, "From the shop"], [1, False, "Sort"], [0, True, "Build"], [1, False, "Paint"],
                       [0, True, "Sell"]],
                texts=["A break between the steps."])


def tables(document):
    document.add_paragraph("Prices of fruit")
    table = document.add_table(rows=3, cols=3)
    table.style = "Table Grid"
    for row, values in zip(table.rows, [["Fruit", "Price", "Stock"], ["Apple", "1.20", "14"], ["Pear | Quince", "0.80", "3"]]):
        for cell, value in zip(row.cells, values):
            cell.text = value
    document.add_paragraph("Table with a wide cell")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Both columns"
    table.cell(1, 0).text = "left cell"
    table.cell(1, 1).text = "right cell"
    return dict(rows=["| Fruit | Price | Stock |", "| Apple | 1.20 | 14 |", "| Pear \\| Quince | 0.80 | 3 |",
                      "| left cell | right cell |"],
                texts=["Prices of fruit", "Both columns", "Table with a wide cell"])


def styled(document):
    paragraph = document.add_paragraph("Plain, ")
    paragraph.add_run("heavy").bold = True
    paragraph.add_run(", ")
    paragraph.add_run("slanted").italic = True
    paragraph.add_run(" and ")
    paragraph.add_run("gone").font.strike = True
    paragraph.add_run(" text.")
    paragraph = document.add_paragraph("See ")
    link(paragraph, "the example", "https://example.com/a?b=1&c=2")
    paragraph.add_run(" for more.")
    paragraph = document.add_paragraph("Water is H")
    paragraph.add_run("2").font.subscript = True
    paragraph.add_run("O & more < less.")
    return dict(texts=["**heavy**", "*slanted*", "~~gone~~", "[the example](https://example.com/a?b=1&c=2)",
                       "Water is H<sub>2</sub>O & more < less."])


def margins(document):
    section = document.sections[0]
    section.header.paragraphs[0].text = "Head of every page"
    section.footer.paragraphs[0].text = "Foot of every page"
    document.add_paragraph("The text between them.")
    return dict(order=["Head of every page", "The text between them.", "Foot of every page"],
                texts=["Head of every page", "The text between them.", "Foot of every page"])


def scripts(document):
    document.add_heading("Überschrift – naïve café", 1)
    document.add_paragraph("日本語の文章です。中文内容。한국어 문장.")
    document.add_paragraph("Русский текст и ελληνικά.")
    document.add_paragraph("العربية עברית")
    document.add_paragraph("Emoji 😀, a quote “so”, a dash — and €5.")
    return dict(headings=["# Überschrift – naïve café"],
                texts=["日本語の文章です。中文内容。한국어 문장.", "Русский текст и ελληνικά.", "العربية עברית",
                       "Emoji 😀, a quote “so”, a dash — and €5."])


def whole(document):
    document.core_properties.title = "Annual Review"
    document.sections[0].header.paragraphs[0].text = "Example Ltd"
    document.sections[0].footer.paragraphs[0].text = "Confidential draft"
    document.add_heading("Annual Review", 0)
    document.add_paragraph("We grew by a third.")
    document.add_heading("Numbers", 1)
    table = document.add_table(rows=2, cols=2)
    for row, values in zip(table.rows, [["Year", "Revenue"], ["2023", "1,000"]]):
        for cell, value in zip(row.cells, values):
            cell.text = value
    document.add_heading("Outlook", 1)
    document.add_paragraph("Open a shop", style="List Bullet")
    document.add_paragraph("Hire two people", style="List Bullet")
    document.add_page_break()
    document.add_paragraph("After the page break.")
    return dict(headings=["# Annual Review", "# Numbers", "# Outlook"], rows=["| Year | Revenue |", "| 2023 | 1,000 |"],
                items=[[0, False, "Open a shop"], [0, False, "Hire two people"]],
                order=["Example Ltd", "We grew by a third.", "Numbers", "Outlook", "After the page break.",
                       "Confidential draft"],
                texts=["We grew by a third.", "After the page break."], title="Annual Review")


DOCUMENTS = [headings, lists, nested, tables, styled, margins, scripts, whole]


def changes(document):
    """Only in Word's own format: what was deleted is not shown, what was inserted is; a box; a field; a hidden run."""
    paragraph = document.add_paragraph("Kept ")
    paragraph._p.append(parse_xml(
        f'<w:del {nsdecls("w")} w:id="1" w:author="a"><w:r><w:delText>deleted words</w:delText></w:r></w:del>'))
    paragraph._p.append(parse_xml(
        f'<w:ins {nsdecls("w")} w:id="2" w:author="a"><w:r><w:t>inserted words</w:t></w:r></w:ins>'))
    document.add_paragraph().add_run("hidden words").font.hidden = True
    field = document.add_paragraph("Go to ")
    for part in ['<w:fldChar w:fldCharType="begin"/>', '<w:instrText xml:space="preserve"> HYPERLINK "https://example.org/field" </w:instrText>',
                 '<w:fldChar w:fldCharType="separate"/>', "<w:t>the field</w:t>", '<w:fldChar w:fldCharType="end"/>']:
        field._p.append(parse_xml(f'<w:r {nsdecls("w")}>{part}</w:r>'))
    box = document.add_paragraph("Beside the box.")
    box._p.append(parse_xml(
        f'<w:r {nsdecls("w")} xmlns:v="urn:schemas-microsoft-com:vml"><w:pict><v:shape><v:textbox><w:txbxContent><w:p>'
        "<w:r><w:t>Inside the box.</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"))
    control = parse_xml(f'<w:sdt {nsdecls("w")}><w:sdtContent><w:p><w:r><w:t>Inside a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>')
    document.element.body.insert(0, control)
    return dict(texts=["Kept inserted words", "[the field](https://example.org/field)", "Inside the box.",
                       "Inside a control."],
                absent=["deleted words", "hidden words", "HYPERLINK"])


NOTES_HTML = """<html><body><h1>Notes</h1><p>Claim<a class="sdfootnoteanc" name="sdfootnote1anc" href="#sdfootnote1sym"
><sup>1</sup></a> and more<a class="sdfootnoteanc" name="sdfootnote2anc" href="#sdfootnote2sym"><sup>2</sup></a> text.</p>
<pre>let x = 1;
  let y = 2;</pre><blockquote>Somebody said this.</blockquote>
<div id="sdfootnote1"><p class="sdfootnote"><a class="sdfootnotesym" name="sdfootnote1sym" href="#sdfootnote1anc">1</a>First evidence.</p></div>
<div id="sdfootnote2"><p class="sdfootnote"><a class="sdfootnotesym" name="sdfootnote2sym" href="#sdfootnote2anc">2</a>Second evidence.</p></div>
</body></html>"""


def outline(document):
    """Lists whose levels stand in styles, that begin anew, and that change their kind."""
    numbering = document.part.numbering_part.element
    last = numbering.findall(qn("w:abstractNum"))[-1]
    numbers = {}

    def definition(id, *levels):
        inner = "".join(
            f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>'
            + (f'<w:pStyle w:val="{style}"/>' if style else "") + f'<w:lvlText w:val="%{n + 1}."/></w:lvl>'
            for n, (kind, style) in enumerate(levels))
        last.addnext(parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{id}">{inner}</w:abstractNum>'))

    def number(id, definition, inner=""):
        numbering.append(parse_xml(f'<w:num {nsdecls("w")} w:numId="{id}"><w:abstractNumId w:val="{definition}"/>'
                                   f'{inner}</w:num>'))

    def style(name, base, inner):
        made = document.styles.add_style(name, docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
        made.base_style = document.styles[base]
        made.element.get_or_add_pPr().append(parse_xml(f'<w:numPr {nsdecls("w")}>{inner}</w:numPr>'))

    def item(text, style=None, **own):
        paragraph = document.add_paragraph(text, style=style)
        inner = "".join(f'<w:{name} w:val="{value}"/>' for name, value in own.items())
        if inner:
            paragraph._p.get_or_add_pPr().append(parse_xml(f'<w:numPr {nsdecls("w")}>{inner}</w:numPr>'))

    definition(70, ("decimal", "StepOne"), ("lowerLetter", "StepTwo"), ("bullet", None))
    number(70, 70)
    number(71, 70, '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>')
    number(72, 70, '<w:lvlOverride w:ilvl="1"><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="bullet"/>'
                   '</w:lvl></w:lvlOverride>')
    style("StepOne", "Normal", '<w:numId w:val="70"/>')
    # Its level stands in the definition of the list alone.
    style("StepTwo", "StepOne", '<w:numId w:val="70"/>')
    # Its list stands in the style that it is based on.
    style("StepThree", "StepOne", '<w:ilvl w:val="2"/>')
    style("Mine", "List Bullet 3", '<w:ilvl w:val="0"/>')

    for text, name in [("Fruit", "List Bullet"), ("Apples", "List Bullet 2"), ("Red", "List Bullet 3"),
                       ("Green", "Mine"), ("Pears", "List Bullet 2"), ("First pears", "List Number 3"),
                       ("Bread", "List Bullet")]:
        item(text, name)
    document.add_paragraph("Then")
    for text, name in [("Wash", "StepOne"), ("Hot", "StepTwo"), ("Warm", "StepTwo"), ("Softly", "StepThree"),
                       ("Dry", "StepOne")]:
        item(text, name)
    item("Wash again", "StepOne", numId=71)
    item("Dry again", "StepOne", numId=71)
    document.add_paragraph("Last")
    item("Put away", None, ilvl=0, numId=72)
    item("On the shelf", None, ilvl=1, numId=72)
    item("In the box", "StepTwo", numId=72)


OUTLINE = """\
- Fruit
  - Apples
    - Red
    - Green
  - Pears
    1. First pears
- Bread

Then

1. Wash
   1. Hot
   2. Warm
      - Softly
2. Dry

1. Wash again
2. Dry again

Last

3. Put away
   - On the shelf
   - In the box
"""


def make_documents(folder):
    for fill in DOCUMENTS:
        document = docx.Document()
        what = fill(document)
        name = fill.__name__
        document.save(HERE / f"{name}.docx")
        slim(HERE / f"{name}.docx")
        save(folder, HERE / f"{name}.docx", "odt", "rtf", "doc:MS Word 97")
        for extension in ["docx", "odt", "rtf", "doc"]:
            expect(f"{name}.{extension}", **what)
    document = docx.Document()
    what = changes(document)
    document.save(HERE / "changes.docx")
    slim(HERE / "changes.docx")
    expect("changes.docx", **what)
    document = docx.Document()
    outline(document)
    document.save(HERE / "outline.docx")
    slim(HERE / "outline.docx")
    expect("outline.docx", whole=OUTLINE)
    # Word's formats as LibreOffice writes them, with notes, which python-docx cannot make.
    source = folder / "notes.html"
    source.write_text(NOTES_HTML)
    save(folder, source, "odt:writer8")
    save(folder, HERE / "notes.odt", "docx:MS Word 2007 XML", "rtf:Rich Text Format", "doc:MS Word 97")
    for extension in ["odt", "docx", "rtf", "doc"]:
        expect(f"notes.{extension}", headings=["# Notes"],
               texts=["Claim<sup>1</sup> and more<sup>2</sup> text.", "1. First evidence.", "2. Second evidence.",
                      "let x = 1;", "let y = 2;", "Somebody said this."])


# Workbooks.

def values(book):
    sheet = book.active
    sheet.title = "Values"
    sheet.append(["Name", "Amount", "Share", "Day", "Time", "Done", "Big"])
    sheet.append(["Ada", 1234.5, 0.256, datetime.date(2024, 2, 29), datetime.time(18, 30), True, 1234567])
    sheet.append(["Bob | Co", -99, 1, datetime.date(1999, 12, 31), datetime.time(6, 5), False, 0.1])
    for row in sheet.iter_rows(min_row=2):
        row[1].number_format = "#,##0.00"
        row[2].number_format = "0.0%"
        row[3].number_format = "yyyy-mm-dd"
        row[4].number_format = "hh:mm"
    return dict(headings=["## Values"],
                rows=["| Name | Amount | Share | Day | Time | Done | Big |",
                      "| Ada | 1,234.50 | 25.6% | 2024-02-29 | 18:30 | TRUE | 1234567 |",
                      "| Bob \\| Co | -99.00 | 100.0% | 1999-12-31 | 06:05 | FALSE | 0.1 |"])


def sheets(book):
    book.active.title = "First"
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    secret = book.create_sheet("Secret")
    secret.append(["hidden value"])
    secret.sheet_state = "hidden"
    last = book.create_sheet("Last & best")
    last["C5"] = "far"
    last["F5"] = "farther"
    last["C9"] = "below"
    last["F9"] = 2.5
    return dict(headings=["## First", "## Last & best"], rows=["| a | b |", "| 1 | 2 |", "| far | farther |",
                "| below | 2.5 |"], absent=["hidden value", "## Secret"], order=["First", "Last & best"],
                warnings=["Secret"])


def mixed(book):
    sheet = book.active
    sheet.title = "数据"
    sheet.append(["Größe", "说明", "Link"])
    sheet.append(["größer", "两行\n文字", "site"])
    sheet["C2"].hyperlink = "https://example.com/x"
    sheet.append(["=1/0", "=A2&\"!\"", None])
    sheet.append(["merged", None, "end"])
    sheet.merge_cells("A4:B4")
    for n in range(60):
        sheet.append([f"row {n}", n, n / 4])
    return dict(headings=["## 数据"], rows=["| Größe | 说明 | Link |", "| merged | | end |", "| row 59 | 59 | 14.75 |"],
                texts=["两行<br>文字", "[site](https://example.com/x)"])


WORKBOOKS = [values, sheets, mixed]


def make_workbooks(folder):
    for fill in WORKBOOKS:
        book = openpyxl.Workbook()
        what = fill(book)
        name = fill.__name__
        book.save(HERE / f"{name}.xlsx")
        save(folder, HERE / f"{name}.xlsx", "xls:MS Excel 97", "ods")
        for extension in ["xlsx", "xls", "ods"]:
            expect(f"{name}.{extension}", **what)
    # As LibreOffice writes it, with the results of formulas.
    resaved = folder / "resaved.ods"
    resaved.write_bytes((HERE / "mixed.ods").read_bytes())
    save(folder, resaved, "xlsx:Calc MS Excel 2007 XML", "xls:MS Excel 97")
    # The old format has no results of formulas that were not computed anew.
    for extension, texts in [("xlsx", ["#DIV/0!", "größer!"]), ("xls", ["#DIV/0!"])]:
        expect(f"resaved.{extension}", **{**EXPECTED["mixed.xlsx"], "texts": texts})
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    day = xlwt.easyxf(num_format_str="D-MMM-YY")
    for n, row in enumerate([["Item", "Day"], ["Größe 日本", datetime.date(2024, 2, 29)], [True, 3.25]]):
        for m, value in enumerate(row):
            if isinstance(value, datetime.date):
                sheet.write(n, m, value, day)
            else:
                sheet.write(n, m, value)
    book.save(str(HERE / "old.xls"))
    expect("old.xls", headings=["## Old"], rows=["| Item | Day |", "| Größe 日本 | 29-Feb-24 |", "| TRUE | 3.25 |"])
    make_binary()


def make_binary():
    """No free program writes .xlsb, so its records are written here, by [MS-XLSB]."""
    def number(n, most):
        out = bytearray()
        while True:
            out.append(n & 0x7F | (0x80 if n > 0x7F else 0))
            n >>= 7
            if not n:
                return bytes(out)

    def record(kind, data=b""):
        # The kind has its continuation bit in its own first byte.
        return number(kind, 2) + number(len(data), 4) + data

    def text(value):
        return struct.pack("<I", len(value)) + value.encode("utf-16-le")

    def cell(kind, column, data, style=0):
        return record(kind, struct.pack("<II", column, style) + data)

    def row(n):
        return record(0, struct.pack("<II", n, 0) + b"\0" * 9)

    workbook = record(131) + record(153, struct.pack("<II", 0, 0) + text("")) + record(143) + record(
        156, struct.pack("<II", 0, 1) + text("rId1") + text("Binary")) + record(
        156, struct.pack("<II", 1, 2) + text("rId1") + text("Veiled")) + record(144) + record(132)
    styles = record(278) + record(615, struct.pack("<I", 1)) + record(
        44, struct.pack("<H", 164) + text("yyyy-mm-dd")) + record(616) + record(617, struct.pack("<I", 2)) + record(
        47, struct.pack("<HH", 0, 0) + b"\0" * 12) + record(47, struct.pack("<HH", 0, 164) + b"\0" * 12) + record(
        618) + record(279)
    strings = record(159, struct.pack("<II", 2, 2)) + record(19, b"\0" + text("Head one")) + record(
        19, b"\0" + text("Größe")) + record(160)
    sheet = (record(129) + record(145) + row(0) + cell(7, 0, struct.pack("<I", 0)) + cell(6, 1, text("Head two"))
             + row(1) + cell(7, 0, struct.pack("<I", 1)) + cell(5, 1, struct.pack("<d", 45351.0), 1)
             + row(2) + cell(2, 0, struct.pack("<I", 1234 << 2 | 3)) + cell(4, 1, b"\1")
             + row(3) + cell(8, 0, text("of a formula") + b"\0" * 8) + cell(3, 1, b"\x2a")
             + record(146) + record(130))
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": relations([("rId1", kinds + "/officeDocument", "xl/workbook.bin")]),
        "xl/workbook.bin": workbook,
        "xl/_rels/workbook.bin.rels": relations([("rId1", kinds + "/worksheet", "worksheets/sheet1.bin"),
                                                 ("rId2", kinds + "/styles", "styles.bin"),
                                                 ("rId3", kinds + "/sharedStrings", "sharedStrings.bin")]),
        "xl/styles.bin": styles, "xl/sharedStrings.bin": strings, "xl/worksheets/sheet1.bin": sheet,
    }
    with zipfile.ZipFile(HERE / "binary.xlsb", "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    expect("binary.xlsb", headings=["## Binary"], rows=["| Head one | Head two |", "| Größe | 2024-02-29 |",
           "| 12.34 | TRUE |", "| of a formula | #N/A |"], warnings=["Veiled"])


def relations(rows):
    inner = "".join(f'<Relationship Id="{id}" Type="{kind}" Target="{target}"/>' for id, kind, target in rows)
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'


# Presentations.

def talk(deck):
    deck.core_properties.title = "A Talk"
    slide = deck.slides.add_slide(deck.slide_layouts[0])
    slide.shapes.title.text = "The great talk"
    slide.placeholders[1].text = "by somebody"
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Reasons"
    frame = slide.placeholders[1].text_frame
    frame.text = "First reason"
    for text, level in [("A detail of it", 1), ("Second reason", 0)]:
        paragraph = frame.add_paragraph()
        paragraph.text = text
        paragraph.level = level
    slide.notes_slide.notes_text_frame.text = "Speak slowly here."
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "The end"
    box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(5), Inches(1))
    box.text_frame.text = "Thanks, 谢谢"
    return dict(headings=["## The great talk", "## Reasons", "## The end"],
                items=[[0, False, "First reason"], [1, False, "A detail of it"], [0, False, "Second reason"]],
                texts=["by somebody", "Speak slowly here.", "Thanks, 谢谢"],
                order=["The great talk", "by somebody", "Reasons", "First reason", "Second reason",
                       "Speak slowly here.", "The end", "Thanks, 谢谢"], pages=3)


def grid(deck):
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Figures"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(6), Inches(1)).table
    for row, values in zip(table.rows, [["Quarter", "Sales"], ["Q1", "120"]]):
        for cell, value in zip(row.cells, values):
            cell.text = value
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    paragraph = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(5), Inches(1)).text_frame.paragraphs[0]
    run = paragraph.add_run()
    run.text = "the site"
    run.hyperlink.address = "https://example.com/deck"
    bold = paragraph.add_run()
    bold.text = " loudly"
    bold.font.bold = True
    return dict(headings=["## Figures", "## Slide 2"], rows=["| Quarter | Sales |", "| Q1 | 120 |"],
                texts=["[the site](https://example.com/deck)", "**loudly**"], pages=2)


def make_presentations(folder):
    for fill in [talk, grid]:
        deck = pptx.Presentation()
        what = fill(deck)
        name = fill.__name__
        for layout in list(deck.slide_layouts):
            if not layout.used_by_slides:
                deck.slide_layouts.remove(layout)
        deck.save(HERE / f"{name}.pptx")
        slim(HERE / f"{name}.pptx")
        save(folder, HERE / f"{name}.pptx", "odp", "ppt:MS PowerPoint 97")
        expect(f"{name}.pptx", **what)
        expect(f"{name}.odp", **what)
        what = dict(what)
        if name == "grid":
            # A table of the old format is a group of boxes, and a text has no style there.
            what = dict(headings=["## Figures", "## Slide 2"], texts=["Quarter", "Sales", "Q1", "120", "the site", "loudly"],
                        pages=2)
        expect(f"{name}.ppt", **what)
    again = folder / "again.odp"
    again.write_bytes((HERE / "talk.odp").read_bytes())
    save(folder, again, "pptx:Impress MS PowerPoint 2007 XML")
    expect("again.pptx", **EXPECTED["talk.pptx"])


# Books and tables.

def make_books():
    book = epub.EpubBook()
    book.set_identifier("book-1")
    book.set_title("A Small Book")
    book.set_language("en")
    book.add_author("Mary Shelley")
    chapters = []
    for n, (name, text) in enumerate([("One morning", "It was raining."), ("One evening", "It was <b>late</b> &amp; dark.")]):
        chapter = epub.EpubHtml(title=name, file_name=f"text/{2 - n}.xhtml")
        chapter.content = f"<html><body><h1>{name}</h1><p>{text}</p><ul><li>thing {n}</li></ul></body></html>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.toc = chapters
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = chapters
    epub.write_epub(str(HERE / "book.epub"), book)
    expect("book.epub", headings=["# One morning", "# One evening"], texts=["It was raining.", "It was **late** & dark."],
           items=[[0, False, "thing 0"], [0, False, "thing 1"]], order=["One morning", "One evening"],
           title="A Small Book", author="Mary Shelley", pages=2)


def make_tables():
    tables = {
        "plain.csv": ("name,age\nAda,36\n\"Bob, Jr.\",7\n", "utf-8", ["| name | age |", "| Ada | 36 |", "| Bob, Jr. | 7 |"]),
        "semicolons.csv": ("Größe;Preis\nklein;1,50\n", "windows-1252", ["| Größe | Preis |", "| klein | 1,50 |"]),
        "tabs.csv": ("a\tb\n\"two\nlines\"\tx|y\n", "utf-16", ["| a | b |", "| two<br>lines | x\\|y |"]),
        "marked.csv": ("sep=,\r\nid,text\r\n1,\"say \"\"hi\"\"\"\r\n", "utf-8-sig", ["| id | text |", "| 1 | say \"hi\" |"]),
    }
    for name, (text, encoding, rows) in tables.items():
        (HERE / name).write_bytes(text.encode(encoding))
        expect(name, rows=rows)


def make_encrypted():
    from msoffcrypto.format.ooxml import OOXMLFile
    with (HERE / "margins.docx").open("rb") as plain, (HERE / "encrypted.docx").open("wb") as out:
        OOXMLFile(plain).encrypt("secret", out)
    with (HERE / "sheets.xlsx").open("rb") as plain, (HERE / "encrypted.xlsx").open("wb") as out:
        OOXMLFile(plain).encrypt("secret", out)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        make_documents(folder)
        make_workbooks(folder)
        make_presentations(folder)
    make_books()
    make_tables()
    make_encrypted()
    (HERE / "expected.json").write_text(json.dumps(EXPECTED, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
