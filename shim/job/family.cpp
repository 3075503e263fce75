// SPDX-License-Identifier: BSD-3-Clause
// The functions that this family gives to the front, and the functions of MPI that it gets from the front.
#include "shim/front/family.hpp"

#include <cstdio>
#include <cstring>

#include "shim/job/entries.hpp"
#include "shim/mpi/beneath.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/mpi/interface.hpp"
#if MPI_VERSION >= 4
#include "shim/mpi/mpi_3.hpp"
#endif
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
#ifndef OPEN_MPI
#define LATECOMER_PREDEFINED(ROW)
#endif
const Pointer pointers[] = {LATECOMER_PMPI(ROW) LATECOMER_PREDEFINED(GLOBAL)};
const Pointer pointers_3[] = {LATECOMER_PMPI_3(ROW)};
#if MPI_VERSION >= 4
const Pointer pointers_4[] = {LATECOMER_PMPI_4(ROW)};
#endif
#undef ROW
#undef GLOBAL

/// Returns the name of the first function that the library lacks, or nullptr.
template <std::size_t N>
const char* take(const Pointer (&from)[N]) {
  for (const Pointer& p : from)
    if (!(*p.where = find_function(p.name))) return p.name;
  return nullptr;
}

/// A library of MPI 3.1 under a header of MPI 4 has no functions with MPI_Count. A library of either version may have
/// no sessions, which nobody calls then.
const char* take_version() {
  PMPI_Group_from_session_pset =
      reinterpret_cast<decltype(PMPI_Group_from_session_pset)>(find_function("PMPI_Group_from_session_pset"));
#if MPI_VERSION >= 4
  if (!take(pointers_4)) return nullptr;
#define ROW(function) function = mpi_3::function;
  LATECOMER_PMPI_4(ROW)
#undef ROW
  most_count = INT_MAX;
#endif
  return take(pointers_3);
}

/// MPICH has pointers to what mpi_f08 takes for ignored statuses.
void learn_about_f08() {
  const auto value = [](const char* name) {
    const void* const there = find_function(name);
    return there ? *static_cast<const void* const*>(there) : nullptr;
  };
  ignored_in_f08 = {value("MPI_F08_STATUS_IGNORE"), value("MPI_F08_STATUSES_IGNORE")};
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0, minor = -1;
  PMPI_Get_library_version(version, &length);
  if (std::sscanf(version, "MPICH Version: 4.%d", &minor) == 1 && minor == 0) first_in_f08 = 0;
}

const char* start_family(const front::Services& given) {
  services = given;
  const char* lacks = given.relative ? lacked_mark() : nullptr;
  if (!lacks) lacks = take(pointers);
  if (!lacks) lacks = take_version();
  if (!lacks) learn_about_f08();
  if (!lacks && !find_beneath())
    return "the library beneath MPI's standard ABI is neither MPICH nor Open MPI of a known version";
  if (lacks) {
    static char why[96];
    std::snprintf(why, sizeof why, "this MPI library lacks %s", lacks);
    return why;
  }
  return make_job() ? nullptr : "out of memory";
}

}  // namespace

void* find_function(const char* name) { return services.find(name); }

void aim_entry(const char* symbol, bool at_handler) { services.aim(symbol, at_handler); }

bool has_next(const char* symbol) {
  for (const front::Entry* e = __start_latecomer_entries; e != __stop_latecomer_entries; ++e)
    if (std::strcmp(e->name, symbol) == 0) return *e->next != nullptr;
  return false;
}

const char* leave_other_interface() {
  const char* wrong = services.relative ? wrong_interface() : nullptr;
  for (const front::Entry* e = __start_latecomer_entries; wrong && e != __stop_latecomer_entries; ++e)
    services.aim(e->name, false);
  return wrong;
}

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
                                         &shim::say_edge, &shim::flush_profile};
  return &kFamily;
}
