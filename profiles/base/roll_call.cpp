// SPDX-License-Identifier: BSD-3-Clause
// The text of the offer, and lines on a connection.
#include "profiles/base/roll_call.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "core/base/text.hpp"

namespace latecomer::profiles {

std::string RollCallOffer::text() const {
  std::string out = std::to_string(port) + "/" + name + "/" + secret;
  for (const std::string& address : addresses) out += "/" + address;
  return out;
}

std::optional<RollCallOffer> parse_roll_call_offer(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text.substr(0, 4096))
    if (c == '/') parts.emplace_back();
    else parts.back() += c;
  const auto port = core::parse_integer(parts[0]);
  if (parts.size() < 4 || !port || *port < 1 || *port > 65535 || parts[1].empty() || parts[2].empty()) return {};
  return RollCallOffer{static_cast<int>(*port), parts[1], parts[2], {parts.begin() + 3, parts.end()}};
}

bool RollCallLines::read_bytes(int fd) {
  char bytes[kLongest];
  for (;;) {
    const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    text_.append(bytes, static_cast<std::size_t>(n));
    if (text_.size() > kLongest) return false;
  }
}

std::optional<std::string> RollCallLines::take_line() {
  const std::size_t end = text_.find('\n');
  if (end == std::string::npos) return {};
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

bool send_roll_call_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace latecomer::profiles
