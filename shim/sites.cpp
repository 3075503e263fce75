// SPDX-License-Identifier: BSD-3-Clause
// Return addresses to call-site keys.
#include "shim/sites.hpp"

#define UNW_LOCAL_ONLY
#include <elf.h>
#include <libunwind.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "core/base/text.hpp"
#include "shim/entry.hpp"

namespace latecomer::shim {
namespace {

struct Mapping {
  std::uintptr_t begin, end;
};
constexpr int kMappings = 64;
Mapping skipped[kMappings];
int skipped_count = 0;

/// Open addressing by return address or by hash of several (top bit set: no address has it); entries are
/// only ever added, so readers need no lock. 640 KiB, touched as used.
constexpr std::size_t kSlots = 1 << 14;
constexpr std::uint64_t kSeveral = std::uint64_t{1} << 63;
using Slot = SiteSlot;
constexpr int kMostFrames = 16, kStack = 48;
int depth = 1;
bool python = false;
bool beyond_one_frame = false;
unsigned long long unloaded = 0;
Slot slots[kSlots];
std::mutex mutex;
std::vector<profiles::Frame>* frames = nullptr;  // never destroyed: callbacks may come after exit handlers
std::size_t used = 0;

bool is_mpi_library(const char* path) {
  const char* name = std::strrchr(path, '/');
  name = name ? name + 1 : path;
  for (const char* prefix : {"libmpich", "libmpi.", "libmpifort", "libmpicxx", "libmpi_", "liblatecomer"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

int note_mappings(dl_phdr_info* info, std::size_t, void*) {
  if (!info->dlpi_name || !is_mpi_library(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum && skipped_count < kMappings; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    skipped[skipped_count++] = {begin, begin + segment.p_memsz};
  }
  return 0;
}

bool in_mpi(std::uintptr_t address) {
  for (int i = 0; i < skipped_count; ++i)
    if (address >= skipped[i].begin && address < skipped[i].end) return true;
  return false;
}

struct Search {
  std::uintptr_t address;
  profiles::Frame frame;
};

std::string build_id_of(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *note;
      const auto* id = reinterpret_cast<const unsigned char*>(name + ((note->n_namesz + 3) & ~3u));
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        std::string hex;
        for (unsigned k = 0; k < note->n_descsz; ++k) {
          constexpr char kDigits[] = "0123456789abcdef";
          hex += kDigits[id[k] >> 4];
          hex += kDigits[id[k] & 15];
        }
        return hex;
      }
      at = reinterpret_cast<const char*>(id) + ((note->n_descsz + 3) & ~3u);
    }
  }
  return "";
}

int find_module(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search.address < begin || search.address >= begin + segment.p_memsz) continue;
    search.frame.offset = search.address - info->dlpi_addr;
    search.frame.build_id = build_id_of(*info);
    search.frame.module = info->dlpi_name ? info->dlpi_name : "";
    if (search.frame.module.empty()) {
      char path[4096];
      const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
      search.frame.module = n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "program";
    }
    return 1;
  }
  return 0;
}

std::size_t slot_of(std::uint64_t key) { return (key >> 1) * 0x9e3779b97f4a7c15ull >> 50; }
static_assert(kSlots == std::size_t{1} << (64 - 50));

Slot* known(std::uint64_t key) {
  for (std::size_t slot = slot_of(key);; slot = (slot + 1) % kSlots) {
    const std::uint64_t there = slots[slot].key.load(std::memory_order_acquire);
    if (there == key) [[likely]]
      return &slots[slot];
    if (there == 0) return nullptr;
  }
}

/// The caller holds the mutex.
Slot& remember(std::uint64_t key, std::uint64_t site) {
  // Full: all that is new shares one slot, whose counters are looked up every time.
  static Slot overflow;
  if (used > kSlots * 3 / 4) {
    overflow.site.store(site, std::memory_order_relaxed);
    return overflow;
  }
  std::size_t slot = slot_of(key);
  while (slots[slot].key.load(std::memory_order_relaxed) != 0) {
    if (slots[slot].key.load(std::memory_order_relaxed) == key) return slots[slot];
    slot = (slot + 1) % kSlots;
  }
  ++used;
  slots[slot].site.store(site, std::memory_order_relaxed);
  slots[slot].key.store(key, std::memory_order_release);
  return slots[slot];
}

/// A new site of these frames, innermost first. Several addresses may be one site: the table of addresses is
/// forgotten when a library goes away.
Slot& insert(std::uint64_t key, std::vector<profiles::Frame> found) {
  const std::lock_guard lock(mutex);
  std::uint64_t site = found.front().site;
  for (std::size_t i = 1; i < found.size(); ++i) site = core::mix64(site ^ core::mix64(found[i].site));
  Slot& slot = remember(key, site);
  if (!frames) frames = new std::vector<profiles::Frame>;
  for (const profiles::Frame& f : *frames)
    if (f.site == site) return slot;
  for (profiles::Frame& f : found) {
    f.site = site;
    frames->push_back(std::move(f));
  }
  return slot;
}

profiles::Frame frame_at(std::uintptr_t address) {
  Search search{address, {}};
  dl_iterate_phdr(find_module, &search);
  search.frame.site = profiles::site_hash(search.frame.build_id, search.frame.module, search.frame.offset);
  return search.frame;
}

/// The frames of the site: the first `depth` outside MPI, from `from` on outwards.
Slot& unwound(std::uintptr_t from) {
  void* stack[kStack];
  std::uintptr_t chosen[kMostFrames];
  int count = 0;
  for (int want = depth + 6;; want = kStack) {
    const int have = unw_backtrace(stack, want);
    int i = 0;
    count = 0;
    while (i < have && reinterpret_cast<std::uintptr_t>(stack[i]) != from) ++i;
    for (; i < have && count < depth; ++i)
      if (!in_mpi(reinterpret_cast<std::uintptr_t>(stack[i]))) chosen[count++] = reinterpret_cast<std::uintptr_t>(stack[i]);
    if (count == depth || have < want || want == kStack) break;
  }
  if (count == 0) chosen[count++] = from;
  std::uint64_t key = chosen[0];
  if (count > 1) {
    for (int i = 1; i < count; ++i) key = core::mix64(key ^ core::mix64(chosen[i]));
    key |= kSeveral;
  }
  if (Slot* slot = known(key); slot && slot->site.load(std::memory_order_relaxed) != 0) return *slot;
  std::vector<profiles::Frame> found;
  for (int i = 0; i < count; ++i) found.push_back(frame_at(chosen[i]));
  return insert(key, std::move(found));
}

/// CPython's own interface, found where an interpreter lives in this process. The lock of the interpreter is
/// taken for the look (bindings release it around MPI calls), which is why this is an option.
struct Python {
  int (*is_initialized)();
  int (*ensure)();
  void (*release)(int);
  void* (*frame)();
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*utf8)(void*);
  void (*drop)(void*);
  bool whole = false;
};
const Python& interpreter() {
  static const Python found = [] {
    Python p{};
    const std::pair<const char*, void**> rows[] = {
        {"Py_IsInitialized", reinterpret_cast<void**>(&p.is_initialized)}, {"PyGILState_Ensure", reinterpret_cast<void**>(&p.ensure)},
        {"PyGILState_Release", reinterpret_cast<void**>(&p.release)}, {"PyEval_GetFrame", reinterpret_cast<void**>(&p.frame)},
        {"PyFrame_GetBack", reinterpret_cast<void**>(&p.back)}, {"PyFrame_GetCode", reinterpret_cast<void**>(&p.code)},
        {"PyFrame_GetLineNumber", reinterpret_cast<void**>(&p.line)}, {"PyObject_GetAttrString", reinterpret_cast<void**>(&p.attribute)},
        {"PyUnicode_AsUTF8", reinterpret_cast<void**>(&p.utf8)}, {"Py_DecRef", reinterpret_cast<void**>(&p.drop)}};
    p.whole = true;
    for (const auto& [name, where] : rows) p.whole = (*where = find_function(name)) != nullptr && p.whole;
    return p;
  }();
  return found;
}

