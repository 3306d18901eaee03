"""The benchmark of files: a long Word file and a large sheet, sent one after another, both databases."""
import io
import statistics
import threading
import time
import zipfile
from pathlib import Path

from world import Service, stat

MB = 1024 * 1024
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def parses(report, site, databases, scale):
    """A Word file of 200 pages and a sheet of 50,000 rows by /v2/parse, ten times each, and the most memory of their
    reader."""
    files = [
        ("a Word file of 200 pages", "long.docx", WORD, word(int(200 * scale)), ("<=", 0.3), None),
        ("a sheet of 50,000 rows", "large.xlsx", SHEET, sheet(int(50_000 * scale)), ("<=", 1.5), ("<=", 300)),
    ]
    for name, postgres in databases.items():
        # No browsers: the worker's only children are readers.
        service = Service(postgres, env={"WEIR_PAGE_BROWSERS": "0", "WEIR_SESSIONS_PER_WORKER": "0"})
        try:
            for what, file, kind, data, time_bar, memory_bar in files:
                send(service, file, kind, data)
                peak = Peak(service.processes[1].pid)
                times = [send(service, file, kind, data) for _ in range(10)]
                top = peak.stop() / MB
                report.line(f"parse, {name}: {what}, p50", statistics.median(times), "s", time_bar, note=f"worst {max(times):.2f}")
                report.line(f"parse, {name}: its reader's memory", top, "MB", memory_bar)
        finally:
            service.close()


def send(service, name, kind, data):
    """Seconds of one parse."""
    head = f'--part\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {kind}\r\n\r\n'
    body = head.encode() + data + b"\r\n--part--\r\n"
    connection = service.client.connection
    headers = {**service.client.headers, "Content-Type": "multipart/form-data; boundary=part"}
    began = time.monotonic()
    connection.request("POST", "/v2/parse", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    took = time.monotonic() - began
    if answer.status != 200 or b"the last one" not in text:
        raise RuntimeError(f"{name}: {answer.status} {text[:300]!r}")
    return took


def package(parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def relations(kind, target):
    base = "http://schemas.openxmlformats.org"
    return (f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="r1" '
            f'Type="{base}/officeDocument/2006/relationships/{kind}" Target="{target}"/></Relationships>')


def types(*overrides):
    listed = "".join(f'<Override PartName="{part}" ContentType="{kind}"/>' for part, kind in overrides)
    return ('<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
            f'ContentType="application/xml"/>{listed}</Types>')


def word(pages):
    """A page: a heading, eight paragraphs of sixty words with some bold ones, a table of five rows."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    run = "<w:r><w:t xml:space=\"preserve\">{} </w:t></w:r>"
    bold = "<w:r><w:rPr><w:b/></w:rPr><w:t xml:space=\"preserve\">{} </w:t></w:r>"
    body = []
    for page in range(pages):
        body.append(f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{run.format(f"Chapter {page}")}</w:p>')
        for n in range(8):
            words = " ".join(f"word{page}x{n}x{i}" for i in range(55))
            body.append(f"<w:p>{run.format(words)}{bold.format('of some weight')}{run.format('and an end.')}</w:p>")
        cell = "<w:tc><w:p>{}</w:p></w:tc>"
        rows = "".join("<w:tr>" + "".join(cell.format(run.format(f"{r}.{c}")) for c in range(4)) + "</w:tr>" for r in range(5))
        body.append(f"<w:tbl>{rows}</w:tbl>")
    body.append(f"<w:p>{run.format('This is the last one')}</w:p>")
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return package({
        "[Content_Types].xml": types(("/word/document.xml", kind)),
        "_rels/.rels": relations("officeDocument", "word/document.xml"),
        "word/document.xml": f'<w:document xmlns:w="{space}"><w:body>{"".join(body)}</w:body></w:document>',
    })


def sheet(rows):
    """Eight columns: a number, texts and amounts."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = '<c t="inlineStr"><is><t>{}</t></is></c>'
    lines = ["<row>" + "".join(text.format(f"Column {c}") for c in range(8)) + "</row>"]
    for r in range(rows):
        name = "the last one" if r == rows - 1 else f"row {r}"
        cells = f"<c><v>{r}</v></c>" + text.format(name) + "".join(f"<c><v>{r * c}.25</v></c>" for c in range(1, 7))
        lines.append(f"<row>{cells}</row>")
    base = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    reference = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    return package({
        "[Content_Types].xml": types(("/xl/workbook.xml", f"{base}.sheet.main+xml"), ("/xl/sheet1.xml", f"{base}.worksheet+xml")),
        "_rels/.rels": relations("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="{reference}"><sheets><sheet name="Data" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations("worksheet", "sheet1.xml"),
        "xl/sheet1.xml": f'<worksheet xmlns="{space}"><sheetData>{"".join(lines)}</sheetData></worksheet>',
    })


def children(pid):
    try:
        texts = [task.joinpath("children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [int(child) for text in texts for child in text.split()]


class Peak:
    """The most resident bytes of a child of a process, looked at every 5 ms."""

    def __init__(self, pid):
        self.pid, self.top, self.running = pid, 0, True
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while self.running:
            for child in children(self.pid):
                found = stat(child)
                self.top = max(self.top, found[2] if found else 0)
            time.sleep(0.005)

    def stop(self):
        self.running = False
        self.thread.join()
        return self.top
