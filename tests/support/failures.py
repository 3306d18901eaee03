"""Says in short what failed in a run of the tests, for the end of a long log.

    python3 failures.py junit.xml
"""
import sys
import xml.etree.ElementTree as ElementTree

TESTS, LINES, WIDTH = 20, 25, 600


def said(case):
    """The last lines of what a test has said, without its backtrace."""
    text = "\n".join(part.text or "" for part in case if part.tag in ("system-out", "system-err"))
    lines, in_trace = [], False
    for line in text.splitlines():
        in_trace = line.startswith("stack backtrace:") or (in_trace and line.startswith(" "))
        if line.strip() and not in_trace:
            lines.append(line[:WIDTH])
    return lines[-LINES:]


def main(path):
    try:
        cases = ElementTree.parse(path).iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        return print(f"no report of the tests: {error}")
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    for case in failed[:TESTS]:
        print(f"\n-- {case.get('classname')} {case.get('name')} ({case.get('time')} s)")
        print("\n".join(said(case)))
    if len(failed) > TESTS:
        print(f"\nand {len(failed) - TESTS} more")


if __name__ == "__main__":
    main(sys.argv[1])
