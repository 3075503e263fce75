// SPDX-License-Identifier: BSD-3-Clause
// Finds the modules of addresses, and knows MPI's own modules.
#include "shim/sites/modules.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "shim/mpi/names.hpp"
#include "shim/sites/table.hpp"
#include "shim/sites/unwind.hpp"

namespace latecomer::shim {

Mapping skipped[kMappings];
std::atomic<int> skipped_count{0};

namespace {

std::atomic<unsigned long long> unloaded{0};
unsigned long long loaded = 0;
std::vector<std::string>* wrappers = nullptr;  // globs; never destroyed: callbacks may run after exit handlers

int note_mappings(dl_phdr_info* info, std::size_t, void*) {
  if (!info->dlpi_name) return 0;
  const char* name = base_name(info->dlpi_name);
  const bool wrapper = !is_mpi_library(name);
  if (wrapper && (!wrappers || std::none_of(wrappers->begin(), wrappers->end(),
                                            [&](const std::string& glob) { return core::glob_match(glob, name); })))
    return 0;
  int count = skipped_count;
  for (int i = 0; i < info->dlpi_phnum && count < kMappings; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (std::any_of(skipped, skipped + count, [&](const Mapping& m) { return m.begin == begin; })) continue;
    skipped[count++] = {begin, begin + segment.p_memsz, wrapper};
  }
  skipped_count.store(count, std::memory_order_release);  // other threads read the entries before it
  return 0;
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

std::string path_of(const dl_phdr_info& info) {
  if (info.dlpi_name && *info.dlpi_name) return info.dlpi_name;
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "program";
}

int holds_address(dl_phdr_info* info, std::size_t, void* data) {
  const std::uintptr_t address = *static_cast<const std::uintptr_t*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz) return 1;
  }
  return 0;
}

int find_module(dl_phdr_info* info, std::size_t size, void* data) try {
  auto& search = *static_cast<Search*>(data);
  if (!holds_address(info, size, &search.address)) return 0;
  search.frame.offset = search.address - info->dlpi_addr;
  search.frame.build_id = build_id_of(*info);
  search.frame.module = path_of(*info);
  return 1;
} catch (...) {  // without memory: an exception must not pass the loader, which holds its lock
  return 1;
}

int note_module(dl_phdr_info* info, std::size_t, void* data) try {
  static_cast<std::vector<LoadedModule>*>(data)->push_back({path_of(*info), build_id_of(*info), info->dlpi_addr});
  return 0;
} catch (...) {  // as above
  return 1;
}

int note_unloaded(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_subs;
  return 1;
}

int note_loaded(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_adds;
  return 1;
}

}  // namespace

std::vector<LoadedModule> loaded_modules() {
  std::vector<LoadedModule> out;
  dl_iterate_phdr(note_module, &out);
  return out;
}

profiles::Frame frame_at(std::uintptr_t address) {
  Search search{address, {}};
  if (!dl_iterate_phdr(find_module, &search)) search.frame.function = profiles::kGeneratedCode;
  search.frame.site = profiles::site_hash(search.frame.build_id, search.frame.module, search.frame.offset);
  return search.frame;
}

bool in_generated(std::uintptr_t address) { return !dl_iterate_phdr(holds_address, &address); }

bool in_wrapper(std::uintptr_t address) {
  for (int i = 0; i < skipped_count; ++i)
    if (address >= skipped[i].begin && address < skipped[i].end) return skipped[i].wrapper;
  return false;
}

void find_wrappers() {
  unsigned long long now_loaded = 0;
  dl_iterate_phdr(note_loaded, &now_loaded);
  if (now_loaded == loaded) return;
  loaded = now_loaded;
  if (!wrappers || wrappers->empty()) return;
  dl_iterate_phdr(note_mappings, nullptr);
}

void name_wrappers(const std::vector<std::string>& globs) {
  const std::lock_guard lock(sites_mutex);
  delete std::exchange(wrappers, new std::vector<std::string>(globs));
  loaded = 0;
  find_wrappers();
}

bool starts_program(std::uintptr_t address, const profiles::Frame& frame) {
  // Derived: the entry of a program has a dozen instructions.
  const std::uintptr_t entry = getauxval(AT_ENTRY);
  constexpr std::uintptr_t kEntry = 64;
  return (address >= entry && address < entry + kEntry) ||
         std::strncmp(base_name(frame.module.c_str()), "libc.so", 7) == 0 ||
         std::strncmp(base_name(frame.module.c_str()), "libpthread", 10) == 0;
}

void sites_start() {
  const std::lock_guard lock(sites_mutex);
  skipped_count = 0;
  dl_iterate_phdr(note_mappings, nullptr);
  unsigned long long now_unloaded = 0;
  dl_iterate_phdr(note_unloaded, &now_unloaded);
  unloaded = now_unloaded;
}

unsigned sites_refresh() {
  static constinit std::atomic<unsigned> refreshed{0};
  unsigned long long now_unloaded = 0;
  dl_iterate_phdr(note_unloaded, &now_unloaded);
  if (now_unloaded == unloaded) return refreshed;
  const std::lock_guard lock(sites_mutex);
  unloaded = now_unloaded;
  skipped_count = 0;
  loaded = 0;
  dl_iterate_phdr(note_mappings, nullptr);
  forget_keys();
  forget_rules();
  return ++refreshed;
}

}  // namespace latecomer::shim
