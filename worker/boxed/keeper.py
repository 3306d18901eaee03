"""Keeps the daemons of agent-browser, in a box that outlives the calls of the shell.

agent-browser is a command that talks to a daemon over a unix socket; element references and the current tab live in
the daemon. The daemon must therefore survive a call, and a call that is killed, but end when it no longer answers.
Daemons are asked for through a FIFO beside their sockets, a line each: `start NAME` or `restart NAME`. On descriptor 3
the worker sends a line after a killed call; daemons that no longer answer then are ended before it is answered.
"""

import ctypes
import os
import re
import select
import signal
import socket
import subprocess

FOLDER = os.environ["AGENT_BROWSER_SOCKET_DIR"]
FIFO = os.path.join(FOLDER, "keeper")
# More daemons than this are not kept for one session.
DAEMONS = 4
# How long a start may take, seconds.
START_LIMIT = 10
# How long a daemon may take to answer, seconds.
ANSWER_LIMIT = 0.5
PR_SET_CHILD_SUBREAPER = 36


def traces(name):
    return [os.path.join(FOLDER, f"{name}.{kind}") for kind in ("sock", "pid", "version", "config", "stream")]


def forget(name):
    for path in traces(name):
        try:
            os.unlink(path)
        except OSError:
            pass


def names():
    return [entry[: -len(".sock")] for entry in os.listdir(FOLDER) if entry.endswith(".sock")]


def answers(name):
    """Whether the daemon answers at all."""
    try:
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.settimeout(ANSWER_LIMIT)
            daemon.connect(traces(name)[0])
            daemon.sendall(b'{"id":"keeper","action":"url"}\n')
            return bool(daemon.recv(1))
    except OSError:
        return False


def start(name):
    """Starts a daemon by the command itself, which knows how; it stays our child."""
    if len(names()) >= DAEMONS:
        return
    forget(name)
    program = os.environ["AGENT_BROWSER"]
    command = [program, "--session", name, "--cdp", os.environ["CDP_URL"], "get", "url"]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_LIMIT)
    except subprocess.TimeoutExpired:
        stop(name)


def stop(name):
    try:
        with open(traces(name)[1]) as file:
            pid = int(file.read())
        if pid > 1 and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError):
        pass
    forget(name)


def obey(line):
    words = re.fullmatch(r"(start|restart) ([A-Za-z0-9_-]{1,32})", line)
    if not words:
        return
    verb, name = words.groups()
    if verb == "restart":
        stop(name)
    if not answers(name):
        start(name)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control = socket.socket(fileno=3)
    control.set_inheritable(False)
    os.makedirs(FOLDER, exist_ok=True)
    try:
        os.unlink(FIFO)
    except OSError:
        pass
    os.mkfifo(FIFO)
    # Open for both directions, so that it never ends.
    fifo = os.open(FIFO, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    for name in names():
        forget(name)
    start("default")
    control.sendall(b'{"ready":true}\n')
    while True:
        ready, _, _ = select.select([control, fifo], [], [], 60)
        reap()
        if control in ready:
            if not control.recv(4096):
                return
            for name in names():
                if not answers(name):
                    stop(name)
            control.sendall(b"{}\n")
        if fifo in ready:
            for line in os.read(fifo, 4096).decode(errors="replace").splitlines():
                obey(line)


main()
