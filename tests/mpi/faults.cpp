// SPDX-License-Identifier: BSD-3-Clause
// Calls in which one rank fails: at every call of MPI that a schedule makes, and at every allocation (inject_faults).
// No rank may hang, every rank that returns MPI_SUCCESS must have the right data, and later calls must be right.
// `arguments`: calls with arguments that MPI refuses.
// Usage: faults mpi [background] | memory | arguments [COLLECTIVE...]
#include <algorithm>
#include <cstring>

#include "tests/mpi/random_calls.hpp"

extern "C" void inject_arm(int memory, int at);
extern "C" int inject_disarm();

namespace {

const MPI_Comm kWorld = MPI_COMM_WORLD;
int ranks = 1;
bool background = false;  // a rank may leave a call before the engine sends its last messages, and fails
constexpr const char* kNames[] = {"allreduce", "reduce", "bcast", "scatter", "gather", "scatterv", "gatherv"};
constexpr int kOps = 7;

/// Items of two ints with a gap between them, so that data are packed and copied by MPI.
MPI_Datatype gapped;
MPI_Op sum_gapped;
void add(void* in, void* inout, int* n, MPI_Datatype*) {
  for (int i = 0; i < *n; ++i)
    for (const int at : {3 * i, 3 * i + 2}) static_cast<int*>(inout)[at] += static_cast<int*>(in)[at];
}

/// One call of `count` items per rank. Items of the gapped datatype take three ints each.
struct Shape {
  int op, count, root;
  bool gaps;
  int ints() const { return gaps ? 3 * count : count; }
  bool used(int i) const { return !gaps || i % 3 != 1; }
  MPI_Datatype type() const { return gaps ? gapped : MPI_INT; }
};

int sizes_of(const Shape& s, std::vector<int>& counts, std::vector<int>& places) {
  int at = 0;
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(r % 3 == 1 ? 0 : s.count + r);
    places.push_back(at);
    at += s.count + r;
  }
  return at;
}

/// The fault of one call on this rank.
struct Fault {
  bool memory = false;
  int at = -1;  ///< -1: none
  bool fired = false;
};

/// Runs the call and checks the result, if the rank has returned MPI_SUCCESS. Returns the call's MPI error code.
int run(const Shape& s, const std::string& where, Fault& fault) {
  const bool root = rank_world == s.root;
  const int per = s.gaps ? 3 : 1;
  std::vector<int> counts, places;
  const int all = s.op >= 5 ? sizes_of(s, counts, places) * per : s.ints() * ranks;
  const int mine = s.op >= 5 ? counts[static_cast<std::size_t>(rank_world)] : s.count;
  std::vector<int> in(static_cast<std::size_t>(std::max(all, s.ints())) + 1), out(in.size(), kUntouched);
  const auto fill = [&](int rank) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(s.count, rank, static_cast<int>(i)) % 1000;
  };
  fill(s.op == 2 || s.op == 3 || s.op == 5 ? s.root : rank_world);
  if (s.op == 2 && root) out = in;
  int rc = MPI_SUCCESS;
  if (fault.at >= 0) inject_arm(fault.memory, fault.at);
  switch (s.op) {
    case 0:
      rc = MPI_Allreduce(in.data(), out.data(), s.count, s.type(), s.gaps ? sum_gapped : MPI_SUM, kWorld);
      break;
    case 1:
      rc = MPI_Reduce(in.data(), out.data(), s.count, s.type(), s.gaps ? sum_gapped : MPI_SUM, s.root, kWorld);
      break;
    case 2:
      rc = MPI_Bcast(out.data(), s.count, s.type(), s.root, kWorld);
      break;
    case 3:
      rc = MPI_Scatter(in.data(), s.count, s.type(), out.data(), s.count, s.type(), s.root, kWorld);
      break;
    case 4:
      rc = MPI_Gather(in.data(), s.count, s.type(), out.data(), s.count, s.type(), s.root, kWorld);
      break;
    case 5:
      rc = MPI_Scatterv(in.data(), counts.data(), places.data(), s.type(), out.data(), mine, s.type(), s.root, kWorld);
      break;
    default:
      rc = MPI_Gatherv(in.data(), mine, s.type(), out.data(), counts.data(), places.data(), s.type(), s.root, kWorld);
  }
  if (fault.at >= 0) fault.fired = inject_disarm();
  if (rc != MPI_SUCCESS) return rc;
  const auto wrong = [&](int i, int want) {
    if (s.used(i) && out[static_cast<std::size_t>(i)] != want) {
      fail(where + ": success with wrong data");
      return true;
    }
    return false;
  };
  const auto item = [&](int rank, int i) { return value(s.count, rank, i) % 1000; };
  if (s.op <= 1 && (s.op == 0 || root)) {
    for (int i = 0; i < s.ints(); ++i) {
      int want = 0;
      for (int r = 0; r < ranks; ++r) want += item(r, i);
      if (wrong(i, want)) break;
    }
  } else if (s.op == 2 || s.op == 3 || s.op == 5) {
    const int first =
        s.op == 2 ? 0 : per * (s.op == 5 ? places[static_cast<std::size_t>(rank_world)] : s.count * rank_world);
    for (int i = 0; i < mine * per; ++i)
      if (wrong(i, item(s.root, first + i))) break;
  } else if (root) {
    for (int r = 0; r < ranks; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const int first = per * (s.op == 6 ? places[at] : s.count * r), n = per * (s.op == 6 ? counts[at] : s.count);
      bool bad = false;
      for (int i = 0; i < n && !bad; ++i) bad = s.used(i) && out[static_cast<std::size_t>(first + i)] != item(r, i);
      if (bad) fail(where + ": success with wrong data of rank " + std::to_string(r));
    }
  }
  return MPI_SUCCESS;
}

