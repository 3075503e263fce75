// SPDX-License-Identifier: BSD-3-Clause
// `latecomer completion`: generates completion scripts for bash and zsh from the existing commands and options.
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "core/algorithms/algorithm.hpp"
#include "core/network/network.hpp"
#include "profiles/cli/commands.hpp"

namespace latecomer::profiles::cli {
namespace {

/// A command line to complete, such as "report" or "plan tree".
struct CompletionLine {
  std::string words;
  const CLI::App* app;
};

std::vector<CompletionLine> lines_of(const CLI::App& app, const std::string& before) {
  std::vector<CompletionLine> out;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    const std::string words = before.empty() ? sub->get_name() : before + " " + sub->get_name();
    out.push_back({words, sub});
    const auto below = lines_of(*sub, words);
    out.insert(out.end(), below.begin(), below.end());
  }
  return out;
}

std::string joined(const auto& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

std::string subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return joined(names);
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) out.push_back(option);
  return out;
}

/// The possible values of options, by option name. Every other option takes a file or free text.
std::map<std::string, std::string> known_values() {
  std::set<std::string> collectives, algorithms{"all"};
  for (const core::Algorithm& a : core::catalogue()) {
    collectives.insert(std::string(core::name_of(a.op)));
    algorithms.insert(std::string(a.name));
  }
  return {{"op", joined(collectives)},
          {"algorithm", joined(algorithms)},
          {"network", joined(core::network_presets())},
          {"objective", "run_time mean_elapsed after_last"}};
}

std::string bash(const CLI::App& app) {
  std::string lines, words, values, choices = "    '') choices='" + subcommands(app) + " --help --version' ;;\n";
  for (const auto& [name, list] : known_values()) values += "    --" + name + ") choices='" + list + "' ;;\n";
  for (const CompletionLine& line : lines_of(app, "")) {
    lines += (lines.empty() ? "'" : " | '") + line.words + "'";
    std::string names = subcommands(*line.app);
    for (const CLI::Option* option : named_options(*line.app))
      names += (names.empty() ? "--" : " --") + option->get_lnames().front();
    choices += "    '" + line.words + "') choices='" + names + "' ;;\n";
  }
  return "# Completion of latecomer for bash, written by `latecomer completion bash`.\n"
         "_latecomer() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} line= word choices=\n"
         "  COMPREPLY=()\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    [ \"$word\" = -- ] && return\n"
         "    case \"${line:+$line }$word\" in\n"
         "    " +
         lines +
         ") line=\"${line:+$line }$word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case $previous in\n" +
         values + "    *) case $line in\n" + choices +
         "    esac\n"
         "    [[ $current == -* || $line == '' || $line == plan ]] || return ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _latecomer latecomer\n";
}

/// Escapes `text` for a quoted _arguments specification of zsh: replaces quotes, brackets and colons.
std::string described(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  const auto values = known_values();
  std::string functions, cases;
  const auto menu = [](const CLI::App& of) {
    std::string out;
    for (const CLI::App* sub : of.get_subcommands(nullptr))
      out += " '" + described(sub->get_name()) + ":" + described(sub->get_description()) + "'";
    return out;
  };
  for (const CompletionLine& line : lines_of(app, "")) {
    cases += "    '" + line.words + "') ";
    if (!line.app->get_subcommands(nullptr).empty()) {
      cases += "local -a below=(" + menu(*line.app) + "); _describe command below ;;\n";
      continue;
    }
    cases += "_arguments";
    for (const CLI::Option* option : named_options(*line.app)) {
      const std::string name = option->get_lnames().front();
      cases += " '--" + name + "[" + described(option->get_description()) + "]";
      if (option->get_items_expected_max() > 0) {
        const auto known = values.find(name);
        cases += ":" + name + ":" + (known == values.end() ? "_files" : "(" + known->second + ")");
      }
      cases += "'";
    }
    cases += line.words == "run" || line.words == "calibrate" ? " '*::program:_normal' ;;\n" : " '*:file:_files' ;;\n";
  }
  std::string lines;
  for (const CompletionLine& line : lines_of(app, "")) lines += (lines.empty() ? "'" : " | '") + line.words + "'";
  return "#compdef latecomer\n# Completion of latecomer for zsh, written by `latecomer completion zsh`.\n"
         "_latecomer() {\n"
         "  local line= word\n"
         "  local -i used=0 at=0\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    at+=1\n"
         "    case \"${line:+$line }$word\" in\n"
         "    " +
         lines +
         ") line=\"${line:+$line }$word\" used=at ;;\n"
         "    esac\n"
         "  done\n"
         "  if [[ -n $line ]]; then\n"
         "    words=(\"${(@)words[used+1,-1]}\")\n"
         "    (( CURRENT -= used ))\n"
         "  fi\n"
         "  case $line in\n"
         "    '') local -a below=(" +
         menu(app) + "); _describe command below ;;\n" + cases +
         "  esac\n"
         "}\n"
         "_latecomer \"$@\"\n";
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("completion", "Print a completion script for bash or zsh");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "Shell: bash or zsh.")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(
      "Example: complete commands and options in this shell\n  $ source <(latecomer completion bash)\n\nAn installed "
      "latecomer brings both scripts to the folders that the shells search.");
  command->callback([shell, &app, &action] {
    action = [shell, &app] {
      std::fputs((*shell == "bash" ? bash(app) : zsh(app)).c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace latecomer::profiles::cli
