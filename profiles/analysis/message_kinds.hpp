// SPDX-License-Identifier: BSD-3-Clause
// What the waits for a sample of messages were for (profiles/record/message_ends.hpp).
#pragma once

#include "profiles/base/share.hpp"

namespace latecomer::profiles::analysis {

/// Times of the messages that were matched.
struct KindFigures {
  double messages = 0, matched = 0;
  double late_sender = 0, late_receiver = 0, transfer = 0, not_known = 0;

  double time() const { return late_sender + late_receiver + transfer + not_known; }
  Share share(double kind) const { return time() > 0 ? Share::of(kind, time()) : Share(); }
  Share share_matched() const { return messages > 0 ? Share::of(matched, messages) : Share(); }
};

}  // namespace latecomer::profiles::analysis
