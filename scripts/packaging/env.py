"""Writes the file of settings of an installed Weir, /etc/weir/weir.env, from README's table.

    env.py NAME=VALUE…        what is set in it; everything else stands there with its default, as a comment

The table is the only place where settings are explained; here they stand in its words.
"""

import re
import sys
import textwrap
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
HEAD = """\
# Settings of Weir: of weir.service and of every weir-worker@.service. After a change:
#
#   systemctl restart weir.service 'weir-worker@*.service'
#
# A line with # before its name is not read: it shows the default. Durations read like 200ms, 5s, 24h. A wrong setting
# stops the start with one line that names it and what is allowed (journalctl -u weir.service).
#
# Relative paths begin in /var/lib/weir. The API's address stands in weir.socket too: both change together.
"""


def rows():
    """Names, defaults and meaning of each row of the table."""
    text = README.read_text()
    section = text[text.index("\n## Settings\n") :]
    for line in section.split("\n## ", 2)[1].splitlines():
        if not line.startswith("| `"):
            continue
        names, default, meaning = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        yield re.findall(r"`([A-Z_0-9]+)`", names), default, meaning.replace("\\|", "|")


def plain(text):
    """Markdown's code marks and links out."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def first(meaning, about):
    """A sentence begins with a capital, the value of a setting as it is written."""
    return about if meaning.startswith("`") else about[0].upper() + about[1:]


def defaults(names, cell):
    """The default of each name; empty where the table has words instead of a value."""
    values = cell.split(" / ") if len(names) > 1 else [cell]
    values += [values[-1]] * (len(names) - len(values))
    for value in values:
        value = value.strip()
        whole = re.fullmatch(r"`([^`]*)`", value)
        is_value = whole or re.fullmatch(r"[\d.]+", value)
        yield (whole.group(1) if whole else value) if is_value else ""


def quoted(value):
    """As systemd and a shell read it alike."""
    return f'"{value}"' if re.search(r"[\s#;*]", value) else value


def main(arguments):
    """Prints the file."""
    given = dict(argument.split("=", 1) for argument in arguments)
    print(HEAD)
    for names, cell, meaning in rows():
        about = plain(meaning)
        words = "" if re.fullmatch(r"[`\d]*[^a-z]*[`\d]*", cell) or cell.startswith("`") or cell == "none" else f" (default: {plain(cell)})"
        for line in textwrap.wrap(first(meaning, about) + words, 116):
            print("#", line)
        for name, default in zip(names, defaults(names, cell)):
            print(f"{name}={quoted(given.pop(name))}" if name in given else f"#{name}={quoted(default)}")
        print()
    if given:
        sys.exit(f"env.py: README's table does not know {', '.join(given)}")


main(sys.argv[1:])
