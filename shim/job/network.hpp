// SPDX-License-Identifier: BSD-3-Clause
// Measures the network with the ranks of the job.
#pragma once

namespace latecomer::shim {

/// For "network": "measure": measures on rank 0 and gives the figures to every rank.
void measure_network();

/// In mode observe, if no figures are known: measures when the profile is on disk, and adds the figures to it. Takes at
/// most a hundredth of the time of the run; nothing if that is too short. Collective over the ranks of the job, which
/// are all there (Gathered::whole).
void measure_network_for_profile() noexcept;

}  // namespace latecomer::shim
