// SPDX-License-Identifier: BSD-3-Clause
// The channel of the roll call that `latecomer run` offers to the ranks of its job, if they cannot find each other by
// the process manager. This file owns its text in the environment and the lines of both sides; it opens no socket.
//
//   run:   "latecomer NAME"                 to a process that connects. Another server at the port does not know NAME.
//   rank:  "SECRET JOB RANK SIZE BUILD"     is here. Until "ready", the rank may leave: it ends its half.
//   run:   "here"                           when all ranks of JOB are here
//   rank:  "ready"                          from now on it waits for the verdict
//   run:   "yes"                            when all ranks are ready; or, instead of "here" and "yes",
//          "no 0" or "no 1 REASON"          one rank gets 1 and says the reason
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latecomer::profiles {

/// What a rank needs to know of the channel. The variable holds PORT/NAME/SECRET/ADDRESS/ADDRESS...
struct RollCallOffer {
  static constexpr const char* kVariable = "LATECOMER_ROLL_CALL";

  int port = 0;
  std::string name, secret;
  std::vector<std::string> addresses;  ///< IPv4, in digits

  std::string text() const;
  std::string greeting() const { return "latecomer " + name; }
};
/// Without a value, the text is no offer.
std::optional<RollCallOffer> parse_roll_call_offer(std::string_view text);

/// Behind the build of a rank that has used a session before MPI_Init. It comes only to decline.
inline constexpr std::string_view kSessionMark = ".session";
/// Why such a rank declines. Nothing of rank 0, which has said it in its session.
inline std::string describe_session(int rank) {
  return rank == 0 ? "" : "rank " + std::to_string(rank) + " has used an MPI session before MPI_Init";
}

/// Takes the bytes of a connection apart, line by line.
class RollCallLines {
 public:
  static constexpr std::size_t kLongest = 512;

  /// Reads what has come, without waiting. Returns false at the end, after an error and if a line is too long.
  bool read_bytes(int fd);
  /// The next line without its end, if it is complete.
  std::optional<std::string> take_line();

 private:
  std::string text_;
};

/// Sends a line without waiting: it fits the empty buffer of a connection. Returns false if the connection is lost.
bool send_roll_call_line(int fd, const std::string& line);

}  // namespace latecomer::profiles
