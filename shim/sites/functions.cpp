// SPDX-License-Identifier: BSD-3-Clause
// Reads the symbol tables of modules.
#include "shim/sites/functions.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>

#include "core/base/text.hpp"
#include "profiles/base/mapped.hpp"
#include "shim/mpi/names.hpp"
#include "shim/sites/sites.hpp"

namespace latecomer::shim {
namespace {

/// An array in a file. Empty: the file has no such part.
template <typename T>
std::span<const T> part(const profiles::Mapped& file, std::uint64_t offset, std::uint64_t count) {
  const auto size = static_cast<std::uint64_t>(file.end() - file.begin());
  if (offset % alignof(T) != 0 || offset > size || count > (size - offset) / sizeof(T)) return {};
  return {reinterpret_cast<const T*>(file.begin() + offset), static_cast<std::size_t>(count)};
}

/// Sets `starts[i]` to the begin of the function that holds `offsets[i]`, which ascend. A symbol counts only within its
/// size.
void find_starts(const std::string& path, const std::vector<std::uint64_t>& offsets,
                 std::vector<std::uint64_t>& starts) {
  const profiles::Mapped file(path);
  const auto head = part<ElfW(Ehdr)>(file, 0, 1);
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0 || head[0].e_ident[EI_CLASS] != ELFCLASS64 ||
      head[0].e_shentsize != sizeof(ElfW(Shdr)))
    return;
  const auto sections = part<ElfW(Shdr)>(file, head[0].e_shoff, head[0].e_shnum);
  // A module without the first table may have the second one.
  for (const ElfW(Word) kind : {ElfW(Word){SHT_SYMTAB}, ElfW(Word){SHT_DYNSYM}})
    for (const ElfW(Shdr) & section : sections) {
      if (section.sh_type != kind) continue;
      for (const ElfW(Sym) & symbol : part<ElfW(Sym)>(file, section.sh_offset, section.sh_size / sizeof(ElfW(Sym)))) {
        const auto type = ELF64_ST_TYPE(symbol.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0)
          continue;
        auto at = std::ranges::lower_bound(offsets, symbol.st_value);
        for (; at != offsets.end() && *at - symbol.st_value < symbol.st_size; ++at) {
          // Of symbols that hold an address, the one that begins last.
          std::uint64_t& start = starts[static_cast<std::size_t>(at - offsets.begin())];
          start = std::max<std::uint64_t>(start, symbol.st_value);
        }
      }
    }
}

/// Whether all code of the module is one function to people.
bool is_one_function(const std::string& module) {
  const char* const name = base_name(module.c_str());
  return is_mpi_library(name) || std::strncmp(name, "python", 6) == 0 || std::strncmp(name, "libpython", 9) == 0;
}

}  // namespace

std::vector<profiles::CodePlace> places_of(const std::vector<std::uintptr_t>& addresses) {
  std::vector<profiles::CodePlace> out(addresses.size());
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::size_t>>> modules;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    profiles::Frame& frame = out[i].frame = frame_at(addresses[i]);
    if (frame.function.empty() && !is_one_function(frame.module)) modules[frame.module].emplace_back(frame.offset, i);
  }
  for (auto& [path, sorted] : modules) {
    std::ranges::sort(sorted);
    std::vector<std::uint64_t> offsets, found(sorted.size());
    for (const auto& [offset, i] : sorted) offsets.push_back(offset);
    find_starts(path, offsets, found);
    for (std::size_t i = 0; i < sorted.size(); ++i) out[sorted[i].second].start = found[i];
  }
  for (profiles::CodePlace& place : out) {
    place.whole = whole_function(place).whole;
    if (place.start == 0) place = whole_function(place);
    else ++place.frame.offset;
  }
  return out;
}

profiles::CodePlace whole_function(const profiles::CodePlace& place) {
  profiles::CodePlace out = place;
  out.frame.offset = place.start == 0 ? 0 : place.start + 1;
  // Another number than that of the place at the function's begin.
  out.frame.site = out.whole =
      core::mix64(profiles::site_hash(place.frame.build_id, place.frame.module, place.start) + 1);
  return out;
}

bool in_program(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    bool found;
  } search{address, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {  // the program comes first
        auto& its = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          its.found = its.found ||
                      (segment.p_type == PT_LOAD && its.address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz);
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace latecomer::shim
