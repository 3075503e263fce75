# SPDX-License-Identifier: BSD-3-Clause
"""Takes the pictures of scripts/screenshots. Usage: pictures.py LATECOMER KEPT ALL, the folders for the pictures that the
documentation shows and for all of them."""
import pathlib
import subprocess
import sys
import tempfile

from browser import Browser
from profiles import write_profile

command, kept, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
JOBS = {4: dict(sites=6, record=400), 64: dict(sites=40, record=1500), 10000: dict(sites=1000, record=120)}
# The pictures of the documentation: ranks, width, scheme, height in pixels.
KEPT = [(64, 1200, "light", 1035), (10000, 2000, "dark", 1045), (4, 600, "light", 1215)]

kept.mkdir(exist_ok=True)
folder.mkdir(exist_ok=True)
with tempfile.TemporaryDirectory() as name, Browser(pathlib.Path(name) / "browser") as browser:
    for ranks, job in JOBS.items():
        profile, page = pathlib.Path(name) / "profile.json", pathlib.Path(name) / "page.html"
        write_profile(profile, ranks, **job)
        subprocess.run([command, "report", "--html", page, profile], check=True)
        text = subprocess.run([command, "report", "--all", "--top", "2", profile], check=True, capture_output=True, text=True).stdout
        (folder / f"report-{ranks}.txt").write_text(text)
        for scheme in ("light", "dark"):
            for width in (600, 1200, 1400, 2000):
                browser.open(page, width, 900, scheme)
                browser.picture(folder / f"page-{ranks}-{width}-{scheme}.png")
                for _, _, _, height in (k for k in KEPT if k[:3] == (ranks, width, scheme)):
                    picture = kept / f"page-{ranks}-{width}-{scheme}.png"
                    browser.picture(picture, height)
                    subprocess.run(["pngquant", "--force", "--speed", "1", "--nofs", "--strip", "--output", picture, "48", picture], check=True)
print(f"pictures are in {kept} and {folder}")
