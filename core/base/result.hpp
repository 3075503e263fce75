// SPDX-License-Identifier: BSD-3-Clause
// Result<T>: a value, or a message that names the place of an error and its remedy.
// core and profiles report errors only through Result<T>. They never print or abort.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace latecomer::core {

struct Error {
  std::string message;  ///< names the place, the expected value and the value found
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit by intent
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit by intent
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const std::string& error() const { return std::get<1>(state_).message; }

 private:
  std::variant<T, Error> state_;
};

}  // namespace latecomer::core
