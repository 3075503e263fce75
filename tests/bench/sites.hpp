// SPDX-License-Identifier: BSD-3-Clause
// A thousand places in a program that make the same call, each with its own return address.
#pragma once

#include <array>
#include <utility>

inline constexpr int kSites = 1000;  // chosen, not measured
using Site = int (*)();

/// `Call`: a class without data, whose function operator is always inlined.
template <typename Call, int N>
[[gnu::noinline]] int site() {
  const int rc = Call{}();
  asm volatile("" : : "r"(N));  // prevents a tail call and merging of the functions
  return rc;
}
template <typename Call, int... N>
constexpr std::array<Site, kSites> make_sites(std::integer_sequence<int, N...>) {
  return {site<Call, N>...};
}
template <typename Call>
constexpr std::array<Site, kSites> make_sites() {
  return make_sites<Call>(std::make_integer_sequence<int, kSites>());
}
