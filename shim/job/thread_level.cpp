// SPDX-License-Identifier: BSD-3-Clause
// The thread level at which MPI starts. It may be higher than the program's.
#include "shim/job/thread_level.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "shim/environment.hpp"
#include "shim/job/policy.hpp"

namespace latecomer::shim {

int told_level = -1;

bool engine_wanted() noexcept try {
  const Environment environment = read_environment(false);
  const core::Policy* own = environment.disable ? nullptr : own_policy(environment).policy();
  return own && own->mode == core::Mode::apply && own->background_enabled;
} catch (...) {
  return false;
}

int default_level() {
  const char* asked = std::getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL");
  constexpr std::pair<const char*, int> kLevels[] = {{"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
                                                     {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
                                                     {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED}};
  for (const auto& [name, level] : kLevels)
    if (asked && std::strcmp(asked, name) == 0) return level;
  return MPI_THREAD_SINGLE;
}

}  // namespace latecomer::shim
