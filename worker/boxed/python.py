"""The Python runner: runs the code of one session's calls, one after another, inside a code box.

Calls come over descriptor 3, a JSON object a line: {id, code, timeout, marker, quiet?}. Each is answered there with
{id, exit, value?, cut?}, or with {id, unreachable} when the browser could not be reached and nothing ran. Before the
answer the call's marker goes to stdout and stderr, so that the worker knows which output belongs to which call.

Code is compiled with top-level await into one namespace that lives as long as the runner. The value of a last bare
expression is the value of the call.
"""

import ast
import asyncio
import base64
import contextlib
import inspect
import json
import linecache
import os
import re
import socket
import sys
import time
import traceback

# Longest value of a last expression, characters.
VALUE_LIMIT = 1 << 20
# How long reaching the browser may take, milliseconds.
CONNECT_LIMIT = 5000
# How long a tab that others have opened is waited for, seconds.
TAB_LIMIT = 0.5
# How long Playwright's driver may take to end, seconds.
STOP_LIMIT = 1
# Longest request, bytes: 100,000 characters of code, each escaped.
REQUEST_LIMIT = 4 << 20

VALUE = "__weir_value__"

namespace = {"__name__": "__main__", "__builtins__": __builtins__}


# --- The code ----------------------------------------------------------------------------------------------------


class AwaitRun(ast.NodeTransformer):
    """Turns `asyncio.run(x)` outside of functions into `await x`: the loop runs already."""

    def visit_Call(self, node):
        self.generic_visit(node)
        target = node.func
        if (
            isinstance(target, ast.Attribute)
            and target.attr == "run"
            and isinstance(target.value, ast.Name)
            and target.value.id == "asyncio"
            and len(node.args) == 1
        ):
            return ast.copy_location(ast.Await(node.args[0]), node)
        return node

    def skip(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = skip


def compiled(code, name):
    tree = AwaitRun().visit(compile(code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(VALUE, ast.Store())], last.value), last)
    return compile(ast.fix_missing_locations(tree), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


async def run(code, name):
    """Runs the code of a call: (exit code, value of the last expression)."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    namespace.pop(VALUE, None)
    try:
        program = compiled(code, name)
        running = eval(program, namespace)
        if program.co_flags & inspect.CO_COROUTINE:
            await running
        value = namespace.pop(VALUE, None)
        # A script that ends with a coroutine means what the coroutine brings.
        return 0, (await value if inspect.iscoroutine(value) else value)
    except SystemExit as exit:
        if exit.code is None or isinstance(exit.code, int):
            return (exit.code or 0) & 0xFF, None
        flush()
        write_all(2, shown(str, exit.code) + "\n")
        return 1, None
    except BaseException as error:
        flush()
        write_all(2, shown(error_text, error))
        return 1, None


# --- What the caller reads ---------------------------------------------------------------------------------------


def text_of(value):
    """A value as text: strings as they are, bytes as base64, data as JSON, anything else as Python shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (dict, list, tuple)):
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            pass
    return repr(value)


def error_text(error):
    """An error as Python would print it, without the frames of the runner and of Playwright's inside."""

    def clean(one):
        while one is not None:
            hidden = (__file__, os.sep + "playwright" + os.sep)
            one.stack[:] = [frame for frame in one.stack if not any(part in frame.filename for part in hidden)]
            clean(one.__context__)
            one = one.__cause__

    trace = traceback.TracebackException.from_exception(error)
    clean(trace)
    return re.sub(r"\x1b\[[0-9;]*m", "", "".join(trace.format()))


def shown(to_text, value):
    """What `to_text` makes of a value. Objects are code, too: one that cannot be shown ends no call."""
    try:
        # A plain string, whatever a class of its own would say.
        return "".join([to_text(value)])
    except BaseException as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def write_all(descriptor, text):
    """Writes the whole text to a pipe that others may have made non-blocking."""
    rest = memoryview(text.encode(errors="backslashreplace"))
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            return


def make_blocking():
    """Has writes of the caller's code wait for a full pipe: what earlier code started may have left it non-blocking."""
    for descriptor in (1, 2):
        os.set_blocking(descriptor, True)


