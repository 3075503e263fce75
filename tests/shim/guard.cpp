// SPDX-License-Identifier: BSD-3-Clause
// Whose code calls MPI (shim/guard.hpp), after jumps, exceptions, and on stacks that a program made itself.
#include "shim/guard.hpp"

#include <ucontext.h>

#include <catch2/catch.hpp>
#include <csetjmp>
#include <stdexcept>
#include <vector>

namespace {

using latecomer::shim::Guard;
using latecomer::shim::Layer;

[[gnu::noinline]] bool asked_deeper(int frames) {
  char volatile room[200] = {};
  const bool answer = frames == 0 ? Guard::program_calls() : asked_deeper(frames - 1);
  (void)room[0];
  return answer;
}

std::jmp_buf back;
[[gnu::noinline]] void jump_under(Layer inner) {
  const Guard guard(Layer::ours);
  const Guard beneath(inner);
  std::longjmp(back, 1);
}

}  // namespace

TEST_CASE("guard: calls beneath latecomer or a tool are not the program's", "[guard]") {
  CHECK(Guard::program_calls());
  for (const Layer layer : {Layer::ours, Layer::tool}) {
    const Guard guard(layer);
    CHECK_FALSE(asked_deeper(0));
    CHECK_FALSE(asked_deeper(50));
    {
      const Guard callback(Layer::program);
      CHECK(asked_deeper(5));
    }
    CHECK_FALSE(asked_deeper(5));
  }
  CHECK(Guard::program_calls());
}

TEST_CASE("guard: an exception and a jump out of the program's code leave nothing behind", "[guard]") {
  try {
    const Guard guard(Layer::ours);
    const Guard beneath(Layer::program);
    throw std::runtime_error("from an operator");
  } catch (const std::runtime_error&) {
  }
  CHECK(asked_deeper(50));
  if (setjmp(back) == 0) jump_under(Layer::program);
  CHECK(asked_deeper(0));
  CHECK(asked_deeper(50));
}

TEST_CASE("guard: a call from above a guard, or from another stack, is the program's", "[guard]") {
  if (setjmp(back) == 0) jump_under(Layer::tool);  // latecomer lets no jump pass here
  CHECK(Guard::program_calls());

  static ucontext_t main_context, other;
  static bool answer;
  std::vector<char> stack(64 << 10);
  getcontext(&other);
  other.uc_stack.ss_sp = stack.data();
  other.uc_stack.ss_size = stack.size();
  other.uc_link = &main_context;
  makecontext(
      &other, [] { answer = Guard::program_calls(); }, 0);
  if (setjmp(back) == 0) jump_under(Layer::ours);
  swapcontext(&main_context, &other);
  CHECK(answer);
}
