// SPDX-License-Identifier: BSD-3-Clause
// Puts the verdict, the job and the figures into the template of the page.
#include "profiles/render/html.hpp"

#include <page_files.hpp>  // generated: kPageTemplate, kPageStyle, kPageScript, kPagePlots, kPageLicences

#include "core/base/text.hpp"
#include "profiles/base/json.hpp"
#include "profiles/base/text.hpp"
#include "profiles/render/finding_text.hpp"
#include "profiles/render/hang.hpp"
#include "profiles/render/page_data.hpp"

namespace latecomer::profiles {
namespace {

std::string escaped(std::string_view text) {
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

/// JSON inside a script element: no text can end the element or begin a comment in it.
std::string script_json(const Json& data) {
  std::string out;
  for (const char c : json_text(data))
    if (c == '<') out += "\\u003c";
    else out += c;
  return out;
}

/// Escaped, with `...` as code.
std::string with_code(const std::string& text) {
  std::string out;
  bool code = false;
  for (const char c : text)
    if (c == '`') {
      out += code ? "</code>" : "<code>";
      code = !code;
    } else out += escaped({&c, 1});
  return code ? out + "</code>" : out;
}

/// The headline, and a card for each finding of the first screen.
std::string verdict_html(const Profile& profile) {
  const Judgement judgement = judge(profile);
  if (judgement.headline.empty() && judgement.texts.empty())
    return "<p>The profile does not hold the time of several processes, so it supports no finding.</p>\n";
  std::string out = "<p>" + with_code(judgement.headline) + "</p>\n";
  for (std::size_t i = 0; i < judgement.texts.size(); ++i) {
    const FindingText& one = judgement.texts[i];
    out += "<article class=\"finding\" id=\"finding-" + std::to_string(i + 1) + "\"><h2>" + with_code(one.title) +
           "</h2>" + (one.saves.empty() ? "" : "<p class=\"saves\">" + with_code(one.saves) + "</p>") + "<dl>";
    for (const auto& [label, lines] : {std::pair("where", &one.where), std::pair("why", &one.why)})
      for (const std::string& line : *lines)
        out += std::string("<div><dt>") + label + "</dt><dd>" + with_code(line) + "</dd></div>";
    out += "</dl></article>\n";
  }
  if (!judgement.not_known.empty()) out += "<p>Not known: " + with_code(judgement.not_known) + "</p>\n";
  return out;
}

std::string job_html(const analysis::ProfileJob& job) {
  const std::pair<const char*, std::string> rows[] = {
      {"Command", job.command_line},
      {"Ranks", std::to_string(job.ranks) + " on " + std::to_string(job.hosts) + (job.hosts == 1 ? " host" : " hosts")},
      {"Start", job.start},
      {"Run time",
       job.unfinished > 0 ? "not ended; snapshots end after " + reach_text(job) : human_time(job.mean_run())},
      {"MPI library", job.mpi_library},
      {"Mode", job.mode}};
  std::string out;
  for (const auto& [name, text] : rows)
    out += std::string("<div><dt>") + name + "</dt><dd>" + escaped(text) + "</dd></div>\n";
  return out;
}

std::string warnings_html(const std::vector<std::string>& warnings) {
  std::string out;
  for (const std::string& w : warnings) out += "<li>" + escaped(w) + "</li>\n";
  return out.empty() ? "" : "<h3>Warnings of the profile</h3>\n<ul>\n" + out + "</ul>\n";
}

/// A mark for the title of each figure, if the figures do not cover the whole job.
std::string partial_html(const Profile& profile) {
  const std::string text = partial_text(profile);
  return text.empty() ? "" : " <span class=\"partial\">" + escaped(text) + "</span>";
}

std::string last_state_html(const analysis::LiveState& state) {
  if (state.ranks.empty()) return "";
  return "<details open class=\"part\" id=\"last\"><summary><h2>Last state of the ranks</h2></summary>"
         "<div class=\"body\"><pre tabindex=\"0\">" +
         escaped(Hang(state).table()) + "</pre></div></details>\n";
}

}  // namespace

std::string html_report(const Profile& profile, const ShownSites& shown) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"program", escaped(core::base_name(profile.job.program))},
      {"verdict", verdict_html(profile)},
      {"job", job_html(profile.job)},
      {"partial", partial_html(profile)},
      {"last_state", last_state_html(profile.last_state)},
      {"warnings", warnings_html(profile.warnings)},
      {"style", kPageStyle},
      {"plots", kPagePlots},
      {"script", kPageScript},
      {"licences", escaped(kPageLicences)},
      {"data", script_json(page_data(profile, shown))},
  };
  // Each mark is `{{name}}`. The text of a part is not searched for marks.
  std::string out;
  std::string_view rest = kPageTemplate;
  for (std::size_t at; (at = rest.find("{{")) != std::string_view::npos;) {
    const std::size_t end = rest.find("}}", at);
    out += rest.substr(0, at);
    for (const auto& [name, text] : parts)
      if (name == rest.substr(at + 2, end - at - 2)) out += text;
    rest.remove_prefix(end + 2);
  }
  return out.append(rest);
}

}  // namespace latecomer::profiles