@contextlib.contextmanager
def own_stderr():
    """Lends `sys.stderr` an opening of its own of the same pipe.

    Playwright's driver inherits it and makes it non-blocking, which belongs to the opening and not to the descriptor: on
    ours, the caller's writes would fail as soon as the pipe is full.
    """
    shared = sys.stderr
    with open("/proc/self/fd/2", "w") as sys.stderr:
        try:
            yield
        finally:
            sys.stderr = shared


@contextlib.contextmanager
def way_out():
    """Has the program of Node that is started meanwhile, Playwright's driver, go out through the session's proxy."""
    before = os.environ.get("NODE_OPTIONS")
    os.environ["NODE_OPTIONS"] = f"--require {os.path.join(os.path.dirname(__file__), 'outside.cjs')} {before or ''}"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("NODE_OPTIONS", None)
        else:
            os.environ["NODE_OPTIONS"] = before


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


# --- The browser -------------------------------------------------------------------------------------------------


class Link:
    """A connection to the browser and what is known of its pages."""

    playwright = None

    def __init__(self, browser, control):
        self.browser = browser
        # A session with the browser itself.
        self.control = control
        # Ids of the tabs that were there at the last look.
        self.tabs = set()
        self.context = browser.contexts[0]
        # Page -> turn of its last opening or navigation.
        self.active = {}
        # Pages that code here has opened.
        self.own = set()
        self.clock = 0
        # Whether code has set a default timeout of its own.
        self.chosen_timeout = False
        for page in self.context.pages:
            self.follow(page)
        self.context.on("page", self.follow)
        self.open, self.limit = self.context.new_page, self.context.set_default_timeout
        self.context.new_page, self.context.set_default_timeout = self.new_page, self.set_default_timeout

    @classmethod
    async def connect(cls):
        from playwright.async_api import Error, async_playwright

        for attempt in (1, 2):
            if cls.playwright is None:
                with own_stderr(), way_out():
                    cls.playwright = await async_playwright().start()
            try:
                browser = await cls.playwright.chromium.connect_over_cdp(
                    os.environ["CDP_URL"],
                    timeout=CONNECT_LIMIT,
                    # Where every download of the session's browser goes, whoever asks for it.
                    artifacts_dir=os.path.join(os.environ["HOME"], "downloads"),
                )
                made = cls(browser, await browser.new_browser_cdp_session())
                await made.order()
                return made
            except Error:
                raise
            except Exception:
                # Playwright's driver is a process of its own; a dead one is replaced once.
                cls.playwright = None
                if attempt == 2:
                    raise

    async def order(self):
        """Puts the tabs that are there already in the order of their last navigation, as far as they answer."""

        async def began(page):
            try:
                return float(await asyncio.wait_for(page.evaluate("performance.timeOrigin"), TAB_LIMIT))
            except Exception:
                return 0

        pages = list(self.active)
        if len(pages) < 2:
            return
        times = await asyncio.gather(*map(began, pages))
        for _, page in sorted(zip(times, pages), key=lambda pair: pair[0]):
            if page in self.active:
                self.touch(page)

    async def give_up(self):
        """Forgets the connection, and Playwright's driver with it, which is a process of its own and may be gone."""
        lost.append(self.browser)
        driver, Link.playwright = Link.playwright, None
        try:
            await asyncio.wait_for(driver.stop(), STOP_LIMIT)
        except Exception:
            pass

    def follow(self, page):
        self.touch(page)
        page.on("framenavigated", lambda frame: frame == page.main_frame and self.touch(page))
        page.on("close", lambda _: self.active.pop(page, None))
        # Nothing can be done with a page whose renderer has died.
        page.on("crash", lambda _: self.active.pop(page, None))

    def touch(self, page):
        self.clock += 1
        self.active[page] = self.clock

    async def new_page(self, **options):
        page = await self.open(**options)
        self.own.add(page)
        return page

    def set_default_timeout(self, timeout):
        self.chosen_timeout = True
        self.limit(timeout)

    async def catch_up(self):
        """Waits until the library knows of what others have done.

        A tab that was closed before this call is not the one to use, and one that was opened may be. The browser's answer
        comes behind the events of tabs that are gone; a new tab has to be attached to, which takes the library a moment
        more.
        """
        found = (await self.control.send("Target.getTargets"))["targetInfos"]
        now = {target["targetId"] for target in found if target["type"] == "page"}
        is_new = not now <= self.tabs
        self.tabs = now
        until = time.monotonic() + TAB_LIMIT
        while is_new and time.monotonic() < until:
            if sum(len(context.pages) for context in self.browser.contexts) >= len(now):
                break
            await asyncio.sleep(0.01)

    async def live_page(self):
        """The page last active in the browser.

        A tab that code here opened into a variable of its own counts only when there is no other.
        """
        pages = sorted((page for page in self.active if not page.is_closed()), key=self.active.get, reverse=True)
        foreign = [page for page in pages if page not in self.own]
        return (foreign or pages or [None])[0] or await self.open()


