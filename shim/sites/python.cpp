// SPDX-License-Identifier: BSD-3-Clause
// Sites that are lines of Python.
#include "shim/sites/python.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "shim/mpi/entry.hpp"
#include "shim/sites/table.hpp"
#include "shim/sites/unwind.hpp"

namespace latecomer::shim {
namespace {

/// CPython's interface, if an interpreter runs in this process. Reading frames needs the interpreter's lock, which
/// bindings release around MPI calls. Therefore this is an option.
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
  void* (*encode)(void*, const char*, const char*);
  const char* (*bytes)(void*);
  void (*drop)(void*);
  void (*fetch)(void**, void**, void**);
  void (*restore)(void*, void*, void*);
  bool whole = false;
};
const Python& interpreter() {
  static const Python found = [] {
    Python p{};
    const std::pair<const char*, void**> rows[] = {{"Py_IsInitialized", reinterpret_cast<void**>(&p.is_initialized)},
                                                   {"PyGILState_Ensure", reinterpret_cast<void**>(&p.ensure)},
                                                   {"PyGILState_Release", reinterpret_cast<void**>(&p.release)},
                                                   {"PyEval_GetFrame", reinterpret_cast<void**>(&p.frame)},
                                                   {"PyFrame_GetBack", reinterpret_cast<void**>(&p.back)},
                                                   {"PyFrame_GetCode", reinterpret_cast<void**>(&p.code)},
                                                   {"PyFrame_GetLineNumber", reinterpret_cast<void**>(&p.line)},
                                                   {"PyObject_GetAttrString", reinterpret_cast<void**>(&p.attribute)},
                                                   {"PyUnicode_AsUTF8", reinterpret_cast<void**>(&p.utf8)},
                                                   {"PyUnicode_AsEncodedString", reinterpret_cast<void**>(&p.encode)},
                                                   {"PyBytes_AsString", reinterpret_cast<void**>(&p.bytes)},
                                                   {"Py_DecRef", reinterpret_cast<void**>(&p.drop)},
                                                   {"PyErr_Fetch", reinterpret_cast<void**>(&p.fetch)},
                                                   {"PyErr_Restore", reinterpret_cast<void**>(&p.restore)}};
    p.whole = true;
    for (const auto& [name, where] : rows) p.whole = (*where = find_function(name)) != nullptr && p.whole;
    return p;
  }();
  return found;
}

}  // namespace

SiteSlot* python_site() {
  const Python& p = interpreter();
  if (!p.whole || !p.is_initialized()) return nullptr;
  const int state = p.ensure();
  void* error[3];  // the exception that is pending here, if any; those of the calls below are dropped
  p.fetch(&error[0], &error[1], &error[2]);
  std::vector<profiles::Frame> found;
  std::uint64_t key = kSeveral;
  void* at = p.frame();  // borrowed; outer frames are new references
  for (void* owned = nullptr; at && static_cast<int>(found.size()) < frames_per_call;) {
    void* code = p.code(at);
    const auto text = [&](const char* name) {
      void* object = p.attribute(code, name);
      const char* utf8 = object ? p.utf8(object) : nullptr;
      std::string out = utf8 ? utf8 : "";
      if (object && !utf8)  // it has surrogates: the bytes of a name that is not UTF-8
        if (void* bytes = p.encode(object, "utf-8", "backslashreplace")) {
          out = p.bytes(bytes);
          p.drop(bytes);
        }
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
    if (static_cast<int>(found.size()) >= frames_per_call && owned) p.drop(owned);
  }
  p.restore(error[0], error[1], error[2]);
  p.release(state);
  if (found.empty()) return nullptr;
  Slot* slot = find_slot(key);
  return slot ? slot : &add_site(key, std::move(found));
}

}  // namespace latecomer::shim
