// SPDX-License-Identifier: BSD-3-Clause
// Names of the frames of a profile.
#include "profiles/symbols/names.hpp"

#include <cstdlib>
#include <set>

#include "core/base/text.hpp"
#include "profiles/symbols/symbols.hpp"

namespace latecomer::cli {

void resolve_names(Json& profile, Progress::Patience patience) {
  Symbols symbols;
  Progress progress("resolving names, sites", static_cast<std::int64_t>(profile["sites"].size()), patience);
  std::set<std::string> gaps;
  const auto name = [&](Json& frame, bool shown) {
    const std::string offset = frame["offset"].get<std::string>(), module = frame["module"].get<std::string>(),
                      build_id = frame["build_id"].get<std::string>();
    if (!frame["function"].is_null() || offset == "0x0") return;
    progress.begin("in " + core::base_name(module));
    const SymbolNames names = symbols.resolve(module, build_id, std::strtoull(offset.c_str(), nullptr, 16));
    const auto fill = [](Json& to, const SymbolName& from) {
      if (!from.function.empty()) to["function"] = core::utf8(from.function);
      if (!from.file.empty()) to["file"] = core::utf8(from.file), to["line"] = from.line;
    };
    for (std::size_t i = 0; i < names.chain.size(); ++i) {
      Json outer = {{"function", nullptr}, {"file", nullptr}, {"line", nullptr}};
      fill(i == 0 ? frame : outer, names.chain[i]);
      if (i > 0) frame["inlined_into"].push_back(std::move(outer));
    }
    if (!names.near.empty()) frame["near"] = core::utf8(names.near);
    frame["module"] = core::utf8(module);  // raw in frames of a live process
    if (!shown || !frame["file"].is_null()) return;
    if (const std::string gap = symbols.gap(module, build_id); !gap.empty())
      gaps.insert(core::base_name(module) + " " + gap);
  };
  for (Json& site : profile["sites"]) {
    for (Json& frame : site["frames"]) name(frame, &frame == &site["frames"].front());
    if (const auto callers = site.find("callers"); callers != site.end())
      for (Json& caller : *callers)
        for (Json& frame : caller["frames"]) name(frame, false);
    progress.done();
  }
  for (const std::string& gap : gaps) profile["warnings"].push_back(gap);
}

analysis::Frame frame_of(const Json& frame) {
  const auto named = [](const Json& from) {
    analysis::Frame::Name out;
    if (!from["function"].is_null()) out.function = from["function"].get<std::string>();
    if (!from["file"].is_null()) out.file = from["file"].get<std::string>();
    if (!from["line"].is_null()) out.line = from["line"].get<int>();
    return out;
  };
  analysis::Frame out;
  out.module = frame["module"].get<std::string>(), out.build_id = frame["build_id"].get<std::string>();
  out.offset = frame["offset"].get<std::string>();
  out.name = named(frame), out.near = frame.value("near", "");
  if (const auto outer = frame.find("inlined_into"); outer != frame.end())
    for (const Json& one : *outer) out.inlined_into.push_back(named(one));
  return out;
}

Json frame_json(const analysis::Frame& frame) {
  const auto known = [](const analysis::Frame::Name& name) {
    return Json{{"function", name.function.empty() ? Json(nullptr) : Json(name.function)},
                {"file", name.file.empty() ? Json(nullptr) : Json(name.file)},
                {"line", name.file.empty() ? Json(nullptr) : Json(name.line)}};
  };
  Json out = {{"module", frame.module}, {"build_id", frame.build_id}, {"offset", frame.offset}};
  out.update(known(frame.name));
  if (!frame.near.empty()) out["near"] = frame.near;
  for (const analysis::Frame::Name& outer : frame.inlined_into) out["inlined_into"].push_back(known(outer));
  return out;
}

}  // namespace latecomer::cli