void sweep(const Shape& shape, int victim, bool memory) {
  constexpr int kMostPositions = 4000;
  for (int at = 0; at < kMostPositions; ++at) {
    const std::string where = std::string(kNames[shape.op]) + " of " + std::to_string(shape.count) +
                              (shape.gaps ? " gapped" : "") + ", root " + std::to_string(shape.root) + ", rank " +
                              std::to_string(victim) + " fails at " + std::to_string(at);
    Shape s = shape;
    s.count += memory ? at % 50 : 0;  // another size, so that the schedule is built anew
    NATIVE(PMPI_Barrier)(kWorld);     // the background engine may still run parts of the call before
    Fault fault{memory, rank_world == victim ? at : -1}, none;
    const int rc = run(s, where, fault);
    int fired = fault.fired, bad = rc != MPI_SUCCESS;
    if (fired && !memory && !background && rc == MPI_SUCCESS) fail(where + ": the failing rank returns success");
    NATIVE(PMPI_Bcast)(&fired, 1, MPI_INT, victim, kWorld);
    int failed = 0;
    NATIVE(PMPI_Allreduce)(&bad, &failed, 1, MPI_INT, MPI_SUM, kWorld);
    if (!fired && failed) fail(where + ": an error without a fault");
    if (run(s, where + ", then again", none) != MPI_SUCCESS) fail(where + ": an error in the next call");
    if (!fired) return;
  }
  fail("a fault at every position of " + std::string(kNames[shape.op]));
}

void faults(bool memory) {
  // The last size is above the eager limit of shared memory.
  for (int op = 0; op < kOps; ++op)
    for (const int count : {1, 12 * ranks + 1, 30000})
      for (const bool gaps : {false, true}) {
        if (gaps && count == 30000) continue;
        const int root = op == 0 ? 0 : (op + count) % ranks;
        for (int victim = 0; victim < ranks; victim += count == 30000 ? 2 : 1)
          sweep({op, count, root, gaps}, victim, memory);
      }
}

/// All ranks pass the same mistake: MPI's own error.
template <typename Ours, typename Native>
void same_error(const char* what, Ours ours, Native native) {
  const int rc = ours(), want = native();
  int own = MPI_SUCCESS, wanted = MPI_SUCCESS;
  MPI_Error_class(rc, &own);
  MPI_Error_class(want, &wanted);
  if (own != wanted)
    fail(std::string(what) + ": error class " + std::to_string(own) + ", natively " + std::to_string(wanted));
}

/// Rank `victim` passes a mistake of its own, which natively hangs the others. `call(bad)`. `served`: an algorithm runs
/// it.
template <typename Call>
void own_mistake(const std::string& what, int victim, int wanted, bool served, Call call) {
  if (!served) return;
  const int rc = call(rank_world == victim);
  int own = MPI_SUCCESS;
  MPI_Error_class(rc, &own);
  if (rank_world == victim && own != wanted) fail(what + ": error class " + std::to_string(own));
  if (call(false) != MPI_SUCCESS) fail(what + ": an error in the next call");
}

