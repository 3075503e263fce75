// SPDX-License-Identifier: BSD-3-Clause
// Replaces the names that identify a site or a user in all texts of a profile.
#include "profiles/format/redact.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.hpp"

namespace latecomer::profiles {
namespace {

using Json = nlohmann::ordered_json;

std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return core::base_name(path);
}

/// Every byte of a letter outside ASCII counts.
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || (c & 0x80) != 0;
}
/// Characters of a path in the middle of a sentence.
bool is_path(char c) { return is_word(c) || (c != '\0' && std::string_view("/.+~%@#=").find(c) != std::string::npos); }

void replace_words(std::string& text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    const std::size_t end = at + word.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) {
      ++at;
      continue;
    }
    text.replace(at, word.size(), by);
    at += by.size();
  }
}

/// Replaces every path in a text by its last part. A path in single quotes may hold blanks.
std::string without_directories(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t from = at, end = at;
    if (text[at] == '\'' && (at == 0 || !is_word(text[at - 1]))) {
      const std::size_t quote = text.find('\'', at + 1);
      if (quote != std::string::npos) {
        from = at + 1;
        end = quote;
      }
    }
    if (end == at)
      while (end < text.size() && is_path(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(from, end - from);
    // Neither `operator/` nor 3/4 is a path.
    const std::size_t slash = word.find('/');
    const bool path = slash != std::string_view::npos && slash + 1 < word.size() &&
                      word.find_first_not_of("0123456789./") != std::string_view::npos;
    out.append(text, at, from - at);
    out += path ? last_part(word) : std::string(word);
    if (end == at) out += text[end++];
    at = end;
  }
  return out;
}

class Redaction {
 public:
  explicit Redaction(const Json& profile) {
    const Json& job = profile["job"];
    program_ = job["program"].get<std::string>();
    command_line_ = job["command_line"].get<std::string>();
    std::set<std::string> hosts;
    for (const Json& host : job["hosts"]) hosts.insert(host.get<std::string>());
    for (const char* list : {"clock", "processes"})
      for (const Json& one : profile.value(list, Json::array())) hosts.insert(one["host"].get<std::string>());
    const Json last_state = profile.value("last_state", Json::object());
    for (const Json& one : last_state.value("states", Json::array())) hosts.insert(one["host"].get<std::string>());
    hosts.erase("");
    int number = 0;
    for (const std::string& host : hosts) names_[host] = "host-" + std::to_string(++number);
    // A text may hold a host's name without its domain.
    for (const std::string& host : hosts)
      if (const auto dot = host.find('.'); dot != std::string::npos && dot > 0)
        names_.try_emplace(host.substr(0, dot), names_[host]);
    for (const char* list : {"sites", "timed_sites", "thread_sites"})
      for (const Json& site : profile.value(list, Json::array()))
        for (const Json& frame : site["frames"])
          for (const char* key : {"module", "file"})
            if (frame[key].is_string()) note_directory(frame[key].get<std::string>());
    for (const Json& place : profile.value("code", Json::object()).value("places", Json::array()))
      for (const char* key : {"module", "file"})
        if (const Json& path = place["frame"][key]; path.is_string()) note_directory(path.get<std::string>());
    for (const Json& place : last_state.value("places", Json::array()))
      note_directory(place["frames"][0]["module"].get<std::string>());
    note_directory(program_);
    std::ranges::stable_sort(directories_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  }

  /// `name`: the key of the value, or of the array that holds it.
  void run(Json& value, const std::string& name) const {
    if (value.is_object())
      for (auto& [key, one] : value.items()) run(one, key);
    else if (value.is_array())
      for (Json& one : value) run(one, name);
    else if (value.is_string()) value = redacted(value.get<std::string>(), name);
  }

 private:
  /// Directories of the profile may hold blanks, which end a path in a sentence.
  void note_directory(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos || slash == 0) return;
    std::string directory = path.substr(0, slash + 1);
    if (std::ranges::find(directories_, directory) == directories_.end()) directories_.push_back(std::move(directory));
  }

  std::string redacted(const std::string& from, const std::string& name) const {
    if (name == "module" || name == "file" || name == "program") return last_part(from);
    if (name == "command_line") return last_part(program_);
    if (const auto host = names_.find(from); host != names_.end() && (name == "host" || name == "hosts"))
      return host->second;
    // A single word is a name of the program or a value of a list, even if a host has the same name.
    return from.find(' ') == std::string::npos ? without_directories(from) : sentence(from);
  }

  std::string sentence(std::string out) const {
    if (!command_line_.empty() && command_line_ != program_) replace_words(out, command_line_, last_part(program_));
    for (const std::string& directory : directories_)
      for (std::size_t at; (at = out.find(directory)) != std::string::npos;) out.erase(at, directory.size());
    out = without_directories(out);
    // The longest name first: node1.cluster before node1.
    for (auto at = names_.rbegin(); at != names_.rend(); ++at) replace_words(out, at->first, at->second);
    return out;
  }

  std::string program_, command_line_;
  std::map<std::string, std::string> names_;  // of hosts
  std::vector<std::string> directories_;      // the longest first
};

}  // namespace

void redact(Json& profile) { Redaction(profile).run(profile, ""); }

}  // namespace latecomer::profiles
