"""What schemathesis sends reaches nothing but the service: addresses are brought to ones that end at once.

Every second page is on loopback, which the service under test refuses, the others have a name that does not exist.
"""
import itertools
from urllib.parse import urlsplit

import schemathesis

PAGES = itertools.cycle(["http://127.0.0.1:2/page", "http://nowhere.invalid/page"])


def is_address(text):
    """Whether the service might take it for an address."""
    try:
        host = urlsplit(text if "://" in text else "http://" + text).hostname
    except ValueError:
        return False
    return bool(host) and ("." in host or ":" in host or host.isdigit() or host.startswith("0x"))


def brought_home(value, key=None):
    if isinstance(value, dict):
        return {name: brought_home(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [brought_home(part, key) for part in value]
    if isinstance(value, str) and key in ("url", "urls", "webhook") and is_address(value):
        return next(PAGES)
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, (dict, list)):
        case.body = brought_home(case.body)
