// SPDX-License-Identifier: BSD-3-Clause
// Names of the frames of a profile.
#include "profiles/symbols/names.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "profiles/symbols/symbols.hpp"

namespace latecomer::profiles {

namespace {

/// The warnings about modules whose lines are unknown, which every look finds anew.
class Gaps {
 public:
  explicit Gaps(Json& profile) : profile_(profile) {
    for (const Json& warning : profile.value("warnings", Json::array())) before_.push_back(warning.get<std::string>());
  }
  /// The module holds the first frame of a site.
  void look_at(const std::string& module) { modules_.insert(core::base_name(module)); }
  void add(const std::string& module, const std::string& gap) {
    if (gap.empty()) return;
    // The file that had no debug information may be gone now.
    const std::string name = core::base_name(module), lacking = name + " " + kNoDebugInformation;
    const auto known = std::ranges::find_if(before_, [&](const auto& w) { return w.starts_with(lacking); });
    found_.insert(known != before_.end() ? *known : name + " " + gap);
  }
  void put() {
    Json out = Json::array();
    for (const std::string& warning : before_)
      if (found_.erase(warning) > 0 || !is_gap(warning)) out.push_back(warning);
    for (const std::string& gap : found_) out.push_back(gap);
    profile_["warnings"] = std::move(out);
  }

 private:
  bool is_gap(const std::string& warning) const {
    return std::ranges::any_of(modules_, [&](const std::string& module) {
      return warning.starts_with(module) && std::ranges::any_of(kGaps, [&](const char* gap) {
               return std::string_view(warning).substr(module.size()).starts_with(std::string(" ") + gap);
             });
    });
  }

  Json& profile_;
  std::vector<std::string> before_;
  std::set<std::string> modules_, found_;
};

}  // namespace

bool resolve_names(Json& profile, Progress::Patience patience) {
  Symbols symbols;
  Progress progress("resolving names, sites", static_cast<std::int64_t>(profile["sites"].size()), patience);
  Gaps gaps(profile);
  bool changed = false;
  const auto resolve = [&](Json& frame, const std::string& offset, const std::string& module,
                           const std::string& build_id) {
    const SymbolNames names = symbols.resolve(module, build_id, std::strtoull(offset.c_str(), nullptr, 16));
    if (names.chain.empty()) return;
    const Json before = frame;
    frame.erase("near");  // of earlier versions
    frame.erase("inlined_into");
    const auto fill = [](Json& to, const SymbolName& from) {
      if (!from.function.empty()) to["function"] = core::utf8(from.function);
      if (!from.file.empty()) {
        to["file"] = core::utf8(from.file);
        to["line"] = from.line;
      }
    };
    for (std::size_t i = 0; i < names.chain.size(); ++i) {
      Json outer = {{"function", nullptr}, {"file", nullptr}, {"line", nullptr}};
      fill(i == 0 ? frame : outer, names.chain[i]);
      if (i > 0) frame["inlined_into"].push_back(std::move(outer));
    }
    changed = changed || frame != before;
  };
  const auto name = [&](Json& frame, bool shown) {
    const std::string offset = frame["offset"].get<std::string>(), module = frame["module"].get<std::string>(),
                      build_id = frame["build_id"].get<std::string>();
    if (offset == "0x0") return;
    if (shown) gaps.look_at(module);
    // A process knows the function of a dynamic symbol, without its line.
    if (frame["function"].is_null() || frame["file"].is_null()) {
      progress.begin("in " + core::base_name(module));
      resolve(frame, offset, module, build_id);
    }
    frame["module"] = core::utf8(module);  // raw in frames of a live process
    if (shown && frame["file"].is_null()) gaps.add(module, symbols.gap(module, build_id));
  };
  for (Json& site : profile["sites"]) {
    for (Json& frame : site["frames"]) name(frame, &frame == &site["frames"].front());
    if (const auto callers = site.find("callers"); callers != site.end())
      for (Json& caller : *callers)
        for (Json& frame : caller["frames"]) name(frame, false);
    progress.done();
  }
  for (const char* list : {"timed_sites", "thread_sites"})
    if (const auto timed = profile.find(list); timed != profile.end())
      for (Json& site : *timed)
        for (Json& frame : site["frames"]) name(frame, &frame == &site["frames"].front());
  if (const auto code = profile.find("code"); code != profile.end())
    for (Json& place : (*code)["places"]) name(place["frame"], false);
  if (const auto state = profile.find("last_state"); state != profile.end())
    for (Json& place : (*state)["places"])
      for (Json& frame : place["frames"]) name(frame, true);
  gaps.put();
  return changed;
}

analysis::NamedFrame frame_of(const Json& frame) {
  const auto named = [](const Json& from) {
    analysis::NamedFrame::Name out;
    if (!from["function"].is_null()) out.function = from["function"].get<std::string>();
    if (!from["file"].is_null()) out.file = from["file"].get<std::string>();
    if (!from["line"].is_null()) out.line = from["line"].get<int>();
    return out;
  };
  analysis::NamedFrame out;
  out.module = frame["module"].get<std::string>();
  out.build_id = frame["build_id"].get<std::string>();
  out.offset = frame["offset"].get<std::string>();
  out.name = named(frame);
  if (const auto outer = frame.find("inlined_into"); outer != frame.end())
    for (const Json& one : *outer) out.inlined_into.push_back(named(one));
  return out;
}

Json frame_json(const analysis::NamedFrame& frame) {
  const auto known = [](const analysis::NamedFrame::Name& name) {
    return Json{{"function", name.function.empty() ? Json(nullptr) : Json(name.function)},
                {"file", name.file.empty() ? Json(nullptr) : Json(name.file)},
                {"line", name.file.empty() ? Json(nullptr) : Json(name.line)}};
  };
  Json out = {{"module", frame.module}, {"build_id", frame.build_id}, {"offset", frame.offset}};
  out.update(known(frame.name));
  for (const analysis::NamedFrame::Name& outer : frame.inlined_into) out["inlined_into"].push_back(known(outer));
  return out;
}

}  // namespace latecomer::profiles
