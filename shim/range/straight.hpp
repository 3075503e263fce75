// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives with short messages, as plain sends and receives. They send and receive the messages of the
// schedules that the loop runs (core/select/line.hpp), so a rank may use either without the others' knowledge.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/select/line.hpp"
#include "shim/range/operation.hpp"

namespace latecomer::range {

class Straight {
 public:
  /// Runs the collective if it can: messages are short, datatypes have no gaps, and all blocks have one size. Returns
  /// false otherwise; then nothing has happened. The arguments are right (collectives.cpp checks them), and no
  /// operation of this process is outstanding. Allocates only for the first calls of a kind. `rc`: an MPI error code.
  bool run_collective(const latecomer_range& range, const Arguments& a, int* rc);

 private:
  /// What a line depends on.
  struct Key {
    core::Collective op;
    bool in_place, commutative, empty;
    int ranks;
    Rank me, root;
    core::Bytes element_bytes;
    bool operator==(const Key&) const = default;
  };
  struct Step : core::Line::Step {
    bool waits = false;  ///< a blocking send: no receive follows
    bool again = false;  ///< a send of what the step before sent or received
    int chunk = 0;       ///< the number of a send's chunk
  };
  struct Prepared {
    Key key;
    std::vector<Step> steps;
    core::Elements scratch = 0, most = 0;  ///< units, count
    int chunks = 0;
  };
  const Prepared& prepare_line(const Key& key);
  int run_line(const Prepared& line, const latecomer_range& range, const Arguments& a, core::Elements count,
               core::Bytes element_bytes);

  // The number of lines. Derived: a line of 16 ranks takes at most 2 KiB, so 256 lines take 512 KiB. Two lines that
  // need one place replace each other, which takes 2 us.
  std::array<std::unique_ptr<Prepared>, 256> lines_;
  std::vector<char> chunks_, scratch_;
  std::vector<MPI_Request> requests_;
};

}  // namespace latecomer::range
