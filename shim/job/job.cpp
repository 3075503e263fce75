// SPDX-License-Identifier: BSD-3-Clause
// The only job of this process.
#include "shim/job/job.hpp"

namespace latecomer::shim {

std::atomic<bool> active{false};

Job* const job_instance = new Job;

}  // namespace latecomer::shim
