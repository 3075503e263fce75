// SPDX-License-Identifier: BSD-3-Clause
// Writes samples as folded stacks.
#include "profiles/render/folded.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace latecomer::profiles {

void write_folded(const Profile& profile, const Sink& sink) {
  const auto plain = [](std::string text) {
    std::ranges::replace(text, ';', ':');
    std::ranges::replace(text, '\n', ' ');
    return text;
  };
  std::map<std::tuple<long, bool, std::string, std::string>, double> stacks;
  for (const analysis::CodeFigures::Samples& one : profile.code.samples) {
    const std::string call = analysis::call_named(profile, one.next);
    const std::string next = call.empty() ? "before another call" : "before " + call;
    const std::string function = analysis::function_of(profile, one);
    for (const auto& [rank, samples] : one.rows) stacks[{rank, one.others, plain(next), plain(function)}] += samples;
  }
  for (const auto& [stack, samples] : stacks)
    sink("rank " + std::to_string(std::get<0>(stack)) + (std::get<1>(stack) ? ";other threads;" : ";") +
         std::get<2>(stack) + ";" + std::get<3>(stack) + " " + std::to_string(static_cast<long long>(samples)) + "\n");
}

}  // namespace latecomer::profiles
