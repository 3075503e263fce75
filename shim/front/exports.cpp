// SPDX-License-Identifier: BSD-3-Clause
// Decides which names of the front the dynamic linker finds: those that another loaded library defines. So a program
// that asks for a function by a weak reference or dlsym() gets what it gets without latecomer. A name that is not to be
// found has the value 0 in the front's symbol table, and every look-up passes over it.
//
// The rule is applied at two moments:
// - At the start of the process, after the libraries are bound and before the program is: the dynamic linker resolves
//   the indirect function latecomer_start when it relocates the front.
// - In each dlopen(), before the new libraries are bound. Compilers put a weak reference to _ITM_registerTMCloneTable
//   into every shared library. The front exports this name, too, as an indirect function. Its resolver applies the rule
//   and answers what the other libraries define, which is nothing but in a process with transactional memory.
//
// This file runs while the front is relocated: it is compiled without sanitizers, and without jumps through the
// procedure linkage table. It calls nothing but system calls.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "shim/front/stubs.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker makes this name
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace latecomer::front {
namespace {

using Symbol = ElfW(Sym);

bool equal(const char* a, const char* b) {
  for (; *a && *a == *b; ++b) ++a;
  return *a == *b;
}

/// The symbols of one library, as the dynamic linker looks them up.
class LibrarySymbols {
 public:
  explicit LibrarySymbols(const link_map& library) : base_(library.l_addr) {
    for (const ElfW(Dyn)* d = library.l_ld; d && d->d_tag != DT_NULL; ++d) {
      // The dynamic linker has added the base already, but not for the kernel's library.
      const ElfW(Addr) at = d->d_un.d_ptr < base_ ? d->d_un.d_ptr + base_ : d->d_un.d_ptr;
      if (d->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const Symbol*>(at);
      if (d->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(at);
      if (d->d_tag == DT_GNU_HASH) gnu_ = reinterpret_cast<const std::uint32_t*>(at);
      if (d->d_tag == DT_HASH) old_ = reinterpret_cast<const std::uint32_t*>(at);
    }
  }

  /// nullptr: the library does not define it.
  const Symbol* find(const char* name, std::uint32_t hash) const {
    if (gnu_) {
      const std::uint32_t buckets = gnu_[0], first = gnu_[1], words = gnu_[2], shift = gnu_[3];
      const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(gnu_ + 4);
      const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + words);
      constexpr std::uint32_t kBits = 8 * sizeof *bloom;
      const ElfW(Addr) word = bloom[hash / kBits & (words - 1)];  // a power of two
      if ((word >> hash % kBits & word >> (hash >> shift) % kBits & 1) == 0) return nullptr;
      const std::uint32_t* chain = bucket + buckets;
      for (std::uint32_t i = bucket[hash % buckets]; i >= first; ++i) {
        if (((chain[i - first] ^ hash) >> 1) == 0 && is(symbols_[i], name)) return &symbols_[i];
        if (chain[i - first] & 1) break;
      }
    } else if (old_) {
      std::uint32_t sum = 0;
      for (const char* c = name; *c; ++c) {
        sum = (sum << 4) + static_cast<unsigned char>(*c);
        sum = (sum ^ (sum >> 24 & 0xf0)) & 0x0fffffff;
      }
      for (std::uint32_t i = old_[2 + sum % old_[0]]; i != 0; i = old_[2 + old_[0] + i])
        if (is(symbols_[i], name)) return &symbols_[i];
    }
    return nullptr;
  }

  void* address_of(const Symbol& symbol) const { return reinterpret_cast<void*>(base_ + symbol.st_value); }

 private:
  bool is(const Symbol& symbol, const char* name) const {
    return symbol.st_shndx != SHN_UNDEF && equal(names_ + symbol.st_name, name);
  }

  ElfW(Addr) base_;
  const Symbol* symbols_ = nullptr;
  const char* names_ = nullptr;
  const std::uint32_t *gnu_ = nullptr, *old_ = nullptr;
};

/// The libraries that were asked already: the first ones of the dynamic linker's list, up to this one. The next library
/// may get the memory of one that is closed, but not its name as well.
struct Asked {
  int count = 0;
  const link_map* last = nullptr;
  const ElfW(Dyn) * dynamic = nullptr;
  std::uint32_t name = 0;
};
Asked asked;
const link_map* own = nullptr;

/// Asks the libraries that are new since the last call; all of them if one is closed. Returns whether there were any.
bool ask_libraries() {
  const link_map *l = _r_debug.r_map, *before = nullptr;
  for (int i = 0; l && i < asked.count; ++i) {
    before = l;
    l = l->l_next;
  }
  if (before != asked.last || (before && (before->l_ld != asked.dynamic || hash_of(before->l_name) != asked.name))) {
    asked = {};
    l = _r_debug.r_map;
    for (Stub* s = stubs_begin(); s != stubs_end(); ++s) s->defined = false;
  } else if (!l) {
    return false;
  }
  for (; l; l = l->l_next) {
    asked = {asked.count + 1, l, l->l_ld, hash_of(l->l_name)};
    if (l->l_ld == _DYNAMIC) {
      own = l;
      continue;
    }
    const LibrarySymbols symbols(*l);
    for (Stub* s = stubs_begin(); s != stubs_end(); ++s) s->defined = s->defined || symbols.find(s->name, s->hash);
  }
  return true;
}

/// Makes the pages of the front's symbols writable, or gives them back the protection of their segment. Returns whether
/// the system allows it.
bool protect(std::uintptr_t begin, std::uintptr_t end, bool writable) {
  const auto* header =
      reinterpret_cast<const ElfW(Phdr)*>(reinterpret_cast<const char*>(&__ehdr_start) + __ehdr_start.e_phoff);
  int how = writable ? PROT_WRITE : 0;
  for (int i = 0; i < __ehdr_start.e_phnum; ++i)
    if (header[i].p_type == PT_LOAD && begin - own->l_addr - header[i].p_vaddr < header[i].p_memsz)
      how |= (header[i].p_flags & PF_R ? PROT_READ : 0) | (header[i].p_flags & PF_W ? PROT_WRITE : 0) |
             (header[i].p_flags & PF_X ? PROT_EXEC : 0);
  const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  begin &= ~(page - 1);
  return syscall(SYS_mprotect, begin, end - begin, how) == 0;
}

constexpr const char* kInEveryLibrary = "_ITM_registerTMCloneTable";
void* answer_for_new_library();

/// Calls `change` for each symbol whose value is not the one of the rule.
template <typename Change>
void for_each_wrong(const LibrarySymbols& symbols, Change change) {
  const auto look_at = [&](const char* name, std::uint32_t hash, const void* address) {
    auto* symbol = const_cast<Symbol*>(symbols.find(name, hash));
    const ElfW(Addr) value = address ? reinterpret_cast<ElfW(Addr)>(address) - own->l_addr : 0;
    if (symbol->st_value != value) change(*symbol, value);
  };
  for (const Stub* s = stubs_begin(); s != stubs_end(); ++s) look_at(s->name, s->hash, s->defined ? s->stub : nullptr);
  look_at(kInEveryLibrary, hash_of(kInEveryLibrary), reinterpret_cast<const void*>(&answer_for_new_library));
}

/// Applies the rule of the head of this file.
void set_names() {
  if (!ask_libraries()) return;
  const LibrarySymbols symbols(*own);
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for_each_wrong(symbols, [&](const Symbol& symbol, ElfW(Addr)) {
    const auto at = reinterpret_cast<std::uintptr_t>(&symbol);
    begin = at < begin ? at : begin;
    end = at + sizeof symbol > end ? at + sizeof symbol : end;
  });
  if (end == 0 || !protect(begin, end, true)) return;
  for_each_wrong(symbols, [](Symbol& symbol, ElfW(Addr) value) {
    if (reinterpret_cast<const void*>(own->l_addr + value) == reinterpret_cast<const void*>(&answer_for_new_library))
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
    __atomic_store_n(&symbol.st_value, value, __ATOMIC_RELEASE);
  });
  protect(begin, end, false);
}

/// The resolver of that name.
void* answer_for_new_library() {
  set_names();
  for (const link_map* l = _r_debug.r_map; l; l = l->l_next) {
    if (l == own) continue;
    const LibrarySymbols symbols(*l);
    if (const Symbol* there = symbols.find(kInEveryLibrary, hash_of(kInEveryLibrary)))
      return symbols.address_of(*there);
  }
  return nullptr;
}

}  // namespace
}  // namespace latecomer::front

extern "C" {
/// Libraries that are bound before the front find this function. Only code with transactional memory calls it.
__attribute__((visibility("default"))) void _ITM_registerTMCloneTable(void* table, std::size_t size) {
  using Register = void (*)(void*, std::size_t);
  if (const auto next = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "_ITM_registerTMCloneTable"))) next(table, size);
}

__attribute__((visibility("hidden"), used)) void (*latecomer_set_names())() {
  latecomer::front::set_names();
  return nullptr;
}
__attribute__((visibility("hidden"), ifunc("latecomer_set_names"))) void latecomer_start();
__attribute__((visibility("hidden"), used)) void (*latecomer_start_reference)() = &latecomer_start;
}
