// SPDX-License-Identifier: BSD-3-Clause
// Tests the policy file: every kind of error has a line, a path and a remedy.
#include "core/policy/policy.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "core/agreement/agreement.hpp"

using namespace latecomer::core;

namespace {
std::string rules(const std::string& list) { return "{\"version\":1,\"mode\":\"apply\",\"rules\":[\n" + list + "]}"; }
}  // namespace

TEST_CASE("policy: a policy with most keys is valid", "[policy]") {
  const auto report = parse_policy(R"({"version":1,"mode":"apply","reproducible":"any","objective":"run_time",
    "network":{"alpha_us":25,"beta_ns_per_byte":8.0,"gamma_ns_per_byte":0.3,"ports":1},
    "predictor":{"kind":"sma","window":8},"background":{"enabled":false,"max_buffer_mib":64},"sites":{"depth":1},
    "rules":[{"match":{"op":"allreduce","bytes":{"min":65536},"comm_size":{"min":4}},"use":"prr"},
             {"match":{"op":"gather","imbalance_factor":{"min":4}},"use":"auto"},{"match":{},"use":"native"}]})");
  for (const auto& p : report.problems) UNSCOPED_INFO(p.path << ": " << p.message);
  REQUIRE(report.ok());
  CHECK(report.policy.network.alpha_ns == 25'000);
  CHECK(report.policy.rules.size() == 3);
}

TEST_CASE("policy: each kind of error", "[policy]") {
  const std::vector<std::tuple<std::string, int, std::string, std::string>> mistakes = {
      {"{\"version\":1,\n\"mode\": \"aply\"}", 2, "mode", "did you mean 'apply'"},
      {"{\"version\":1,\n\n\"mod\": \"apply\"}", 3, "mod", "did you mean 'mode'"},
      {"{\"version\":2}", 1, "version", "from 1 to 1, got 2"},
      {"{\"mode\":\"off\"}", 1, "version", "missing"},
      {"{\"version\":1,\"version\":1}", 1, "version", "given twice"},
      {"{\"version\":1,\n\"mode\": \"apply\",,}", 2, "", "syntax error"},
      {"[]", 1, "", "expected an object"},
      {"{\"version\":1,\"causes\":1}", 1, "causes", "expected true or false"},
      {"{\"version\":1,\"prometheus\":true}", 1, "prometheus", "string"},
      {"{\"version\":1,\"history\":\"\"}", 1, "history", "non-empty"},
      {"{\"version\":1,\"output\":\"/logs/%U/%j.json\"}", 1, "output", "unknown pattern '%U', valid are %j, %u"},
      {"{\"version\":1,\"output\":\"100%%/50%\"}", 1, "output", "unknown pattern '%'"},
      {"", 1, "", "empty"},
      {"{\"version\":1,\"predictor\":{\n\"window\":\"8\"}}", 2, "predictor.window",
       "expected an integer from 1 to 1024, got \"8\""},
      {"{\"version\":1,\"predictor\":{\"windw\":8}}", 1, "predictor.windw", "did you mean 'window'"},
      {"{\"version\":1,\"background\":{\"enabled\":1}}", 1, "background.enabled", "expected true or false"},
      {"{\"version\":1,\"network\":\"eth10g\"}", 1, "network", "eth1g"},
      {"{\"version\":1,\"network\":{\"alpha_ms\":1}}", 1, "network.alpha_ms", "alpha_us"},
      {"{\"version\":1,\"roll_call_timeout_s\":0}", 1, "roll_call_timeout_s", "expected a number"},
      {rules("{\"match\":{\"op\":\"allreduce\"},\n\"use\":\"rng\"}"), 3, "rules[0].use", "did you mean 'ring'"},
      {rules("{\"match\":{\"op\":\"allreduc\"},\"use\":\"ring\"}"), 2, "rules[0].match.op", "did you mean 'allreduce'"},
      {rules("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"min\":\"1 MB\"}},\"use\":\"ring\"}"), 2,
       "rules[0].match.bytes.min", "1 MB"},
      {rules("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"mni\":1}},\"use\":\"ring\"}"), 2,
       "rules[0].match.bytes.mni", "did you mean 'min'"},
      {rules("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"min\":9,\"max\":3}},\"use\":\"ring\"}"), 2,
       "rules[0].match.bytes", "min is larger"},
      {rules("{\"match\":{\"op\":\"bcast\"},\"use\":\"prr\"}"), 2, "rules[0].use", "bcast has no algorithm"},
      {rules("{\"match\":{\"op\":\"allgather\"},\"use\":\"ring\"}"), 2, "rules[0].use",
       "allgather has no algorithm"},  // those in the catalogue run on range communicators only
      {rules("{\"match\":{},\"use\":\"prr\"}"), 2, "rules[0].use", "\"op\": \"allreduce\""},
      {rules("{\"match\":{\"op\":\"allreduce\",\"op_class\":\"user_noncommutative\"},\"use\":\"slt\"}"), 2,
       "rules[0].use", "reorders operands"},
      {rules("{\"match\":{\"op\":\"allreduce\"},\"use\":{\"algorithm\":\"ring\",\"segments\":4}}"), 2,
       "rules[0].use.segments", "takes no segments"},
      {rules("{\"match\":{\"op\":\"allreduce\"},\"use\":{\"segments\":4}}"), 2, "rules[0].use.algorithm", "missing"},
      {rules("{\"match\":{\"op\":\"allreduce\"}}"), 2, "rules[0].use", "missing"},
      {rules("{\"use\":\"native\"}"), 2, "rules[0].match", "missing"},
      {rules("{\"match\":{\"op\":\"allreduce\"},\"use\":\"ring\",\"when\":1}"), 2, "rules[0].when", "unknown key"},
      {rules("7"), 2, "rules[0]", "expected an object"},
  };
  for (const auto& [text, line, path, says] : mistakes) {
    const auto report = parse_policy(text);
    INFO(text);
    REQUIRE_FALSE(report.ok());
    bool found = false;
    for (const auto& p : report.problems) {
      UNSCOPED_INFO(p.line << " " << p.path << ": " << p.message);
      found = found || (p.line == line && p.path == path && p.message.find(says) != std::string::npos);
    }
    CHECK(found);
  }
}

