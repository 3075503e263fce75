// SPDX-License-Identifier: BSD-3-Clause
// Hands LD_PRELOAD and the LATECOMER_* variables to the ranks: through options of a launcher that is known, else
// through the environment.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "profiles/launch/launch.hpp"

namespace latecomer::profiles {
namespace {

using Words = std::vector<std::string>;

const std::string kPreload = "LD_PRELOAD";
constexpr const char* kSlurmList = "SLURM_EXPORT_ENV";
// Open MPI takes either such a list or -x.
constexpr const char *kOpenMpiList = "mca_base_env_list", *kOpenMpiListVariable = "OMPI_MCA_mca_base_env_list";

/// The environment of the ranks.
struct Variables {
  std::string library;  ///< of latecomer
  std::string preload;  ///< the same, and the libraries that this process preloads
  Words names;          ///< of the LATECOMER_* variables in this process's environment
  bool listed = false;  ///< the user has a list of Open MPI
};

/// Puts the library before those of the user in "LD_PRELOAD=VALUE". "LD_PRELOAD" alone is this process's.
void put_before(std::string& text, const Variables& ours) {
  if (text == kPreload) text += "=" + ours.preload;
  else if (text.starts_with(kPreload + "=")) text.insert(kPreload.size() + 1, ours.library + ":");
}

/// "LD_PRELOAD=VALUE,NAME,NAME".
std::string list_of(const Variables& ours, char separator) {
  std::string out = kPreload + "=" + ours.preload;
  for (const std::string& name : ours.names) out += separator + name;
  return out;
}

/// A list for srun, with ours first: the word NONE ends it.
std::string slurm_list(const std::string& user, const Variables& ours) {
  std::string out = list_of(ours, ','), one;
  for (std::istringstream in(user); std::getline(in, one, ',');) {
    put_before(one, ours);
    out += "," + one;
  }
  return out;
}

std::string open_mpi_list(const std::string& user, const Variables& ours) { return user + ";" + list_of(ours, ';'); }

/// The same options, with the library before those that they preload. `add`: and with our variables.
Words with_ours(Words options, const Launcher& launcher, const Variables& ours, bool add) {
  const char* list = std::getenv(kSlurmList);
  std::string exported = list ? list : "ALL";
  for (std::size_t at = 0, end = 0; at < options.size(); at = end) {
    end = behind_option(options, at, launcher);
    const auto word = options.begin() + static_cast<std::ptrdiff_t>(at);
    const bool hands = has_word(launcher.variable, launcher.option_in(*word));
    if (hands && launcher.hands == Launcher::Hands::list) {
      exported = end == at + 2 ? *(word + 1) : word->substr(word->find('=') + 1);
      options.erase(word, word + static_cast<std::ptrdiff_t>(end - at));
      end = at;
    } else if (hands && end == at + 3 && *(word + 1) == kPreload) {
      (word + 2)->insert(0, ours.library + ":");
    } else if (hands && end == at + 2) {
      put_before(*(word + 1), ours);
    } else if (end == at + 3 && *(word + 1) == kOpenMpiList) {
      *(word + 2) = open_mpi_list(*(word + 2), ours);
    }
  }
  Words own;
  const std::string option(launcher.variable.substr(0, launcher.variable.find(' ')));
  if (launcher.hands == Launcher::Hands::list) {
    own = {option + "=" + slurm_list(exported, ours)};
  } else if (launcher.hands == Launcher::Hands::pair) {
    own = {option, kPreload, ours.preload};
    for (const std::string& name : ours.names) own.insert(own.end(), {option, name, std::getenv(name.c_str())});
  } else if (!ours.listed) {
    own = {option, kPreload + "=" + ours.preload};
    for (const std::string& name : ours.names) own.insert(own.end(), {option, name});
  }
  if (add) options.insert(options.begin(), own.begin(), own.end());
  return options;
}

}  // namespace

void preload(Launch& launch, const std::string& library) {
  const char* before = std::getenv(kPreload.c_str());
  Variables ours{library, before && *before ? library + ":" + before : library, {}};
  for (char** entry = environ; *entry; ++entry)
    if (const std::string_view text = *entry; text.starts_with("LATECOMER_"))
      ours.names.emplace_back(text.substr(0, text.find('=')));
  if (const char* list = std::getenv(kOpenMpiListVariable)) {
    ours.listed = true;
    setenv(kOpenMpiListVariable, open_mpi_list(list, ours).c_str(), 1);
  }
  if (!launch.launcher) {
    setenv(kPreload.c_str(), ours.preload.c_str(), 1);
    if (const char* list = std::getenv(kSlurmList)) setenv(kSlurmList, slurm_list(list, ours).c_str(), 1);
    return;
  }
  // The launcher and its proxies are not MPI programs: do not preload them.
  unsetenv(kPreload.c_str());
  Words& words = launch.words;
  ours.listed = ours.listed || std::ranges::count(words, kOpenMpiList) > 0;
  std::size_t at = launch.options;
  for (bool first = true; at <= words.size(); first = false) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at),
               end = words.begin() + static_cast<std::ptrdiff_t>(behind_options(words, at, *launch.launcher));
    const Words options = with_ours({begin, end}, *launch.launcher, ours, first || launch.launcher->each);
    words.insert(words.erase(begin, end), options.begin(), options.end());
    const auto next = std::find(words.begin() + static_cast<std::ptrdiff_t>(at + options.size()), words.end(), ":");
    if (next == words.end()) break;
    at = static_cast<std::size_t>(next - words.begin()) + 1;
  }
}

}  // namespace latecomer::profiles