/// The Python lines that lead here, or nullptr if Python is not running on this thread.
Slot* python_site() {
  const Python& p = interpreter();
  if (!p.whole || !p.is_initialized()) return nullptr;
  const int state = p.ensure();
  std::vector<profiles::Frame> found;
  std::uint64_t key = kSeveral;
  void* at = p.frame();  // borrowed; the ones behind it are not
  for (void* owned = nullptr; at && static_cast<int>(found.size()) < depth;) {
    void* code = p.code(at);
    const auto text = [&](const char* name) {
      void* object = p.attribute(code, name);
      const char* utf8 = object ? p.utf8(object) : nullptr;
      std::string out = utf8 ? utf8 : "";
      if (object) p.drop(object);
      return out;
    };
    profiles::Frame frame;
    frame.file = frame.module = text("co_filename");
    frame.function = text("co_name");
    frame.line = p.line(at);
    p.drop(code);
    if (frame.file.find("/mpi4py/") == std::string::npos) {
      frame.site = profiles::site_hash("", frame.file + ":" + frame.function, static_cast<std::uint64_t>(frame.line));
      key = core::mix64(key ^ frame.site) | kSeveral;
      found.push_back(std::move(frame));
    }
    at = p.back(at);
    if (owned) p.drop(owned);
    owned = at;
    if (static_cast<int>(found.size()) >= depth && owned) p.drop(owned);
  }
  p.release(state);
  if (found.empty()) return nullptr;
  Slot* slot = known(key);
  return slot ? slot : &insert(key, std::move(found));
}