TEST_CASE("policy: deep nesting is an error and no end of the stack", "[policy]") {
  for (const char* open : {"[", "{\"rules\":"}) {
    std::string text = "{\"version\": 1,\n\"rules\": ";
    for (int i = 0; i < 600'000; ++i) text += open;
    const auto report = parse_policy(text);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].line == 2);
    CHECK(report.problems[0].message.find("nested more than 64 deep") != std::string::npos);
  }
}

TEST_CASE("policy: all errors are reported, in the order of their lines", "[policy]") {
  const auto report = parse_policy("{\"version\":1,\n\"mode\":\"aply\",\n\"waiting\":\"spinn\",\n\"objectiv\":1}");
  REQUIRE(report.problems.size() == 3);
  CHECK(report.problems[0].line == 2);
  CHECK(report.problems[2].line == 4);
}

TEST_CASE("policy: rules that can never match", "[policy]") {
  const auto dead = [](const std::string& list) {
    const auto report = parse_policy(rules(list));
    REQUIRE(report.ok());
    return std::count_if(report.notes.begin(), report.notes.end(),
                         [](const auto& n) { return n.message.find("can never match") == 0; });
  };
  CHECK(dead("{\"match\":{},\"use\":\"native\"},{\"match\":{\"op\":\"allreduce\"},\"use\":\"ring\"}") == 1);
  CHECK(dead("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"min\":10}},\"use\":\"ring\"},{\"match\":{\"op\":"
             "\"allreduce\",\"bytes\":{\"min\":20}},\"use\":\"prr\"}") == 1);
  CHECK(dead("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"min\":20}},\"use\":\"ring\"},{\"match\":{\"op\":"
             "\"allreduce\",\"bytes\":{\"min\":10}},\"use\":\"prr\"}") == 0);
  // A rule with a site is skipped until a plan is in force, so it hides no later rule.
  CHECK(dead("{\"match\":{\"op\":\"allreduce\",\"site\":\"x*\"},\"use\":\"ring\"},{\"match\":{\"op\":\"allreduce\"},"
             "\"use\":\"prr\"}") == 0);
  CHECK(dead("{\"match\":{\"op\":\"bcast\",\"op_class\":\"sum\"},\"use\":\"native\"}") == 1);
  CHECK(dead("{\"match\":{\"op\":\"allreduce\",\"root\":{\"min\":1}},\"use\":\"ring\"}") == 1);
}

