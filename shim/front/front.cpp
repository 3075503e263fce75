// SPDX-License-Identifier: BSD-3-Clause
// Finds the process's MPI library, opens the family that knows it, and sets the targets of the stubs.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "profiles/base/launchers.hpp"
#include "profiles/base/mpi_version.hpp"
#include "shim/front/family.hpp"
#include "shim/front/stubs.hpp"
#include "shim/log.hpp"

namespace latecomer::front {
namespace {

using profiles::family_of;
using profiles::Known;
using shim::warn;

std::mutex mutex;
bool mpi_found = false;
std::atomic<const Family*> family{nullptr};
// Derived: MPICH over UCX loads up to four libraries with these names, Open MPI up to eight. The paths take 16 KiB.
// Beyond, a library is not kept, and dlsym's default search must find its functions.
constexpr int kHandles = 16;
void* handles[kHandles];
int handle_count = 0;

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
  for (const char* prefix : {"libmpi", "libpmpi", "libucp", "libopen-", "libopen_mpi"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) {
      std::strcpy(paths.text[paths.count++], path);
      break;
    }
  return 0;
}

/// Opens the libraries that dlsym's default search may not reach. Keeps the handles, so that the libraries stay loaded.
/// The one that defines MPI_Init comes first: of several MPI libraries, the process runs that one.
void note_libraries() {
  static Paths paths;
  paths.count = 0;
  dl_iterate_phdr(note_library, &paths);
  for (int i = 0; i < paths.count; ++i) {
    void* handle = dlopen(paths.text[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    if (std::find(handles, handles + handle_count, handle) != handles + handle_count) dlclose(handle);
    else if (handle_count < kHandles) handles[handle_count++] = handle;
  }
  std::stable_partition(handles, handles + handle_count, [](void* handle) { return dlsym(handle, "MPI_Init"); });
}

/// The definition behind the front's own.
void* next_function(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  for (int i = 0; i < handle_count; ++i)  // MPI that was loaded with RTLD_LOCAL
    if (void* found = dlsym(handles[i], name)) return found;
  return nullptr;
}

/// The first definition that is not the front's own. Variables of MPI may be the program's copies of them, and Python's
/// functions the program's.
void* find(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  for (const Stub* s = stubs_begin(); s != stubs_end(); ++s)
    if (s->stub == found) found = nullptr;
  return found ? found : next_function(name);
}

bool first_process() {
  for (const profiles::Launcher& launcher : profiles::kLaunchers)
    if (const char* value = std::getenv(launcher.rank)) return std::strcmp(value, "0") == 0;
  const char* value = std::getenv("PMIX_RANK");  // of other launchers
  return !value || std::strcmp(value, "0") == 0;
}

/// What the library that the process runs says of its binary interface.
struct Interface {
  int (*version)(char*, int*) = nullptr;  ///< PMPI_Get_library_version
  bool open_mpi = false;                  ///< its handles are addresses of its objects
  bool by_name = false;                   ///< its file says that it has the standard ABI
  int abi = -1;  ///< the major version of its standard ABI, if it has that; before MPI_Init, too
};

bool named_after_abi(const void* address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  const char* name = slash ? slash + 1 : info.dli_fname;
  return std::strncmp(name, "libmpi_abi", 10) == 0 || std::strncmp(name, "libpmpi_abi", 11) == 0;
}

/// Asks the library that defines the next MPI_Init, or one that it needs: a process may hold several MPI libraries, and
/// a tool behind this one defines MPI_Init as well.
Interface interface_of_mpi() {
  Interface out;
  using Abi = int (*)(int*, int*);
  const auto ask = [&](auto look_up) {
    out.version = reinterpret_cast<decltype(out.version)>(look_up("PMPI_Get_library_version"));
    if (!out.version) return;
    out.open_mpi = look_up("ompi_mpi_comm_world") != nullptr;
    out.by_name |= named_after_abi(reinterpret_cast<void*>(out.version));
    int minor = -1;
    const auto abi = reinterpret_cast<Abi>(look_up("PMPI_Abi_get_version"));
    if (abi && abi(&out.abi, &minor) != 0) out.abi = -1;
  };
  Dl_info info;
  if (void* init = next_function("MPI_Init"); init && dladdr(init, &info) && info.dli_fname) {
    out.by_name = named_after_abi(init);
    if (void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      ask([&](const char* name) { return dlsym(library, name); });
      dlclose(library);
    }
  }
  if (!out.version) ask(find);
  return out;
}

/// The family that LATECOMER_MPI names, if the library can have its binary interface. Handles of Open MPI are addresses
/// of its objects, and those of the standard ABI have other values. nullptr: ask the library.
const Known* named_family(const Interface& mpi) {
  const char* name = std::getenv("LATECOMER_MPI");
  if (!name || !*name) return nullptr;
  const Known* named = profiles::family_named(name);
  const bool fits =
      named && (named == &profiles::kAbi ? mpi.abi >= 0 : mpi.abi < 0 && mpi.open_mpi == (named->name == "openmpi"));
  if (fits) return named;
  if (first_process())
    warn("LATECOMER_MPI: %s: '%.40s'; the library tells its family",
         named ? "this MPI library has another binary interface" : "expected mpich, openmpi or abi, got", name);
  return nullptr;
}

/// Makes the path of a file beside the front's own. The name of the preload may be a link, or relative to a folder that
/// the program has left: the dynamic linker knows that folder.
bool find_beside(char (&path)[PATH_MAX], const char* name) {
  Dl_info info;
  link_map* front = nullptr;
  char folder[PATH_MAX], link[2 * PATH_MAX];
  if (!dladdr1(stubs_begin(), &info, reinterpret_cast<void**>(&front), RTLD_DL_LINKMAP)) return false;
  const char* file = std::strrchr(front->l_name, '/');
  if (!file || dlinfo(front, RTLD_DI_ORIGIN, folder) != 0) return false;
  std::snprintf(link, sizeof link, "%s%s", folder, file);
  if (!realpath(link, path)) return false;
  char* const end = std::strrchr(path, '/') + 1;
  return std::snprintf(end, static_cast<std::size_t>(path + PATH_MAX - end), "%s", name) < path + PATH_MAX - end;
}

/// `relative`: see Services.
const Known* known_mpi(bool& relative) {
  const Interface mpi = interface_of_mpi();
  if (!mpi.version) {
    if (first_process()) warn("the MPI library of this process does not tell its version: latecomer is inactive");
    return nullptr;
  }
  // The text of the version is that of the library beneath, whose own handles are others.
  if (mpi.abi >= 0 ? mpi.abi != profiles::kAbiMajor : mpi.by_name) {
    if (first_process())
      warn("this program runs on an MPI library with %s of the standard ABI: latecomer is inactive",
           mpi.abi < 0 ? "an untold version" : "another version");
    return nullptr;
  }
  const Known* const named = named_family(mpi);
  if (mpi.abi >= 0) return &profiles::kAbi;
  static char text[16384];  // MPI_MAX_LIBRARY_VERSION_STRING is 8,192 in MPICH and 256 in Open MPI
  int length = 0;
  mpi.version(text, &length);
  const Known* const known = family_of(text);
  relative = named && (!known || known->name != named->name);
  if (named || known) return named ? named : known;
  for (char* c = text; *c; ++c)
    if (*c == '\n' || *c == ',') *c = '\0';
    else if (*c == '\t') *c = ' ';
  if (first_process())
    warn(
        "this program runs on %.80s, but latecomer needs %s, or LATECOMER_MPI with the family whose binary interface "
        "the library has: latecomer is inactive",
        text, profiles::kKnownVersions);
  return nullptr;
}

void aim(const char* symbol, bool at_handler);

/// Opens the family's library. nullptr: it stays inactive, and a warning has said why.
const Family* open_family(const Known& known, bool relative) {
  char name[64], path[PATH_MAX];
  std::snprintf(name, sizeof name, "liblatecomer-%.*s.so", static_cast<int>(known.name.size()), known.name.data());
  if (!find_beside(path, name)) {
    if (first_process()) warn("latecomer is inactive: the folder of its own library is unknown");
    return nullptr;
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto get = library ? reinterpret_cast<GetFamily>(dlsym(library, kGetFamily)) : nullptr;
  if (!get) {
    const char* why = dlerror();
    if (first_process())
      warn("latecomer is inactive: this program runs on %.*s, and %s cannot be used: %s",
           static_cast<int>(known.title.size()), known.title.data(), name, why ? why : "it is no library of latecomer");
    return nullptr;
  }
  const Family* found = get();
  if (const char* why = found->start({&find, &aim, relative})) {
    if (first_process()) warn("%s: latecomer is inactive", why);
    return nullptr;
  }
  return found;
}

const Entry* entry_of(const Family* in, const char* name) {
  if (in)
    for (const Entry* e = in->begin; e != in->end; ++e)
      if (std::strcmp(e->name, name) == 0) return e;
  return nullptr;
}

/// The functions of a family by the hashes of their names: each stub is looked up once.
class Entries {
 public:
  explicit Entries(const Family* in) : family_(in) {
    if (!in || in->end - in->begin > kMost) return;
    for (const Entry* e = in->begin; e != in->end; ++e) rows_[count_++] = {hash_of(e->name), e};
    std::sort(rows_, rows_ + count_, [](const Row& a, const Row& b) { return a.hash < b.hash; });
  }
  const Entry* find(const Stub& stub) const {
    if (count_ == 0) return entry_of(family_, stub.name);
    const Row* row =
        std::lower_bound(rows_, rows_ + count_, stub.hash, [](const Row& r, std::uint32_t h) { return r.hash < h; });
    for (; row != rows_ + count_ && row->hash == stub.hash; ++row)
      if (std::strcmp(row->entry->name, stub.name) == 0) return row->entry;
    return nullptr;
  }

 private:
  static constexpr std::ptrdiff_t kMost = 512;  // derived: twice the functions of MPICH's family; more are searched
  struct Row {
    std::uint32_t hash;
    const Entry* entry;
  };
  const Family* family_;
  Row rows_[kMost];
  std::size_t count_ = 0;
};

/// Of another library than MPI: its stub passes calls on until a family asks for them.
bool waits_for_family(const char* name) {
  return std::strncmp(name, "ucp_", 4) == 0 || std::strncmp(name, "opal_", 5) == 0;
}

[[noreturn]] void missing(const char* name) {
  warn("the program calls %s, which no library of the process has", name);
  std::abort();
}

void set_target(const Stub& stub, void* to) { __atomic_store_n(stub.target, to, __ATOMIC_RELEASE); }

void aim(const char* symbol, bool at_handler) {
  const Entry* entry = entry_of(family.load(std::memory_order_acquire), symbol);
  for (const Stub* s = stubs_begin(); s != stubs_end(); ++s)
    if (entry && s->next && std::strcmp(s->name, symbol) == 0) set_target(*s, at_handler ? entry->handler : s->next);
}

/// Aims the stub at its handler, or at the next definition. Returns false if no library defines the function yet.
bool give_target(Stub& stub, const Entries& ours) {
  stub.next = next_function(stub.name);
  if (!stub.next) return false;  // a handler would call nothing
  const Entry* entry = ours.find(stub);
  if (entry) *entry->next = stub.next;
  set_target(stub, entry && !waits_for_family(stub.name) ? entry->handler : stub.next);
  return true;
}

}  // namespace
}  // namespace latecomer::front

extern "C" {
void latecomer_resolve(latecomer::front::Stub* called) {
  using namespace latecomer::front;
  const std::lock_guard lock(mutex);
  note_libraries();
  // A process may use UCX long before it loads MPI.
  if (!mpi_found && (mpi_found = next_function("MPI_Init") != nullptr)) {
    const char* disable = std::getenv("LATECOMER_DISABLE");
    bool relative = false;
    const Known* known = disable && std::strcmp(disable, "1") == 0 ? nullptr : known_mpi(relative);
    const Family* ours = known ? open_family(*known, relative) : nullptr;
    const Entries entries(ours);
    for (Stub* s = stubs_begin(); s != stubs_end(); ++s) give_target(*s, entries);
    family.store(ours, std::memory_order_release);
  }
  if (!called->next && !give_target(*called, Entries(family.load(std::memory_order_relaxed)))) missing(called->name);
}

__attribute__((visibility("default"))) const char* latecomer_preloaded_version() { return LATECOMER_VERSION; }

__attribute__((visibility("default"))) void latecomer_preloaded_edge(double fraction) {
  if (const auto* f = latecomer::front::family.load(std::memory_order_acquire)) f->edge(fraction);
}

__attribute__((visibility("default"))) int latecomer_preloaded_flush() {
  const auto* f = latecomer::front::family.load(std::memory_order_acquire);
  return f ? f->flush() : 1;
}
}