int note_unloaded(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_subs;
  return 1;
}

}  // namespace

void sites_start() {
  const std::lock_guard lock(mutex);
  skipped_count = 0;
  dl_iterate_phdr(note_mappings, nullptr);
  dl_iterate_phdr(note_unloaded, &unloaded);
}

void sites_depth(int frames_wanted, bool python_wanted) { depth = std::min(frames_wanted, kMostFrames), python = python_wanted, beyond_one_frame = depth > 1 || python; }

void sites_refresh() {
  unsigned long long now_unloaded = 0;
  dl_iterate_phdr(note_unloaded, &now_unloaded);
  if (now_unloaded == unloaded) return;
  const std::lock_guard lock(mutex);
  unloaded = now_unloaded;
  for (Slot& slot : slots) slot.key.store(0, std::memory_order_relaxed), slot.local = nullptr;
  used = 0;
}

namespace {
[[gnu::noinline]] Slot& rarer_site(std::uintptr_t address) {
  if (python)
    if (Slot* slot = python_site()) return *slot;
  if (depth > 1) return unwound(address);
  Slot* slot = known(address);
  if (!slot) {
    // The first call from here. MPI's Fortran and C++ bindings are not sites, their callers are.
    if (!in_mpi(address)) return insert(address, {frame_at(address)});
    const std::lock_guard lock(mutex);
    slot = &remember(address, 0);
  }
  return slot->site.load(std::memory_order_relaxed) != 0 ? *slot : unwound(address);
}
}  // namespace

SiteSlot& site_of(void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (!beyond_one_frame) [[likely]]
    if (Slot* slot = known(address); slot && slot->site.load(std::memory_order_relaxed) != 0) return *slot;
  return rarer_site(address);
}

const char* own_build_id() {
  static const std::string id = [] {
    Search search{reinterpret_cast<std::uintptr_t>(&own_build_id), {}};
    dl_iterate_phdr(find_module, &search);
    return search.frame.build_id.empty() ? std::string("no-build-id") : search.frame.build_id;
  }();
  return id.c_str();
}

std::size_t site_count() {
  const std::lock_guard lock(mutex);
  return frames ? frames->size() : 0;
}

std::vector<profiles::Frame> site_frames() {
  const std::lock_guard lock(mutex);
  return frames ? *frames : std::vector<profiles::Frame>{};
}

}  // namespace latecomer::shim