TEST_CASE("policy: rules that no call can follow, and rules that serve a part of their calls", "[policy]") {
  const auto review = [](const std::string& keys, const std::string& use) {
    const auto report = parse_policy("{\"version\":1," + keys +
                                     "\"rules\":[\n{\"match\":{\"op\":\"allreduce\"},\"use\":\"" + use + "\"}]}");
    REQUIRE(report.ok());
    return report;
  };
  for (const auto& [keys, mode] : {std::pair{"", "observe"}, {"\"mode\":\"off\",", "off"}}) {
    const auto report = review(keys, "ring");
    REQUIRE(report.notes.size() == 1);
    CHECK(report.notes[0].message.find("can never apply") == 0);
    CHECK(report.notes[0].line == 2);
    CHECK(report.notes[0].message.find(mode) != std::string::npos);
    CHECK(review(keys, "native").notes.empty());
  }
  CHECK(review("\"mode\":\"apply\",", "ring").notes.empty());
  const std::string apply = "\"mode\":\"apply\",\"reproducible\":";
  const auto warned = [&](const std::string& reproducible, const std::string& use) {
    const auto report = review(apply + "\"" + reproducible + "\",", use);
    REQUIRE(report.warnings.size() <= 1);
    return report.warnings.empty() ? "" : report.warnings[0].message;
  };
  CHECK(warned("any", "slt").empty());
  CHECK(warned("run", "ring").empty());
  CHECK(warned("run", "slt").find("allowed for them: ") != std::string::npos);
  CHECK(warned("run", "slt").find("ring") != std::string::npos);
  CHECK(warned("native", "ring").find("allows them no algorithm") != std::string::npos);
}

TEST_CASE("policy: a key with its documented default changes nothing", "[policy]") {
  const Policy plain = parse_policy("{\"version\":1}").policy;
  int defaults = 0;
  for (const KeyRow& row : policy_keys()) {
    if (row.fallback.empty()) continue;
    const std::size_t dot = row.path.find('.');
    std::string member = "\"" + std::string(row.path.substr(dot + 1)) + "\":" + std::string(row.fallback);
    if (dot != std::string_view::npos) member = "\"" + std::string(row.path.substr(0, dot)) + "\":{" + member + "}";
    const auto report = parse_policy("{\"version\":1," + member + "}");
    INFO(row.path);
    REQUIRE(report.ok());
    CHECK(report.policy == plain);
    ++defaults;
  }
  CHECK(defaults > 10);
  Policy given = plain;
  given.network = Network{};
  given.network_given = true;
  for (const KeyRow& row : network_keys()) {
    if (row.fallback.empty()) continue;
    INFO(row.path);
    CHECK(parse_policy("{\"version\":1,\"network\":{\"" + std::string(row.path) + "\":" + std::string(row.fallback) +
                       "}}")
              .policy == given);
  }
}

TEST_CASE("policy: `history` is the older name of `learn`", "[policy]") {
  const auto learn = [](const char* keys) {
    return parse_policy("{\"version\":1," + std::string(keys) + "}").policy.learn;
  };
  CHECK(learn("\"history\":\"a\"") == "a");
  CHECK(learn("\"history\":\"a\",\"learn\":\"b\"") == "b");
  CHECK(learn("\"learn\":\"b\",\"history\":\"a\"") == "b");
}

TEST_CASE("policy: decisions", "[policy]") {
  auto policy =
      parse_policy(
          rules("{\"match\":{\"op\":\"allreduce\",\"bytes\":{\"min\":\"1KiB\",\"max\":\"4KiB\"},\"comm_size\":{\"min\":"
                "3}},\"use\":\"prr\"},"
                "{\"match\":{\"op\":\"allreduce\",\"op_class\":[\"max\",\"user_noncommutative\"]},\"use\":\"linear\"}"))
          .policy;
  Signature s;
  s.op = Collective::allreduce;
  s.bytes = 2048;
  s.op_class = OpClass::sum;
  s.servable = true;
  const auto name = [&](int size) {
    const Decision d = decide_call(policy, s, size);
    return d.algorithm ? std::string(d.algorithm->name) : "native";
  };
  CHECK(name(4) == "prr");
  CHECK(name(2) == "native");
  CHECK(name(1) == "native");
  s.bytes = 4096;
  CHECK(name(4) == "prr");
  s.bytes = 4097;
  CHECK(name(4) == "native");
  s.op_class = OpClass::max;
  CHECK(name(4) == "linear");
  s.bytes = 0;
  CHECK(name(4) == "native");
  s.bytes = 2048;
  s.op_class = OpClass::user_noncommutative;
  CHECK(name(4) == "native");  // prr matches first and cannot serve it
  s.bytes = 8;
  CHECK(name(4) == "linear");
  s.kind = CallKind::nonblocking;
  CHECK(name(4) == "native");
  s.kind = CallKind::blocking;
  s.bytes = 2048;
  s.op_class = OpClass::sum;
  policy.reproducible = Reproducible::run;
  CHECK(name(4) == "native");
  s.exact = true;
  CHECK(name(4) == "prr");
  policy.reproducible = Reproducible::native;
  CHECK(name(4) == "prr");
  s.exact = false;
  CHECK(name(4) == "native");
  policy.mode = Mode::observe;
  s.exact = true;
  CHECK(name(4) == "native");
}