// MPICH refuses one buffer for input and output. Open MPI runs an allreduce of one item, a gather and a scatter so.
#ifdef OPEN_MPI
constexpr int kRefused = MPI_ERR_ARG, kOneBuffer = MPI_SUCCESS;
#else
constexpr int kRefused = MPI_ERR_BUFFER, kOneBuffer = MPI_ERR_BUFFER;
#endif

void one_buffer(const std::string& at, int victim, int root, bool allreduce, bool gather, bool scatter) {
  constexpr int kItems = 64;
  const bool is_root = rank_world == root;
  own_mistake("allreduce of one item in one buffer" + at, victim, kOneBuffer, allreduce, [&](bool bad) {
    int one = 1, sum = 1;
    const int rc = MPI_Allreduce(bad ? &sum : &one, &sum, 1, MPI_INT, MPI_SUM, kWorld);
    if (rc == MPI_SUCCESS && sum != ranks) fail("an allreduce in one buffer" + at + " is wrong");
    return rc;
  });
  std::vector<int> all(static_cast<std::size_t>(kItems * ranks)), mine(kItems);
  int* const block = all.data() + kItems * rank_world;
  own_mistake("gather in one buffer" + at, victim, victim == root ? kOneBuffer : MPI_SUCCESS, gather, [&](bool bad) {
    std::fill(all.begin(), all.end(), -1);
    for (int i = 0; i < kItems; ++i) mine[static_cast<std::size_t>(i)] = block[i] = value(0, rank_world, i);
    const int rc =
        MPI_Gather(bad && is_root ? block : mine.data(), kItems, MPI_INT, all.data(), kItems, MPI_INT, root, kWorld);
    for (int i = 0; rc == MPI_SUCCESS && is_root && i < kItems * ranks; ++i)
      if (all[static_cast<std::size_t>(i)] != value(0, i / kItems, i % kItems)) {
        fail("a gather in one buffer" + at + " is wrong");
        return rc;
      }
    return rc;
  });
  own_mistake("scatter in one buffer" + at, victim, victim == root ? kOneBuffer : MPI_SUCCESS, scatter, [&](bool bad) {
    for (int i = 0; i < kItems * ranks; ++i) all[static_cast<std::size_t>(i)] = value(0, i / kItems, i % kItems);
    int* const into = bad && is_root ? block : mine.data();
    const int rc = MPI_Scatter(all.data(), kItems, MPI_INT, into, kItems, MPI_INT, root, kWorld);
    for (int i = 0; rc == MPI_SUCCESS && i < kItems; ++i)
      if (into[i] != value(0, rank_world, i)) {
        fail("a scatter in one buffer" + at + " is wrong");
        return rc;
      }
    return rc;
  });
}

