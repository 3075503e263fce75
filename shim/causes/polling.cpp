// SPDX-License-Identifier: BSD-3-Clause
// Adds the time of stretches of polls to that of calls that wait.
#include "shim/causes/polling.hpp"

#include <utility>

#include "shim/patience.hpp"

namespace latecomer::shim {

void end_open_stretch() {
  if (Guard::program_calls()) polling().end_stretch();
}

void Polling::begin_stretch(const CallPlace& place) {
  profiles::TimedSite& site = site_at(place);
  if (mpi_time.watched) code_sampler.enter_call([&] { return profiles::call_id(site.key); });
  mpi_time.polls = true;
  weight_ = mpi_time.messages.weigh_next();
  if (weight_ == 0) return;
  site_ = &site;
  waited_ = 0;
  if (!stretch_.needs_times()) return stretch_.begin_stretch(now(), nullptr);
  const TimesReading reading;
  stretch_.begin_stretch(reading.end, reading.times());
  reading.end_span();
}

[[gnu::noinline, gnu::cold]] void Polling::end_piece() {
  const std::uint32_t polls = stretch_.polls();
  const TimesReading reading;
  add(stretch_.end_piece(reading.times(), reading.begin, reading.end), reading.begin);
  reading.end_span();
  if (!stretch_.waits()) charge_polls(polls);
  if (!mpi_time.watched) return;
  shown_ = stretch_.waits();
  end_code(shown_);
  if (shown_) live_enter_message(site_->key);
  live->message.store(shown_ ? stretch_.began() : 0, std::memory_order_relaxed);
}

/// Samples of a wait are no code of the program.
void Polling::end_code(bool waited) {
  if (waited) {
    code_sampler.leave_call();
    code_sampler.forget_call();
  } else {
    code_sampler.enter_call([&] { return profiles::call_id(site_->key); });
  }
}

void Polling::add(const PollWait& wait, Nanoseconds at) {
  add_message_time(weight_, wait.time, at);
  waited_ += wait.time;
  napped_ns += weight_ * wait.slept;
}

Wait Polling::end_stretch() {
  mpi_time.polls = false;
  if (weight_ == 0) {
    if (mpi_time.watched) code_sampler.leave_call();  // a stretch that rests is short, and its kind is not known
    return {};
  }
  if (std::exchange(shown_, false)) live->message.store(0, std::memory_order_relaxed);
  const PollWait last = stretch_.end_stretch();
  if (mpi_time.watched) end_code(last.time > 0);
  add(last, stretch_.last_end());
  if (waited_ > 0) {
    count_calls(*site_, weight_);
    site_->sums.add(weight_, waited_);
  }
  if (mpi_time.messages.count_call(weight_, waited_)) [[unlikely]]
    draw_message_call(weight_, waited_, stretch_.last_end());
  return waited_ > kTransfer ? Wait{weight_ * waited_, &site_->sums} : Wait{};
}

}  // namespace latecomer::shim
