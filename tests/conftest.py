# SPDX-License-Identifier: BSD-3-Clause
"""What all pytest functions share. In tests/mpi, `from common import a, run, ...` has the rest."""
import pathlib
import shutil
import sys

sys.path.append(str(pathlib.Path(__file__).parent / "support"))


def pytest_configure(config):
    config.addinivalue_line("markers", "long: for scripts/test long")


def pytest_sessionfinish(session, exitstatus):
    common = sys.modules.get("common")
    if common and exitstatus == 0:  # otherwise the files are evidence
        shutil.rmtree(common.folder, ignore_errors=True)
