// SPDX-License-Identifier: BSD-3-Clause
// Finds the MPI library and sets the targets of the stubs.
#include "shim/entry.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "shim/log.hpp"
#include "shim/version.hpp"

// A stub calls this until it has a target.
#if defined(__x86_64__)
asm(".pushsection .text\n"
    ".globl latecomer_resolve_first\n.hidden latecomer_resolve_first\n.type latecomer_resolve_first,@function\n"
    "latecomer_resolve_first:\n.cfi_startproc\n"
    LATECOMER_KEEP_ARGUMENTS("136") "call latecomer_resolve\n" LATECOMER_RESTORE_ARGUMENTS("136")
    "ret\n.cfi_endproc\n.size latecomer_resolve_first,.-latecomer_resolve_first\n"
    ".popsection\n");
#endif

extern "C" {
extern const latecomer::shim::Entry __start_latecomer_entries[] __attribute__((visibility("hidden")));
extern const latecomer::shim::Entry __stop_latecomer_entries[] __attribute__((visibility("hidden")));
LATECOMER_HIDDEN void latecomer_resolve() { latecomer::shim::resolve_entries(); }
}

namespace latecomer::shim {
namespace {

std::mutex mutex;
bool resolved = false;
// Derived: MPICH over UCX loads up to four libraries named libmpi* or libucp*. The paths take 16 KiB. Beyond, a library
// is not kept, and dlsym's default search must find its functions.
constexpr int kHandles = 16;
void* handles[kHandles];
int handle_count = 0;

struct Pointer {
  const char* name;
  void** where;
};
#define ROW(function) {#function, reinterpret_cast<void**>(&function)},
const Pointer pointers[] = {LATECOMER_PMPI(ROW)};
#undef ROW

struct Paths {
  char text[kHandles][1024];
  int count = 0;
};

int note_library(dl_phdr_info* info, std::size_t, void* data) {
  auto& paths = *static_cast<Paths*>(data);
  const char* path = info->dlpi_name;
  if (!path || !*path || paths.count == kHandles || std::strlen(path) >= sizeof paths.text[0]) return 0;
  const char* name = std::strrchr(path, '/');
  name = name ? name + 1 : path;
  if (std::strncmp(name, "libmpi", 6) == 0 || std::strncmp(name, "libucp", 6) == 0)
    std::strcpy(paths.text[paths.count++], path);
  return 0;
}

/// Opens the libraries that dlsym's default search may not reach. Keeps the handles, so that the libraries stay loaded.
void note_libraries() {
  static Paths paths;
  dl_iterate_phdr(note_library, &paths);
  for (int i = 0; i < paths.count; ++i)
    if (void* handle = dlopen(paths.text[i], RTLD_LAZY | RTLD_NOLOAD)) handles[handle_count++] = handle;
}

void* next_function(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  for (int i = 0; i < handle_count; ++i)  // MPI that was loaded with RTLD_LOCAL
    if (void* found = dlsym(handles[i], name)) return found;
  return nullptr;
}

bool first_process() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::strcmp(value, "0") == 0;
  return true;
}

/// Whether the process's MPI has the handles and constants that this library was built with.
bool known_mpi() {
  const auto version = reinterpret_cast<int (*)(char*, int*)>(find_function("PMPI_Get_library_version"));
  if (!version) {
    if (first_process()) warn("this process has no MPI library: latecomer is inactive");
    return false;
  }
  static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  int length = 0;
  version(text, &length);
  if (is_mpich_4(text)) return true;
  for (char* c = text; *c; ++c)
    if (*c == '\n' || *c == ',') *c = '\0';
    else if (*c == '\t') *c = ' ';
  if (first_process()) warn("this program runs on %.80s, but latecomer needs MPICH 4: latecomer is inactive", text);
  return false;
}

}  // namespace

void* find_function(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  for (int i = 0; i < handle_count; ++i)
    if (void* found = dlsym(handles[i], name)) return found;
  return nullptr;
}

void resolve_entries() {
  const std::lock_guard lock(mutex);
  if (resolved) return;
  note_libraries();
  const char* disable = std::getenv("LATECOMER_DISABLE");
  bool ours = !(disable && std::strcmp(disable, "1") == 0) && known_mpi();
  for (const Pointer& p : pointers)
    if (!(*p.where = find_function(p.name)) && ours) {
      if (first_process()) warn("this MPI library lacks %s: latecomer is inactive", p.name);
      ours = false;
    }
  if (ours && !make_job()) {
    warn("out of memory: latecomer is inactive");
    ours = false;
  }
  for (const Entry* e = __start_latecomer_entries; e != __stop_latecomer_entries; ++e) {
    *e->next = next_function(e->name);
    // Entry points of other libraries pass calls on until aim_entry() sets their handler.
    const bool handled = ours && std::strncmp(e->name, "ucp_", 4) != 0;
    __atomic_store_n(e->target, handled ? e->handler : *e->next, __ATOMIC_RELEASE);
  }
  resolved = true;
}

void aim_entry(const char* symbol, bool at_handler) {
  for (const Entry* e = __start_latecomer_entries; e != __stop_latecomer_entries; ++e)
    if (std::strcmp(e->name, symbol) == 0 && *e->next)
      __atomic_store_n(e->target, at_handler ? e->handler : *e->next, __ATOMIC_RELEASE);
}

}  // namespace latecomer::shim
