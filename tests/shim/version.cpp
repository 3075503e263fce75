// SPDX-License-Identifier: BSD-3-Clause
// The versions of MPI that the preloaded library accepts, by the texts that MPI libraries give.
#include "shim/version.hpp"

#include <catch2/catch.hpp>

using latecomer::shim::is_mpich_4;

TEST_CASE("version: every MPICH 4 is accepted, whatever separates the number from its label", "[shim]") {
  CHECK(is_mpich_4("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n"));
  CHECK(is_mpich_4("MPICH Version:      4.2.1\nMPICH Release date: Wed Apr 17 15:30:02 CDT 2024\n"));
  CHECK(is_mpich_4("MPICH Version:\t4.1\n"));
  CHECK(is_mpich_4("MPICH Version: \t 4.3.0b1"));
  CHECK(is_mpich_4("MPICH Version: 4.10.0"));
}

TEST_CASE("version: other libraries, other major versions and broken texts are refused", "[shim]") {
  for (const char* text :
       {"", "MPICH", "MPICH Version:", "MPICH Version:\t", "MPICH Version:4.2.1", "MPICH Version:\t4",
        "MPICH Version:\t4.", "MPICH Version:\t4.x", "MPICH Version:\t3.4.3\n", "MPICH Version:      5.0.0\n",
        "MPICH Version:\t40.1\n", "MPICH Version:\t14.2\n", "MPICH2 Version:\t4.0\n",
        "Open MPI v4.1.4, package: Debian OpenMPI", "Intel(R) MPI Library 2021.4 for Linux* OS\n",
        "MVAPICH Version:\t4.0\n", " MPICH Version:\t4.0\n"}) {
    CAPTURE(text);
    CHECK_FALSE(is_mpich_4(text));
  }
}
