// SPDX-License-Identifier: BSD-3-Clause
// What this family gives to the front, and what it takes from there: the functions of the process's MPI library.
#include "shim/front/family.hpp"

#include <cstdio>
#include <cstring>

#include "shim/job/entries.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/sites/sites.hpp"

extern "C" {
extern const latecomer::front::Entry __start_latecomer_entries[] __attribute__((visibility("hidden")));
extern const latecomer::front::Entry __stop_latecomer_entries[] __attribute__((visibility("hidden")));
}

namespace latecomer::shim {
namespace {

front::Services services{};

struct Pointer {
  const char* name;
  void** where;
};
#define ROW(function) {#function, reinterpret_cast<void**>(&function)},
#define GLOBAL(global) {#global, &mpi_globals::global},
#if MPI_VERSION >= 4
#define LATECOMER_OF_VERSION(ROW) LATECOMER_PMPI_4(ROW)
#else
#define LATECOMER_OF_VERSION(ROW) LATECOMER_PMPI_3(ROW)
#endif
#ifndef OPEN_MPI
#define LATECOMER_PREDEFINED(ROW)
#endif
const Pointer pointers[] = {LATECOMER_PMPI(ROW) LATECOMER_OF_VERSION(ROW) LATECOMER_PREDEFINED(GLOBAL)};
#undef ROW
#undef GLOBAL

const char* start_family(const front::Services& given) {
  services = given;
  for (const Pointer& p : pointers)
    if (!(*p.where = find_function(p.name))) {
      static char why[96];
      std::snprintf(why, sizeof why, "this MPI library lacks %s", p.name);
      return why;
    }
  return make_job() ? nullptr : "out of memory";
}

}  // namespace

void* find_function(const char* name) { return services.find(name); }

void aim_entry(const char* symbol, bool at_handler) { services.aim(symbol, at_handler); }

const char* own_build_ids() {
  static char ids[64];
  if (ids[0] == '\0') {
    const auto half = [](const void* address) {
      const std::string id = frame_at(reinterpret_cast<std::uintptr_t>(address)).build_id;
      return id.empty() ? std::string("no-build-id") : id.substr(0, 20);
    };
    const auto in_front = reinterpret_cast<const void*>(services.find),
               here = reinterpret_cast<const void*>(&start_family);
    std::snprintf(ids, sizeof ids, "%s-%s", half(in_front).c_str(), half(here).c_str());
  }
  return ids;
}

}  // namespace latecomer::shim

extern "C" __attribute__((visibility("default"))) const latecomer::front::Family* latecomer_family() {
  using namespace latecomer;
  static constexpr front::Family kFamily{__start_latecomer_entries, __stop_latecomer_entries, &shim::start_family,
                                         &shim::say_edge, &shim::flush};
  return &kFamily;
}
