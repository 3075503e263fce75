// SPDX-License-Identifier: BSD-3-Clause
// The versions of MPI that the preloaded library accepts, by the texts that MPI libraries give.
#include <catch2/catch.hpp>
#include <string_view>

#include "profiles/base/mpi_version.hpp"

using latecomer::profiles::family_of;

namespace {
std::string_view name_of(std::string_view text) {
  const auto* family = family_of(text);
  return family ? family->name : "";
}
}  // namespace

TEST_CASE("version: MPICH 4 and 5 are accepted, whatever separates the number from its label", "[shim]") {
  CHECK(name_of("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n") == "mpich");
  CHECK(name_of("MPICH Version:      4.2.1\nMPICH Release date: Wed Apr 17 15:30:02 CDT 2024\n") == "mpich");
  CHECK(name_of("MPICH Version:\t4.1\n") == "mpich");
  CHECK(name_of("MPICH Version: \t 4.3.0b1") == "mpich");
  CHECK(name_of("MPICH Version: 4.10.0") == "mpich");
  CHECK(name_of("MPICH Version:      5.0.2\nMPICH Release date: Thu Jul  9 20:23:40 CDT 2026\n") == "mpich");
}

TEST_CASE("version: Open MPI 4, 5 and 6 are accepted", "[shim]") {
  CHECK(name_of("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022") == "openmpi");
  CHECK(name_of("Open MPI v4.0.3, package: Debian OpenMPI") == "openmpi");
  CHECK(name_of("Open MPI v5.0.7, package: Debian OpenMPI, ident: 5.0.7, repo rev: v5.0.7, Feb 14, 2025") == "openmpi");
  CHECK(name_of("Open MPI v6.0.0rc2, package: Debian OpenMPI") == "openmpi");
}

TEST_CASE("version: other libraries, other major versions and broken texts are refused", "[shim]") {
  for (const char* text : {"",
                           "MPICH",
                           "MPICH Version:",
                           "MPICH Version:\t",
                           "MPICH Version:4.2.1",
                           "MPICH Version:\t4",
                           "MPICH Version:\t4.",
                           "MPICH Version:\t4.x",
                           "MPICH Version:\t3.4.3\n",
                           "MPICH Version:\t5\n",
                           "MPICH Version:      6.0.0\n",
                           "MPICH Version:\t40.1\n",
                           "MPICH Version:\t14.2\n",
                           "MPICH2 Version:\t4.0\n",
                           "Open MPI v7.0.0, package: x",
                           "Open MPI v3.1.6",
                           "Open MPI v50.1",
                           "Open MPI 4.1.4",
                           "Open MPI v4",
                           "Open MPIv4.1.4",
                           "Intel(R) MPI Library 2021.4 for Linux* OS\n",
                           "MVAPICH Version:\t4.0\n",
                           " MPICH Version:\t4.0\n"}) {
    CAPTURE(text);
    CHECK(name_of(text).empty());
  }
}