def is_live(name, value):
    try:
        if name == "page" and value.is_closed():
            return False
        browser = value.context.browser if name == "page" else value.browser if name == "context" else value
        return browser not in lost and browser.is_connected()
    except Exception:
        return False


link = None
# Browsers of connections that were given up: Playwright goes on to call them connected.
lost = []
# Whether the last call has failed: it may be the connection that is broken.
is_doubtful = False
# What the runner itself has put under the three names.
given = {}


async def bind():
    """Points `page`, `context` and `browser` at what is live, except where code has put something live itself."""

    def kept(name):
        value = namespace.get(name)
        return value is not given.get(name) and is_live(name, value)

    if not kept("browser"):
        namespace["browser"] = given["browser"] = link.browser
    if not kept("context"):
        namespace["context"] = given["context"] = link.context
    if not kept("page"):
        namespace["page"] = given["page"] = await link.live_page()


async def ensure_browser(timeout, quiet=False):
    """Has a browser that is there, connected to again when the connection was lost.

    `quiet`: it was told nothing since the last look.
    """
    global link
    if (is_doubtful or not quiet) and link is not None and link.browser.is_connected():
        try:
            await link.catch_up()
        except Exception:
            # A connection that breaks is made again.
            await link.give_up()
            link = None
    if link is None or not link.browser.is_connected():
        link = await Link.connect()
    await bind()
    # Playwright's own error says more than a killed run, so it gets to speak first.
    if not link.chosen_timeout:
        link.limit(min(30_000, max(500, timeout * 0.9)))


# --- Calls -------------------------------------------------------------------------------------------------------


async def call(request):
    global is_doubtful
    answer = {"id": request["id"], "exit": 0}
    try:
        await ensure_browser(request["timeout"], request.get("quiet", False))
    except Exception as error:
        answer["unreachable"] = str(error)
    else:
        make_blocking()
        answer["exit"], value = await run(request["code"], f"execute-{request['id']}.py")
        is_doubtful = answer["exit"] != 0
        if value is not None:
            text = shown(text_of, value)
            # Half of a surrogate pair cannot be written as JSON.
            answer["value"] = text[:VALUE_LIMIT].encode(errors="replace").decode()
            answer["cut"] = len(text) > VALUE_LIMIT
    flush()
    write_all(1, request["marker"])
    write_all(2, request["marker"])
    return answer


async def main():
    control = socket.socket(fileno=3)
    control.set_inheritable(False)
    reader, writer = await asyncio.open_connection(sock=control, limit=REQUEST_LIMIT)

    async def send(message):
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()

    # Connecting now saves the first call the wait; if it fails, that call says so.
    unreachable = False
    try:
        await ensure_browser(CONNECT_LIMIT)
    except Exception:
        unreachable = True
    await send({"ready": True, "unreachable": unreachable})
    while line := await reader.readline():
        await send(await call(json.loads(line)))
    # Without a worker there is nothing left to do.
    os._exit(0)


# Output of a run that is killed is worth having, so it does not wait in a buffer.
sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
sys.path[0] = os.getcwd()
asyncio.run(main())