TEST_CASE("policy: sizes that only the root knows match no rule with bytes", "[policy]") {
  const auto policy = parse_policy(rules("{\"match\":{\"op\":\"gatherv\",\"bytes\":{\"max\":\"4KiB\"}},\"use\":"
                                         "\"linear\"},{\"match\":{\"op\":\"gatherv\"},\"use\":\"binomial\"}"))
                          .policy;
  Signature s;
  s.op = Collective::gatherv;
  s.root = 0;
  s.count = 1;
  s.servable = s.exact = true;
  const Decision d = decide_call(policy, s, 4);
  REQUIRE(d.algorithm);
  CHECK(d.algorithm->name == "binomial");
}

TEST_CASE("policy: a wrong `use` lists the algorithms of the rule's collectives, each once", "[policy]") {
  const auto said = [](const std::string& match, const std::string& use) {
    const auto report = parse_policy(rules("{\"match\":" + match + ",\"use\":\"" + use + "\"}"));
    REQUIRE(report.problems.size() == 1);
    return report.problems[0].message;
  };
  CHECK(
      said("{\"op\":\"gather\"}", "zzzzzzzzzzzz") ==
      "unknown algorithm \"zzzzzzzzzzzz\"; valid: linear linear_sync binomial sls sbn bsls bsbn two_level auto native");
  const std::string two = said("{\"op\":[\"scatterv\",\"gatherv\"]}", "zzzzzzzzzzzz");
  CHECK(two ==
        "unknown algorithm \"zzzzzzzzzzzz\"; valid: linear binomial binary adaptive optimal two_block sorted two_level "
        "auto native");
  CHECK(said("{\"op\":\"gather\"}", "prr") ==
        "gather has no algorithm \"prr\"; valid: linear linear_sync binomial sls sbn bsls bsbn two_level auto native");
  CHECK(said("{\"op\":\"allgather\"}", "ring").find("allgather has no algorithm \"ring\": no algorithm serves it") ==
        0);
  const std::string all = said("{}", "zzzzzzzzzzzz");
  std::map<std::string, int> words;
  for (std::size_t at = all.find("valid: ") + 7, end; at < all.size(); at = end + 1) {
    end = std::min(all.find(' ', at), all.size());
    ++words[all.substr(at, end - at)];
  }
  CHECK(words.size() > 20);
  for (const auto& [word, times] : words) CHECK(times == 1);
}

TEST_CASE("policy: rules that need a plan give a warning and no error", "[policy]") {
  const auto warned = [](const std::string& list) {
    const auto report = parse_policy(rules(list));
    CHECK(report.ok());
    std::string out;
    for (const auto& w : report.warnings) out += std::to_string(w.line) + " " + w.path + ": " + w.message + "\n";
    return out;
  };
  CHECK(
      warned("{\"match\":{\"op\":\"allreduce\"},\"use\":\"prr\"},{\"match\":{\"op\":\"gatherv\"},\"use\":\"adaptive\"}")
          .empty());
  CHECK(warned("{\"match\":{\"op\":\"scatterv\"},\"use\":\"sorted\"}")
            .find("2 rules[0]: comes into force only with a plan, at call 32 of a communicator at the earliest: "
                  "scatterv sorted needs the sizes") == 0);
  CHECK(warned("{\"match\":{\"op\":\"bcast\",\"site\":\"main*\"},\"use\":\"binomial\"}").find("match.site") !=
        std::string::npos);
  CHECK(warned("{\"match\":{\"op\":\"bcast\",\"imbalance_factor\":{\"min\":2}},\"use\":\"binomial\"}")
            .find("without \"network\" its factor is never known") != std::string::npos);
}
