"""The benchmark of site templates: boilerplate that is left in the main content without and with what is known of the
site's other pages, over the test site's templates and the corpus's hosts of ten pages or more."""
import collections
import json
import pathlib
import subprocess
import tempfile
import urllib.parse

from quality import SECONDS, corpus, program, scorer, stored

KINDS = ("gazette", "outlet", "clinic")
"""The test site's templates."""
PAGES = 24
"""Pages of each. All are learned from before one is measured."""
LEAST = 10
"""Pages of a host of the corpus."""
THIRD = 33.4
"""Of the boilerplate without templates so much may be left, percent."""


def made(binary, url, page, site=None):
    """Markdown of a page, and the site's knowledge with it."""
    words = [binary, "--markdown", "--url", url, *(["--site", site] if site else [])]
    return subprocess.run(words, input=page, capture_output=True, timeout=SECONDS, check=True).stdout.decode()


def both(binary, pages):
    """Markdown of each page without and with what all of them have taught."""
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder) / "site"
        for url, page in pages:
            made(binary, url, page, site)
        return [(made(binary, url, page), made(binary, url, page, site)) for url, page in pages]


def letters(text):
    return "".join(filter(str.isalnum, text))


def templates(report, site, databases, scale):
    """Boilerplate left with the templates of sites, of what is left without them: characters of the test site's three
    templates, whose truth is known, and words of the corpus's hosts of ten pages or more that stand on most of the host's
    pages and are not in the truth; and what of the truth is lost."""
    binary = program()
    for kind in KINDS:
        paths = [f"/{kind}/{n}" for n in range(PAGES)]
        pages = [(site.url(path), site.client.call("GET", path)[1]) for path in paths]
        left, said, lost = [0, 0], 0, 0
        for path, texts in zip(paths, both(binary, pages), strict=True):
            truth = json.loads(site.client.call("GET", f"/_ctl/truth?path={path}")[1])
            texts = [letters(text) for text in texts]
            for n, text in enumerate(texts):
                left[n] += sum(len(letters(part)) for part in truth["boilerplate"] if letters(part) in text)
            said += len(truth["main"])
            lost += sum(letters(part) not in texts[1] for part in truth["main"])
        share(report, f"templates: {kind}", left, f"{lost} of {said} texts of the pages lost")
        report.failed |= lost > 0
    place = corpus()
    if place is None:
        print("templates: the corpus is not here (WEIR_BENCH_CORPUS names its directory)")
        return
    hosts = collections.defaultdict(list)
    for item in scorer(place).load(place / "wcxb" / "items.jsonl"):
        hosts[urllib.parse.urlsplit(item["url"] or "").netloc].append(item)
    for host, items in hosts.items():
        if len(items) >= LEAST:
            of_host(report, place, binary, host, items)


def of_host(report, place, binary, host, items):
    score = scorer(place)
    texts = both(binary, [(item["url"], stored(place, "wcxb", item)) for item in items])

    def lines(text):
        """Lines with their words."""
        words = {line: tuple(score.tokens(score.strip_markdown(line))) for line in text.splitlines()}
        return {words for words in words.values() if words}

    pages = collections.Counter(line for text, _ in texts for line in lines(text))
    left, recall = [0, 0], [0.0, 0.0]
    for item, made_ in zip(items, texts, strict=True):
        truth = collections.Counter(score.tokens(item["text"]))
        for n, text in enumerate(made_):
            common = [line for line in lines(text) if 2 * pages[line] > len(items)]
            left[n] += sum(len(line) for line in common if sum(word in truth for word in line) * 2 <= len(line))
            words = collections.Counter(score.tokens(score.strip_markdown(text)))
            recall[n] += 100 * sum((words & truth).values()) / max(1, sum(truth.values())) / len(items)
    share(report, f"templates: {host}, {len(items)} pages", left, f"recall {recall[0]:.2f} to {recall[1]:.2f}")


def share(report, name, left, note):
    percent = 100 * left[1] / max(1, left[0])
    report.line(name, percent, "% left", ("<=", THIRD), note=f"{left[0]} to {left[1]}, {note}")
