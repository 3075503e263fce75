// SPDX-License-Identifier: BSD-3-Clause
// Writes plans and decisions as JSON.
#include "profiles/format/decisions.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/format/profile_keys.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const core::SlotReport& r, int comm_size) {
  Json out;
  out["site"] = SiteKey{r.site, r.signature.op, comm_size}.id();
  out["op"] = core::name_of(r.signature.op);
  kDecisionKeys.write(out, r);
  return out;
}

}  // namespace

std::string algorithm_named(std::int32_t index) {
  return index < 0 ? "native" : std::string(core::algorithm_at(index).name);
}

std::string plan_json(std::uint64_t communicator, int comm_size, std::uint64_t announced_at, const core::Plan& plan,
                      const std::vector<core::SlotReport>& reports) {
  Json slots = Json::array();
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const core::PlanEntry& e = plan.entries[i];
    Json slot = kSlotKeys.json(e);
    for (int t = 0; t < e.turns; ++t)
      slot["rota"].push_back(kTurnKeys.json(plan.turns[static_cast<std::size_t>(e.first_turn + t)]));
    const core::SlotReport* report = nullptr;
    if (plan.period != 0 && reports.size() == plan.entries.size() && reports[i].signature.hash() == e.signature)
      report = &reports[i];
    else
      for (const auto& r : reports)
        if (!report && r.signature.hash() == e.signature) report = &r;
    if (report) slot.update(describe(*report, comm_size));
    slots.push_back(std::move(slot));
  }
  return json_text(kPlanKeys.json(PlanRow{core::hex16(communicator), comm_size, announced_at, plan, std::move(slots)}));
}

namespace {
constexpr std::string_view kCommunicator = "{\"communicator\":\"";
}
std::string_view communicator_of(std::string_view plan) { return plan.substr(0, kCommunicator.size() + 16); }
bool is_of_world(std::string_view plan) {
  return communicator_of(plan) == std::string(kCommunicator) + core::hex16(kWorldIdentity);
}

std::string decision_json(const core::SlotReport& r, int comm_size) {
  Json out = describe(r, comm_size);
  out["algorithm"] = algorithm_named(r.algorithm);
  return json_text(out);
}

}  // namespace latecomer::profiles
