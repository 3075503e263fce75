# SPDX-License-Identifier: BSD-3-Clause
"""`latecomer top` in a terminal: it draws the size of the window, follows a resize, ends on q and on Ctrl-C, and gives the
user's screen and settings back."""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from common import a, check, finish, folder, patience, run

sys.path.append(a.root + "/tests/support")
from processes import end_tree

TAKE, GIVE_BACK = b"\033[?1049h", b"\033[?1049l"


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
        """The complete drawings, as (rows, longest line, status): each begins at the top and ends with the status."""
        out = []
        for frame in self.text.split(b"\033[H")[1:]:
            found = re.match(rb"(.*?)\033\[J\033\[(\d+);1H\033\[7m(.*?)\033\[0m", frame, re.S)
            if found:
                lines = re.sub(rb"\033\[K", b"", found[1]).decode().split("\r\n")[:-1]
                out.append((len(lines) + 1, max(map(len, lines), default=0), int(found[2]), found[3].decode(), lines))
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
    check(all(rows <= 24 and longest <= 80 and at == 24 for rows, longest, at, *_ in frames), f"within 24 lines of 80 characters: {[f[:3] for f in frames]}")
    check("q quits" in frames[0][3] and "do not fit" in frames[0][3], f"the last line says how to end it: {frames[0][3]}")
    check(any("Now: " in line for line in frames[0][4]), f"it shows the present: {frames[0][4]}")
    check(terminal.text.startswith(TAKE) and b"\033[2J" not in terminal.text, "it uses the other screen, and does not clear it between two drawings")
    check(not termios.tcgetattr(terminal.slave)[3] & (termios.ICANON | termios.ECHO), "keys need no Enter")
    terminal.resize(50, 200)
    check(terminal.read(lambda text: any(f[2] == 50 for f in terminal.frames())), "a larger window is filled")
    large = [f for f in terminal.frames() if f[2] == 50][-1]
    check(large[0] > 24 and large[1] > 80, f"with more lines and longer ones: {large[:3]}")
    terminal.resize(5, 20)
    check(terminal.read(lambda text: any(f[2] == 5 for f in terminal.frames())), "a small window works")
    check(all(rows <= 5 and longest <= 20 for rows, longest, at, *_ in terminal.frames() if at == 5), "and is not overfilled")
    os.write(terminal.master, b"q")
    check(terminal.ended() == 0 and terminal.text.rstrip().endswith(GIVE_BACK), f"q ends it: {terminal.text[-80:]}")
    check(termios.tcgetattr(terminal.slave)[3] == terminal.settings[3], "and the settings of the terminal are back")

    terminal = Terminal(24, 80, a.cli, "top", "--seconds", "60", profile)
    terminal.read(lambda text: len(terminal.frames()) >= 1)
    os.write(terminal.master, b" ")
    check(terminal.read(lambda text: len(terminal.frames()) >= 2), "space refreshes at once")
    os.write(terminal.master, b"\x1a")
    check(terminal.read(lambda text: GIVE_BACK in text), "Ctrl-Z gives the screen back")
    state = pathlib.Path(f"/proc/{terminal.process.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "T" and time.time() < deadline + 60:
        time.sleep(0.05)
    terminal.process.send_signal(signal.SIGCONT)
    check(terminal.read(lambda text: text.count(TAKE) == 2 and len(terminal.frames()) >= 3), "and the command goes on afterwards")
    os.write(terminal.master, b"\x03")
    check(terminal.ended() == 0 and terminal.text.rstrip().endswith(GIVE_BACK) and termios.tcgetattr(terminal.slave)[3] == terminal.settings[3], f"Ctrl-C ends it: {terminal.text[-80:]}")

    terminal = Terminal(24, 80, a.cli, "top", "--once", profile)
    check(terminal.ended() == 0 and b"\033" not in terminal.text and b"wait, sum" in terminal.text, "--once prints plain text, on a terminal, too")
    terminal = Terminal(24, 80, a.cli, "top", "--seconds", "0.2", profile)
    terminal.read(lambda text: len(terminal.frames()) >= 1)
    end_tree(job)
    for path in pathlib.Path(f"{profile}.parts").glob("*"):
        path.unlink()
    pathlib.Path(f"{profile}.parts").rmdir()
    check(terminal.ended() == 0 and b"The job has ended" in terminal.text.split(GIVE_BACK)[-1], f"the end of the job is said on the user's screen: {terminal.text[-200:]}")
finally:
    end_tree(job)
finish()
