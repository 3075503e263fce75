# SPDX-License-Identifier: BSD-3-Clause
"""`cmake --install` into a prefix that is then moved. The command finds its library, programs find the header by
CMake and by pkg-config, and the man pages are readable."""
import json
import os
import pathlib
import re
import shutil

from common import a, check, finish, folder, run
from open_mpi import ENVIRONMENT

configure = ("cmake", "-G", "Ninja")  # the tool that builds latecomer: make may not be here
first, prefix = folder / "first", folder / "elsewhere"
done = run("cmake", "--install", a.build, "--prefix", first)
check(done.returncode == 0, f"cmake --install: {done.stderr[-300:]}")
first.rename(prefix)
built = [p for p in prefix.rglob("*") if p.is_file() and not p.is_symlink() and (p.suffix in (".so", ".a") or p.stat().st_mode & 0o111) and p.read_bytes()[:2] != b"#!"]
wanted = {"latecomer", "latecomer-calibrate", "liblatecomer.so", "liblatecomer-mpich.so", "liblatecomer_symbols.so", "liblatecomer_client.a", "liblatecomer_core.a", "liblatecomer_range.a"}
with_openmpi = (pathlib.Path(a.build) / "lib/liblatecomer-openmpi.so").exists()
if with_openmpi:
    wanted |= {"latecomer-calibrate-openmpi", "liblatecomer-openmpi.so", "liblatecomer_range_openmpi.a"}
if (pathlib.Path(a.build) / "lib/liblatecomer-abi.so").exists():
    wanted.add("liblatecomer-abi.so")
check({p.name for p in built} == wanted and len(built) == len(wanted), f"what was compiled and installed: {[p.name for p in built]}")
for file in built:
    sections = run("readelf", "-SW", file).stdout
    check(".text" in sections and ".debug_" not in sections, f"{file.name}, {file.stat().st_size} bytes, has no debugging information")
command = prefix / "bin/latecomer"
libraries = next(prefix.rglob("liblatecomer.so")).parent

done = run(command, "run", "--output", folder / "out.json", "--", "-n", 2, a.bin + "/patterns", 60, 10, LD_PRELOAD=a.support)
check(done.returncode == 0 and (folder / "out.json").exists(), f"run finds the library: {done.stderr}")
check(run(command, "report", folder / "out.json").returncode == 0, "report")
done = run(command, "calibrate", "-n", 2)
check(done.returncode == 0 and "alpha_us" in done.stdout, f"calibrate finds its helper: {done.stderr}")

check(re.fullmatch(r"latecomer \d+\.\d+\.\d+( \([\w.-]+\))?\n", run(command, "--version").stdout), f"the version: {run(command, '--version').stdout}")

# The launchers for all users observe, start the one behind them, and leave containers and other words alone.
launchers, real = prefix / "share/latecomer/launchers", folder / "real"
real.mkdir()
for name, text in (("mpiexec", f'exec {shutil.which(a.mpiexec)} "$@"'), ("apptainer", 'echo "[$LD_PRELOAD]"')):
    (real / name).write_text(f"#!/bin/sh\n{text}\n")
    (real / name).chmod(0o755)
paths = f"{launchers}:{real}:/usr/bin:/bin"
done = run("mpiexec", "-n", 2, a.bin + "/patterns", 60, 10, PATH=paths, LD_PRELOAD=a.support, LATECOMER_OUTPUT=folder / "by_launcher.json")
check(done.returncode == 0 and (folder / "by_launcher.json").exists(), f"mpiexec of all users observes: {done.stderr}")
done = run("mpiexec", "-n", 2, a.bin + "/patterns", 60, 10, PATH=paths, LD_PRELOAD=a.support, LATECOMER_OUTPUT=folder / "off.json", LATECOMER_DISABLE="1")
check(done.returncode == 0 and not (folder / "off.json").exists(), f"and does not if a user says so: {done.stderr}")
done = run("mpiexec", "-n", 1, "apptainer", "exec", "image.sif", "program", PATH=paths, LATECOMER_OUTPUT=folder / "off.json")
check(done.returncode == 0 and done.stdout == "[]\n", f"it preloads nothing onto a container tool: {done.stdout} {done.stderr}")
check(run("mpiexec", "-version", PATH=paths).stdout == run(a.mpiexec, "-version").stdout, "and starts the launcher alone without a program")

# The module finds the prefix from its own place, and sets no preload.
module = next((prefix / "share/modulefiles/latecomer").iterdir())
text = module.read_text()
up = re.search(r"\$ModulesCurrentModulefile\]\] (\S+)\]\]", text)[1]
check((module.parent / up).resolve() == prefix.resolve() and "prepend-path LD_PRELOAD" not in text, f"the prefix of the module: {up}")
for name in re.findall(r"^prepend-path \w+ \$prefix(\S*)", text, re.M):
    check((prefix / name.lstrip("/")).is_dir(), f"the module names a folder that exists: {name}")

