# SPDX-License-Identifier: BSD-3-Clause
"""What the pytest functions of this folder share. `from common import a, run, ...` has the rest."""
import pathlib
import shutil
import sys

sys.path += [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "support")]


def pytest_sessionfinish(session, exitstatus):
    common = sys.modules.get("common")
    if common and exitstatus == 0:  # otherwise the files are evidence
        shutil.rmtree(common.folder, ignore_errors=True)
