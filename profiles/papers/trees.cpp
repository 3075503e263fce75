// SPDX-License-Identifier: BSD-3-Clause
// Tables 1 to 3 of Träff 2019: completion times of gather trees for eleven distributions of block sizes.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "core/trees/distributions.hpp"
#include "profiles/papers/binary_times.hpp"
#include "profiles/papers/papers.hpp"

namespace latecomer::profiles::papers {
namespace {

constexpr int kRoot = 1000;  // as in the paper

/// The problem of a row such as "random decreasing, gamma 1, given root".
core::TreeProblem problem(std::string_view row, double alpha) {
  std::string name(row.substr(0, row.find(',')));
  if (name.starts_with("random ")) name = name == "random decreasing" ? "random_down" : "random_up";
  std::replace(name.begin(), name.end(), ' ', '_');
  core::TreeProblem out;
  auto sizes = core::parse_distribution(name + ":2000:1000:5");
  if (!sizes) throw std::logic_error(sizes.error());
  out.sizes = std::move(*sizes);
  out.alpha = {alpha};
  out.beta = {1};
  out.gamma = {row.find("gamma 1") != row.npos ? 1.0 : 0.0};
  return out;
}

double cost(const core::TreeProblem& p, std::string_view algorithm, core::Rank root) {
  const auto kind = core::parse_tree_kind(algorithm);
  if (!kind) throw std::logic_error(kind.error());
  if (*kind == core::TreeKind::binary) {
    // The two rows of one problem (given root, free root) are consecutive: compute them together.
    static std::vector<double> sizes, costs;
    static std::optional<BinaryTimes> times;
    const std::vector<double> now{p.alpha[0], p.beta[0], p.gamma[0]};
    if (sizes != p.sizes || costs != now) {
      sizes = p.sizes;
      costs = now;
      times = binary_times(p, kRoot);
    }
    if (times) return root < 0 ? times->free : times->given;
  }
  core::TreeOptions options;
  options.root = root;
  const auto tree = core::plan_tree(*kind, p, options);
  if (!tree) throw std::runtime_error(tree.error());
  return tree->cost;
}

}  // namespace

std::vector<Table> trees() {
  auto tables = printed("003");
  for (const auto& [name, alpha] : {std::pair<const char*, double>{"1", 100}, {"2", 1}, {"3", 1000}})
    compute(
        tables, name,
        "completion time of a gather tree, p = 2000, b = 1000, rho = 5, alpha = " +
            std::to_string(static_cast<int>(alpha)) + ", beta = 1; given root: 1000",
        0,
        "Our figures are less for two reasons. With a free root, the paper's linear and binomial trees take the last "
        "root that beats root 0, and ours the best root. The paper's optimal tree roots every range of two at the "
        "left and copies last at a right root; ours has the least time of all ordered trees.",
        [&, alpha = alpha](Cell& c) {
          const bool given = c.row.ends_with("given root");
          c.ours = cost(problem(c.row, alpha), c.column, given ? kRoot : -1);
        });
  return tables;
}

}  // namespace latecomer::profiles::papers