shutil.copytree(prefix, folder / "a b", symlinks=True)
done = run(folder / "a b/bin/latecomer", "run", "--", "-n", 1, "true")
check(done.returncode == 2 and "LD_PRELOAD cannot name" in done.stderr, f"a path that LD_PRELOAD cannot hold is refused: {done.stderr}")

for name in ("bash-completion/completions/latecomer", "zsh/site-functions/_latecomer"):
    check((prefix / "share" / name).read_text().count("--policy") > 0, f"completion is installed: {name}")

client = folder / "client"
client.mkdir()
(client / "client.c").write_text("""#include <latecomer.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  double in = 1, out;
  int before = latecomer_flush(), rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int during = latecomer_flush();
  latecomer_edge(0.5);
  latecomer_edge(-1.0);
  MPI_Pcontrol(LATECOMER_EDGE, 1.0);
  MPI_Pcontrol(1);
  MPI_Pcontrol(LATECOMER_EDGE + 1, 0.1, 0.2, 0.3);
  if (rank == 0 && argc > 1) MPI_Abort(MPI_COMM_WORLD, 9);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) printf("[%s] %d %d %d\\n", latecomer_version(), before, during, latecomer_flush());
  return 0;
}
""")
(client / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.20)
project(client C)
find_package(latecomer 0.1 REQUIRED)
message(STATUS "preload ${LATECOMER_LIBRARY}, command ${LATECOMER_COMMAND}")
add_executable(client client.c)
target_link_libraries(client latecomer::latecomer)
add_executable(with_client client.c)
target_link_libraries(with_client latecomer::client)
""")
done = run(*configure, "-S", client, "-B", client / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_COMPILER=mpicc.mpich")
check(done.returncode == 0 and f"preload {libraries}/liblatecomer.so, command {command}" in done.stdout, f"find_package: {done.stdout[-400:]} {done.stderr[-400:]}")
done = run("cmake", "--build", client / "build")
check(done.returncode == 0, f"builds: {done.stdout[-400:]}")
program = client / "build/client"
done = run(a.mpiexec, "-n", 2, program)
check(done.stdout == "[] 1 1 1\n", f"without the preload: {done.stdout!r} {done.stderr!r}")
done = run(command, "run", "--output", folder / "client.json", "--", "-n", 2, program)
check(done.stdout == "[0.1.0] 1 0 1\n", f"with it: {done.stdout!r} {done.stderr!r}")
edges = json.loads((folder / "client.json").read_text())["job"]["edges"]
check(edges == {"calls": 4, "mean_fraction": 0.75}, f"edges by latecomer_edge and MPI_Pcontrol are recorded: {edges}")
done = run(command, "run", "--output", folder / "aborted.json", "--", "-n", 2, program, "abort")
check(run(command, "recover", folder / "aborted.json").returncode == 0, "what was flushed can be recovered")

paths = dict(PKG_CONFIG_PATH=str(libraries / "pkgconfig"))
flags = run("pkg-config", "--cflags", "latecomer", **paths).stdout.strip()
done = run("sh", "-c", f"mpicc.mpich {flags} client.c -o by_pkg_config", cwd=client)
check(done.returncode == 0, f"pkg-config --cflags: {flags}: {done.stderr}")
preload = pathlib.Path(run("pkg-config", "--variable=preload", "latecomer", **paths).stdout.strip())
check(preload.exists(), f"pkg-config --variable=preload: {preload}")
done = run(a.mpiexec, "-genv", "LD_PRELOAD", preload, "-genv", "LATECOMER_OUTPUT", folder / "pc.json", "-n", 2, client / "by_pkg_config")
check(done.stdout == "[0.1.0] 1 0 1\n", f"preloaded by hand: {done.stdout!r} {done.stderr!r}")

# Range communicators from C and C++, by CMake and by pkg-config, without preload.
(client / "part.c").write_text("""#include <latecomer/range.h>
#include <stdio.h>
int main(int argc, char** argv) {
  latecomer_range all, odd;
  int rank, sum = -1;
  MPI_Init(&argc, &argv);
  latecomer_range_attach(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  latecomer_range_create(&all, 1, all.size - 1, 2, &odd);
  if (odd.rank != MPI_UNDEFINED) latecomer_range_allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, &odd);
  if (odd.rank == 0) printf("%d\\n", sum);
  MPI_Finalize();
  return 0;
}
""")
(client / "part.cpp").write_text("""#include <latecomer/range.hpp>
#include <cstdio>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    latecomer::range::Comm all;
    all.attach(MPI_COMM_WORLD);
    const auto back = all.part(all.size() - 1, 0, -1);
    int mine = back.rank(), sum = -1;
    back.scan(&mine, &sum, 1, MPI_INT, MPI_SUM);
    if (back.rank() == back.size() - 1) std::printf("%d\\n", sum);
  }
  MPI_Finalize();
}
""")


def build_parts(mpi, suffix, mpiexec, **environment):
    (client / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.20)
project(part C CXX)
find_package(latecomer 0.1 REQUIRED)
add_executable(part part.c)
target_link_libraries(part latecomer::range{suffix})
add_executable(part_cpp part.cpp)
target_link_libraries(part_cpp latecomer::range{suffix})
""")
    built, package = client / f"parts{suffix}", "latecomer-range" + suffix.replace("_", "-")
    done = run(*configure, "-S", client, "-B", built, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER=mpicc.{mpi}", f"-DCMAKE_CXX_COMPILER=mpicxx.{mpi}")
    done = run("cmake", "--build", built) if done.returncode == 0 else done
    check(done.returncode == 0, f"latecomer::range{suffix} builds: {done.stdout[-600:]} {done.stderr[-600:]}")
    check(run(mpiexec, "-n", 4, built / "part", **environment).stdout == "4\n", f"{mpi}: a C program uses ranges")
    check(run(mpiexec, "-n", 4, built / "part_cpp", **environment).stdout == "6\n", f"{mpi}: a C++ program uses ranges")
    flags = run("pkg-config", "--cflags", "--libs", package, **paths).stdout.strip()
    done = run("sh", "-c", f"mpicc.{mpi} part.c {flags} -o {built}/by_pkg_config", cwd=client)
    check(done.returncode == 0, f"pkg-config {package}: {flags}: {done.stderr[-600:]}")
    check(run(mpiexec, "-n", 4, built / "by_pkg_config", **environment).stdout == "4\n", f"{mpi}: and by pkg-config")


build_parts("mpich", "", a.mpiexec, LD_PRELOAD=a.support)
if with_openmpi:
    build_parts("openmpi", "_openmpi", "mpiexec.openmpi", **ENVIRONMENT)

# Fortran, by bind(C), as docs/guide/fortran.md shows.
(client / "edge.f90").write_text("""program edge
  use mpi
  implicit none
  interface
    subroutine latecomer_edge(fraction) bind(C)
      use iso_c_binding, only: c_double
      real(c_double), value :: fraction
    end subroutine
  end interface
  integer :: ierror
  call MPI_Init(ierror)
  call latecomer_edge(0.25d0)
  call MPI_Finalize(ierror)
end program
""")
libs = run("pkg-config", "--libs", "latecomer", **paths).stdout.strip()
done = run("sh", "-c", f"mpif90.mpich edge.f90 -o edge {libs}", cwd=client)
check(done.returncode == 0, f"a Fortran program links latecomer_edge: {done.stderr}")
check(run(a.mpiexec, "-n", 2, client / "edge").returncode == 0, "and runs without the preload")
done = run(command, "run", "--output", folder / "fortran_edge.json", "--", "-n", 2, client / "edge")
edges = json.loads((folder / "fortran_edge.json").read_text())["job"]["edges"]
check(edges == {"calls": 2, "mean_fraction": 0.25}, f"and is recorded with it: {edges}")

pages = sorted(p.name for p in (prefix / "share/man/man1").glob("*")) if (prefix / "share/man/man1").exists() else []
listed = [line.split()[0] for line in run(command, "--help").stdout.split("Subcommands:")[1].splitlines() if line.startswith("  ") and line[2] != " "]
check(pages == sorted(["latecomer.1", *(f"latecomer-{name}.1" for name in listed)]), f"a page for every command: {pages}")
for page in pages:
    done = run("man", "-l", prefix / "share/man/man1" / page, MANPAGER="cat", MANWIDTH="100")
    title = page[:-2].upper() + "(1)"
    check(done.returncode == 0 and title in done.stdout and "SEE ALSO" in done.stdout and "NAME" in done.stdout, f"{page}: {done.stderr} {done.stdout[:200]}")
    others = re.findall(r"^\.BR (latecomer\S*) \(1\)", (prefix / "share/man/man1" / page).read_text().split("SEE ALSO")[-1], re.M)
    check(sorted(others) == sorted(p[:-2] for p in pages if p != page), f"SEE ALSO of {page} names every other page: {others}")
check((prefix / "share/latecomer/policy.schema.json").exists(), "schemas")

# The documents, with links that hold where they are installed.
documents = sorted((prefix / "share/doc/latecomer").rglob("*.md"))
check({"README.md", "docs/guide/read_the_report.md", "docs/README.md"} <= {str(d.relative_to(prefix / "share/doc/latecomer")) for d in documents}, f"documents: {documents}")
for document in documents:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        check((document.parent / link).exists(), f"{document.relative_to(prefix)} links to {link}")
check((prefix / "share/doc/latecomer/README.md").read_bytes() == (pathlib.Path(a.root) / "README.md").read_bytes(), "README is the repository's")
finish()
