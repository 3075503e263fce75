// SPDX-License-Identifier: BSD-3-Clause
// The tuning files of MPI libraries, for users who do not want the preload: settings that choose one of the library's
// own algorithms where the model expects a gain.
#pragma once

#include <string>
#include <vector>

#include "core/select/candidates.hpp"
#include "profiles/format/reader.hpp"

namespace latecomer::profiles::cli {

/// A site as the model sees it.
struct TunedSite {
  const Site* site = nullptr;
  std::string problem;  ///< "": the model covers the site
  core::Call call;
  core::Pattern arrivals;
  core::Parameters parameters;
  double measured_ns = -1;  ///< of native; -1: unknown
};

struct Tuning {      // NOLINT(bugprone-exception-escape): the JSON library asserts in its move constructor
  std::string text;  ///< of the file; its comments give the reason per site
  Json sites;  ///< id, place, op, comm_size, calls, algorithm ("native": no setting), native_ns, predicted_ns, reason
  double gain_ns = 0;
  bool empty = true;  ///< no setting is in the file
};

/// `format`: mpich or openmpi; else throws BadUsage.
Tuning tune(const std::string& format, const std::vector<TunedSite>& sites, core::Objective objective);

}  // namespace latecomer::profiles::cli
