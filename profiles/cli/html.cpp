// SPDX-License-Identifier: BSD-3-Clause
// Writes the report as an HTML page.
#include "profiles/cli/html.hpp"

#include <algorithm>
#include <cstdio>

#include "profiles/cli/common.hpp"
#include "profiles/cli/profile_file.hpp"
#include "profiles/cli/verdict.hpp"

namespace latecomer::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

/// Vertical bars with their ranges as tooltips. The labels below are the first edge, the mean and the last edge.
std::string histogram_svg(const Json& h) {
  const auto counts = h["counts"].get<std::vector<double>>();
  const auto edges = h["edges"].get<std::vector<double>>();
  if (counts.empty()) return "";
  const double most = std::max(1.0, *std::max_element(counts.begin(), counts.end()));
  const double width = 420.0 / static_cast<double>(counts.size());
  std::string out = "<svg viewBox='0 0 420 130' width='420' height='130' role='img'>";
  char text[256];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double height = 100 * counts[i] / most;
    std::snprintf(text, sizeof text,
                  "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f'><title>%s to %s: %.0f</title></rect>",
                  static_cast<double>(i) * width, 105 - height, std::max(1.0, width - 1), height,
                  human_time(edges[i]).c_str(), human_time(edges[i + 1]).c_str(), counts[i]);
    out += text;
  }
  std::snprintf(text, sizeof text,
                "<text x='0' y='122'>%s</text><text x='210' y='122' text-anchor='middle'>mean %s</text><text x='420' "
                "y='122' text-anchor='end'>%s</text></svg>",
                human_time(edges.front()).c_str(), human_time(h["mean"]).c_str(), human_time(edges.back()).c_str());
  return out + text;
}

/// One horizontal bar per rank for its mean offset from the first arrival. Shows the kRowsKept latest ranks.
std::string ranks_svg(const Json& ranks) {
  std::vector<const Json*> rows;
  for (const Json& r : ranks) rows.push_back(&r);
  const auto offset = [](const Json* r) { return (*r)["mean_offset_ns"].get<double>(); };
  std::stable_sort(rows.begin(), rows.end(), [&](const Json* a, const Json* b) { return offset(a) > offset(b); });
  if (rows.size() > kRowsKept) rows.resize(kRowsKept);
  if (rows.empty()) return "";
  const double most = std::max(1.0, offset(rows.front()));
  char text[320];
  std::string out;
  std::snprintf(text, sizeof text, "<svg viewBox='0 0 420 %zu' width='420' height='%zu' role='img'>", rows.size() * 16,
                rows.size() * 16);
  out += text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::snprintf(text, sizeof text,
                  "<text x='0' y='%zu'>rank %s</text><rect x='70' y='%zu' width='%.1f' height='12'><title>last %llu "
                  "times</title></rect><text x='%.1f' y='%zu'>%s</text>",
                  i * 16 + 12, row_name(*rows[i]).c_str(), i * 16 + 2, 240 * offset(rows[i]) / most,
                  static_cast<unsigned long long>((*rows[i])["last_count"].get<std::uint64_t>()),
                  75 + 240 * offset(rows[i]) / most, i * 16 + 12, human_time(offset(rows[i])).c_str());
    out += text;
  }
  return out + "</svg>";
}

}  // namespace

std::string html_report(const Json& profile) {
  const Json& job = profile["job"];
  std::string out =
      "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>latecomer</title><style>"
      "body{font:14px "
      "system-ui,sans-serif;margin:2em;max-width:75em;color:#222;background:#fff}table{border-collapse:collapse}"
      "td,th{padding:.25em .7em;text-align:right;border-bottom:1px solid "
      "#ddd}td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}"
      ".verdict{font-size:1.15em;max-width:50em;margin:.3em "
      "0}rect{fill:#3b6ea5}text{font-size:11px;fill:#444}section{margin-top:2.5em}.plots{display:flex;gap:3em;flex-"
      "wrap:"
      "wrap}"
      "@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}text{fill:#bbb}td,th{border-color:#333}"
      "rect{fill:#6ea0d8}}</style>";
  out += "<h1>Who waits for whom</h1><p><code>" + escaped(job["command_line"]) + "</code><br>" +
         std::to_string(job["ranks"].get<int>()) + " ranks, " + escaped(job["mpi_library"]) + ", mode " +
         escaped(job["mode"]) + ", " + escaped(job["start"]) + "</p>";
  for (const std::string& sentence : verdict(profile)) out += "<p class='verdict'>" + escaped(sentence) + "</p>";
  out +=
      "<table><tr><th>collective<th>ranks<th>calls<th>bytes<th>wait, sum<th>of time<th>wait, mean<th>after "
      "last<th>called "
      "from</tr>";
  const auto shown = [](const Json& s) { return s["patterns"].get<std::uint64_t>() > 0; };
  for (const Json& s : profile["sites"]) {
    if (!shown(s)) continue;
    const double wait = s["imbalance_ns"]["mean"];
    out += "<tr><td>" + escaped(s["op"]) + "<td>" + std::to_string(s["comm_size"].get<int>()) + "<td>" +
           std::to_string(s["calls"].get<std::uint64_t>()) + "<td>" +
           (s["bytes"].is_null()
                ? "-"
                : human_bytes(static_cast<double>(static_cast<std::int64_t>(s["bytes"]["mean"].get<double>())))) +
           "<td>" + human_time(total_wait(s)) + "<td>" + percent(total_wait(s) / std::max(1.0, rank_time(profile))) +
           "<td>" + human_time(wait) + "<td>" + human_time(s["after_last_ns"]["mean"]) + "<td><a href='#" +
           escaped(s["id"]) + "'>" + escaped(place(s["frames"][0])) + "</a></tr>";
  }
  out += "</table>";
  for (const Json& s : profile["sites"]) {
    if (!shown(s)) continue;
    out += "<section id='" + escaped(s["id"]) + "'><h2>" + escaped(place(s["frames"][0])) + "</h2><p>" +
           escaped(s["op"]) + " on " + std::to_string(s["comm_size"].get<int>()) + " ranks, site " + escaped(s["id"]) +
           "</p><div class='plots'><div><h3>First to last arrival</h3>" + histogram_svg(s["imbalance_ns"]) +
           "<h3>After the last arrival</h3>" + histogram_svg(s["after_last_ns"]) +
           "</div><div><h3>Ranks, latest first</h3>" + ranks_svg(s["ranks"]) + "</div></div></section>";
  }
  for (const Json& w : profile["warnings"]) out += "<p>Warning: " + escaped(w) + "</p>";
  return out + "</html>\n";
}

}  // namespace latecomer::cli
