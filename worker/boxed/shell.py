"""The shell runner: runs each call's script in a shell of its own, one after another, inside a code box.

Calls come over descriptor 3, a JSON object a line: {id, code, marker}. Each is answered there with {id, exit}. What a
script leaves running ends with it. Before the answer the call's marker goes to stdout and stderr, so that the worker
knows which output belongs to which call.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time

# Longer scripts go through a file, bytes: the kernel takes at most 128 KiB as one argument.
ARGUMENT_LIMIT = 100_000
SCRIPT = os.path.join(os.environ.get("TMPDIR", "/tmp"), ".script")
PR_SET_CHILD_SUBREAPER = 36


def run(code):
    """Runs one script; its exit code, 128 and the signal's number when a signal ended it."""
    script = code.encode(errors="surrogatepass").replace(b"\0", b"")
    if len(script) <= ARGUMENT_LIMIT:
        command = ["bash", "-c", script, "bash"]
    else:
        with open(SCRIPT, "wb") as file:
            file.write(script)
        command = ["bash", SCRIPT]
    shell = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    # Also reaps what the script has orphaned.
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == shell.pid:
            break
    shell.returncode = code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def children():
    """The processes whose parent is this one."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == os.getpid():
                yield int(name)


def end_leftovers():
    """Kills what the script left running: orphans become our children, so their children do once they are dead.

    Returns whether nothing is left.
    """
    deadline = time.monotonic() + 1
    swept = False
    while left := list(children()):
        if time.monotonic() > deadline:
            return False
        swept = True
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass
    if swept:
        forget_dead_daemons()
    return True


def forget_dead_daemons():
    """Removes the traces of agent-browser daemons that were among the leftovers, so that the next one starts well."""
    folder = os.environ["AGENT_BROWSER_SOCKET_DIR"]
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".sock")]
    except OSError:
        return
    for name in names:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(os.path.join(folder, name))
            except ConnectionRefusedError:
                try:
                    os.unlink(os.path.join(folder, name))
                except OSError:
                    pass
            except OSError:
                pass


def write_all(descriptor, text):
    """Writes the whole text to a pipe that others may have made non-blocking."""
    rest = memoryview(text.encode())
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            return


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control = socket.socket(fileno=3)
    control.set_inheritable(False)

    def send(message):
        control.sendall(json.dumps(message).encode() + b"\n")

    send({"ready": True})
    for line in control.makefile("rb"):
        request = json.loads(line)
        for descriptor in (1, 2):
            # Programs of an earlier call may have left it non-blocking.
            os.set_blocking(descriptor, True)
        answer = {"id": request["id"], "exit": run(request["code"])}
        clean = end_leftovers()
        write_all(1, request["marker"])
        write_all(2, request["marker"])
        send(answer)
        if not clean:
            # What cannot be killed from here ends with the box.
            sys.exit(1)


main()
