// SPDX-License-Identifier: BSD-3-Clause
// Catch2 3 under the name that Catch2 2 has for its one header. Only in the search path where Catch2 3 is installed.
#pragma once

#include <catch2/catch_all.hpp>

using Catch::Approx;
