// SPDX-License-Identifier: BSD-3-Clause
// Not compiled: what tests/locks.py must find. A lock is held across a collective, two functions away.
void agree(State& state) { PMPI_Allreduce(MPI_IN_PLACE, words.data(), kWords, MPI_UINT64_T, MPI_BOR, state.comm); }

void prepare(State& state) { agree(state); }

void identify(State& state) {
  {
    const JobLock lock;
    prepare(state);
  }
}