void arguments(const std::vector<std::string>& served) {
  const auto serves = [&](const char* op) { return std::find(served.begin(), served.end(), op) != served.end(); };
  std::vector<int> a(64, 1), b(64, 2), all(static_cast<std::size_t>(64 * ranks), 3);
  for (int i = 0; i < 40; ++i)
    for (const int root : {-1, ranks, ranks + 3}) {
      MPI_Request request = MPI_REQUEST_NULL;
      same_error(
          "Ibcast", [&] { return MPI_Ibcast(a.data(), 64, MPI_INT, root, kWorld, &request); },
          [&] { return NATIVE(PMPI_Ibcast)(a.data(), 64, MPI_INT, root, kWorld, &request); });
      same_error(
          "Bcast", [&] { return MPI_Bcast(a.data(), 64, MPI_INT, root, kWorld); },
          [&] { return NATIVE(PMPI_Bcast)(a.data(), 64, MPI_INT, root, kWorld); });
      same_error(
          "Reduce", [&] { return MPI_Reduce(a.data(), b.data(), 64, MPI_INT, MPI_SUM, root, kWorld); },
          [&] { return NATIVE(PMPI_Reduce)(a.data(), b.data(), 64, MPI_INT, MPI_SUM, root, kWorld); });
      same_error(
          "Gather", [&] { return MPI_Gather(a.data(), 64, MPI_INT, all.data(), 64, MPI_INT, root, kWorld); },
          [&] { return NATIVE(PMPI_Gather)(a.data(), 64, MPI_INT, all.data(), 64, MPI_INT, root, kWorld); });
      same_error(
          "Scatter", [&] { return MPI_Scatter(all.data(), 64, MPI_INT, a.data(), 64, MPI_INT, root, kWorld); },
          [&] { return NATIVE(PMPI_Scatter)(all.data(), 64, MPI_INT, a.data(), 64, MPI_INT, root, kWorld); });
    }
  for (const int v : b)
    if (v != 2) fail("a reduce without a root has written to a buffer");
  same_error(
      "operator", [&] { return MPI_Allreduce(a.data(), b.data(), 4, MPI_FLOAT, MPI_BAND, kWorld); },
      [&] { return NATIVE(PMPI_Allreduce)(a.data(), b.data(), 4, MPI_FLOAT, MPI_BAND, kWorld); });
  MPI_Datatype raw;
  MPI_Type_vector(4, 1, 2, MPI_INT, &raw);  // not committed
  for (int i = 0; i < 3; ++i)
    for (int victim = 0; victim < ranks; ++victim)
      for (const int root : {0, ranks - 1}) {
        const std::string at = ", rank " + std::to_string(victim) + ", root " + std::to_string(root);
        const bool is_root = victim == root;
        own_mistake("allreduce in one buffer" + at, victim, MPI_ERR_BUFFER, serves("allreduce"), [&](bool bad) {
          return MPI_Allreduce(bad ? b.data() : a.data(), b.data(), 60, MPI_INT, MPI_SUM, kWorld);
        });
        own_mistake("allreduce into a null pointer" + at, victim, MPI_ERR_BUFFER, serves("allreduce"), [&](bool bad) {
          return MPI_Allreduce(a.data(), bad ? nullptr : b.data(), 60, MPI_INT, MPI_SUM, kWorld);
        });
        own_mistake("allreduce into MPI_IN_PLACE" + at, victim, MPI_ERR_BUFFER, serves("allreduce"), [&](bool bad) {
          return MPI_Allreduce(a.data(), bad ? MPI_IN_PLACE : b.data(), 60, MPI_INT, MPI_SUM, kWorld);
        });
        one_buffer(at, victim, root, serves("allreduce"), serves("gather"), serves("scatter"));
        own_mistake("reduce in place" + at, victim, is_root ? MPI_SUCCESS : kRefused, serves("reduce"), [&](bool bad) {
          return MPI_Reduce(bad ? MPI_IN_PLACE : a.data(), b.data(), 60, MPI_INT, MPI_SUM, root, kWorld);
        });
        own_mistake("reduce from a null pointer" + at, victim, MPI_ERR_BUFFER, serves("reduce"), [&](bool bad) {
          return MPI_Reduce(bad ? nullptr : a.data(), b.data(), 60, MPI_INT, MPI_SUM, root, kWorld);
        });
        own_mistake("bcast in place" + at, victim, MPI_ERR_BUFFER, serves("bcast"),
                    [&](bool bad) { return MPI_Bcast(bad ? MPI_IN_PLACE : a.data(), 64, MPI_INT, root, kWorld); });
        own_mistake("bcast of an uncommitted datatype" + at, victim, MPI_ERR_TYPE, serves("bcast"), [&](bool bad) {
          return bad ? MPI_Bcast(a.data(), 4, raw, root, kWorld) : MPI_Bcast(a.data(), 16, MPI_INT, root, kWorld);
        });
        own_mistake("gather from a null pointer" + at, victim, MPI_ERR_BUFFER, serves("gather"), [&](bool bad) {
          return MPI_Gather(bad ? nullptr : a.data(), 64, MPI_INT, all.data(), 64, MPI_INT, root, kWorld);
        });
        own_mistake("scatter into MPI_IN_PLACE" + at, victim, is_root ? MPI_SUCCESS : kRefused, serves("scatter"),
                    [&](bool bad) {
                      return MPI_Scatter(all.data(), 64, MPI_INT, bad ? MPI_IN_PLACE : a.data(), 64, MPI_INT, root,
                                         kWorld);
                    });
      }
  MPI_Type_free(&raw);
}

}  // namespace

int main(int argc, char** argv) {
  int unused;
  const std::string what = argc > 1 ? argv[1] : "mpi";
  ranks = begin(argc, argv, unused);
  MPI_Comm_set_errhandler(kWorld, MPI_ERRORS_RETURN);
  MPI_Datatype pair;
  const int places[] = {0, 2};
  MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 3 * static_cast<MPI_Aint>(sizeof(int)), &gapped);
  MPI_Type_commit(&gapped);
  MPI_Op_create(add, 1, &sum_gapped);
  // A call before an identity is agreed on is native.
  if (what == "arguments") arguments({argv + 2, argv + argc});
  else {
    background = argc > 2;
    faults(what == "memory");
  }
  MPI_Op_free(&sum_gapped);
  MPI_Type_free(&gapped);
  MPI_Type_free(&pair);
  return finish();
}
