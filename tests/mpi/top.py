# SPDX-License-Identifier: BSD-3-Clause
"""`latecomer top` in a terminal: it draws the size of the window, follows a resize, ends on Ctrl-C, and leaves the settings of
the terminal and the user's text as they are."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from common import a, check, finish, folder, patience, run

sys.path.append(a.root + "/tests/support")
from processes import end_tree


class Terminal:
    """A command with a terminal of its own. `text`: all bytes that it wrote."""

    def __init__(self, rows, columns, *words):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.settings = termios.tcgetattr(slave)
        self.slave = slave

        def start():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(list(map(str, words)), stdin=slave, stdout=slave, stderr=slave, preexec_fn=start)
        self.text = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, condition, seconds=30):
        deadline = time.time() + patience * seconds
        while not condition(self.text) and time.time() < deadline:
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536)
            elif self.process.poll() is not None:
                break
        return condition(self.text)

    def frames(self):
        """The complete drawings, as (rows, longest line, status, lines): each begins at the top and ends with the status."""
        out = []
        for frame in self.text.split(b"\033[H")[1:]:
            found = re.match(rb"(.*?)\033\[J\033\[7m(.*?)\033\[0m\r\n", frame, re.S)
            if found:
                lines = re.sub(rb"\033\[K", b"", found[1]).decode().split("\r\n")[:-1]
                out.append((len(lines) + 2, max(map(len, [*lines, found[2].decode()])), found[2].decode(), lines))
        return out

    def ended(self, seconds=10):
        try:
            status = self.process.wait(patience * seconds)
        except subprocess.TimeoutExpired:
            end_tree(self.process)
            return None
        self.read(lambda text: False, 0.3)
        return status


profile = folder / "job.json"
job = subprocess.Popen([a.cli, "run", "--output", profile, "--overwrite", "--", "-n", "4", pathlib.Path(a.bin) / "hang", "none", "100000000"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
try:
    deadline = time.time() + patience * 60
    while time.time() < deadline and "wait, sum" not in run(a.cli, "top", "--once", profile).stdout:
        time.sleep(0.2)

    terminal = Terminal(24, 80, a.cli, "top", "--seconds", "0.3", profile)
    check(terminal.read(lambda text: len(terminal.frames()) >= 3), "it draws again and again")
    frames = terminal.frames()
    check(all(rows <= 24 and longest <= 80 for rows, longest, *_ in frames), f"within 24 lines of 80 characters: {[f[:2] for f in frames]}")
    check("Ctrl-C ends it" in frames[0][2] and "do not fit" in frames[0][2], f"the last line says how to end it: {frames[0][2]}")
    check(any("Now: " in line for line in frames[0][3]), f"it shows the present: {frames[0][3]}")
    check(terminal.text.startswith(b"\r\n" * 24) and b"\033[2J" not in terminal.text, "the user's text moves up, and nothing is cleared between two drawings")
    terminal.resize(50, 200)
    check(terminal.read(lambda text: any(f[0] > 24 and f[1] > 80 for f in terminal.frames())), "a larger window has more lines and longer ones")
    terminal.resize(5, 20)
    check(terminal.read(lambda text: terminal.frames()[-1][0] <= 5 and terminal.frames()[-1][1] <= 20), "a small window is not overfilled")
    os.write(terminal.master, b"\x03")
    check(terminal.ended() == -2, f"Ctrl-C ends it: {terminal.text[-80:]}")
    check(termios.tcgetattr(terminal.slave) == terminal.settings, "the settings of the terminal stay")

    terminal = Terminal(24, 80, a.cli, "top", "--once", profile)
    check(terminal.ended() == 0 and b"\033" not in terminal.text and b"wait, sum" in terminal.text, "--once prints plain text, on a terminal, too")
    terminal = Terminal(24, 80, a.cli, "top", "--seconds", "0.2", profile)
    terminal.read(lambda text: len(terminal.frames()) >= 1)
    end_tree(job)
    for path in pathlib.Path(f"{profile}.parts").glob("*"):
        path.unlink()
    pathlib.Path(f"{profile}.parts").rmdir()
    check(terminal.ended() == 0 and b"The job has ended" in terminal.text.split(b"\033[0m")[-1], f"the end of the job is said below: {terminal.text[-200:]}")
finally:
    end_tree(job)
finish()
