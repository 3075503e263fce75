// SPDX-License-Identifier: BSD-3-Clause
// Return addresses to call-site keys.
#include "shim/sites.hpp"

#define UNW_LOCAL_ONLY
#include <elf.h>
#include <libunwind.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

namespace latecomer::shim {
namespace {

struct Mapping {
  std::uintptr_t begin, end;
};
constexpr int kMappings = 64;
Mapping skipped[kMappings];
int skipped_count = 0;

/// Open addressing by return address; entries are only ever added, so readers need no lock.
constexpr std::size_t kSlots = 1 << 14;
struct Slot {
  std::atomic<std::uintptr_t> address{0};
  std::uint64_t site = 0;
};
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

std::uint64_t insert(std::uintptr_t address, std::size_t slot) {
  Search search{address, {}};
  dl_iterate_phdr(find_module, &search);
  const std::lock_guard lock(mutex);
  while (slots[slot].address.load(std::memory_order_relaxed) != 0) {
    if (slots[slot].address.load(std::memory_order_relaxed) == address) return slots[slot].site;
    slot = (slot + 1) % kSlots;
  }
  search.frame.site = profiles::site_hash(search.frame.build_id, search.frame.module, search.frame.offset);
  if (used > kSlots * 3 / 4) return search.frame.site;  // full: still right, only slower
  ++used;
  if (!frames) frames = new std::vector<profiles::Frame>;
  frames->push_back(search.frame);
  slots[slot].site = search.frame.site;
  slots[slot].address.store(address, std::memory_order_release);
  return search.frame.site;
}

}  // namespace

void sites_start() {
  if (skipped_count == 0) dl_iterate_phdr(note_mappings, nullptr);
}

std::uint64_t site_of(void* return_address) {
  auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (in_mpi(address)) {
    // A Fortran binding: its caller, or its caller's caller, is the site.
    void* stack[16];
    const int depth = unw_backtrace(stack, 16);
    for (int i = 0; i < depth; ++i) {
      const auto candidate = reinterpret_cast<std::uintptr_t>(stack[i]);
      if (in_mpi(candidate)) continue;
      address = candidate;
      break;
    }
  }
  for (std::size_t slot = (address >> 1) * 0x9e3779b97f4a7c15ull % kSlots;; slot = (slot + 1) % kSlots) {
    const std::uintptr_t there = slots[slot].address.load(std::memory_order_acquire);
    if (there == address) return slots[slot].site;
    if (there == 0) return insert(address, slot);
  }
}

const char* own_build_id() {
  static const std::string id = [] {
    Search search{reinterpret_cast<std::uintptr_t>(&own_build_id), {}};
    dl_iterate_phdr(find_module, &search);
    return search.frame.build_id.empty() ? std::string("no-build-id") : search.frame.build_id;
  }();
  return id.c_str();
}

std::vector<profiles::Frame> site_frames() {
  const std::lock_guard lock(mutex);
  return frames ? *frames : std::vector<profiles::Frame>{};
}

}  // namespace latecomer::shim
