// SPDX-License-Identifier: BSD-3-Clause
// Random datatypes of random constructors, nested up to three deep: reversed, overlapping if only sent, with gaps,
// negative strides and absolute addresses. Their extent is below, equal to or above the true extent. Every rank draws
// its own types of the call's signature. Compares every dispatched collective with MPICH's own (PMPI bypasses every
// preload), including all memory around the data. Usage: types ROUNDS [DELAY_US [reductions]]
#include <algorithm>
#include <cstring>

#include "tests/mpi/random_calls.hpp"

namespace {

using Draw = int (*)(int);
int shared_draw(int below) { return draw(below); }

/// A datatype of ints, and the byte offsets of its typemap in order.
struct Type {
  MPI_Datatype type = MPI_INT;
  std::vector<MPI_Aint> map{0};
  MPI_Aint extent = 4;
};

Type take(Type& child, MPI_Datatype made, std::vector<MPI_Aint> map) {
  if (child.type != MPI_INT) MPI_Type_free(&child.type);
  Type out;
  out.type = made;
  out.map = std::move(map);
  MPI_Aint lower;
  MPI_Type_get_extent(made, &lower, &out.extent);
  return out;
}

/// Appends `length` consecutive items of `child` at `place`, in bytes.
void lay(std::vector<MPI_Aint>& map, const Type& child, int length, MPI_Aint place) {
  for (int i = 0; i < length; ++i)
    for (const MPI_Aint at : child.map) map.push_back(place + i * child.extent + at);
}

Type around(Type child, Draw pick) {
  const int n = 1 + pick(3), length = 1 + pick(2), kind = pick(12);
  const bool large = pick(2) && kLargeCounts, dense = pick(3) == 0;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  std::vector<MPI_Aint> map;
  int lengths[3], places[3];
  MPI_Aint far[3];
  MPI_Count large_lengths[3], large_places[3], large_far[3];
  MPI_Datatype types[3];
  MPI_Aint next = 0;
  const bool fixed = kind == 5 || kind == 6;
  for (int i = 0; i < n; ++i) {
    lengths[i] = fixed ? length : pick(3);
    places[i] = dense ? static_cast<int>(next) : pick(7) - 2;
    far[i] = dense ? next * child.extent : 4 * (pick(40) - 12);
    next += lengths[i];
    types[i] = child.type;
    large_lengths[i] = lengths[i];
    large_places[i] = places[i];
    large_far[i] = far[i];
  }
  if (!dense && pick(2)) {  // the same places backwards: distinguishes memory order from typemap order
    for (int i = 0; i < n; ++i) {
      places[i] = (n - 1 - i) * 2;
      far[i] = places[i] * child.extent;
      large_places[i] = places[i];
      large_far[i] = far[i];
      lengths[i] = 2;
      large_lengths[i] = 2;
    }
    if (fixed)
      for (int i = 0; i < n; ++i) {
        places[i] = (n - 1 - i) * length;
        large_places[i] = places[i];
        far[i] = places[i] * child.extent;
        large_far[i] = far[i];
      }
  }
  switch (kind) {
    case 0:
      large ? MPI_Type_contiguous_c(n, child.type, &made) : MPI_Type_contiguous(n, child.type, &made);
      lay(map, child, n, 0);
      break;
    case 1: {
      const int stride = dense ? length : pick(7) - 3;
      large ? MPI_Type_vector_c(n, length, stride, child.type, &made)
            : MPI_Type_vector(n, length, stride, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, length, i * stride * child.extent);
      break;
    }
    case 2: {
      const MPI_Aint stride = dense ? length * child.extent : 4 * (pick(30) - 15);
      large ? MPI_Type_create_hvector_c(n, length, stride, child.type, &made)
            : MPI_Type_create_hvector(n, length, stride, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, length, i * stride);
      break;
    }
    case 3:
      large ? MPI_Type_indexed_c(n, large_lengths, large_places, child.type, &made)
            : MPI_Type_indexed(n, lengths, places, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, lengths[i], places[i] * child.extent);
      break;
    case 4:
      large ? MPI_Type_create_hindexed_c(n, large_lengths, large_far, child.type, &made)
            : MPI_Type_create_hindexed(n, lengths, far, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, lengths[i], far[i]);
      break;
    case 5:
      large ? MPI_Type_create_indexed_block_c(n, length, large_places, child.type, &made)
            : MPI_Type_create_indexed_block(n, length, places, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, length, places[i] * child.extent);
      break;
    case 6:
      large ? MPI_Type_create_hindexed_block_c(n, length, large_far, child.type, &made)
            : MPI_Type_create_hindexed_block(n, length, far, child.type, &made);
      for (int i = 0; i < n; ++i) lay(map, child, length, far[i]);
      break;
    case 7:
    case 8:
      large ? MPI_Type_create_struct_c(n, large_lengths, large_far, types, &made)
            : MPI_Type_create_struct(n, lengths, far, types, &made);
      for (int i = 0; i < n; ++i) lay(map, child, lengths[i], far[i]);
      break;
    case 9: {
      const auto [low, high] = std::minmax_element(child.map.begin(), child.map.end());
      // MPICH 4.0.2 itself writes outside of memory where the extent is below 0, and moves a wrong number of bytes of
      // some types whose extent is below the true extent. So only reductions draw these, and none below 0.
      const bool small = pick == shared_draw && pick(2);
      const MPI_Aint extent = dense   ? static_cast<MPI_Aint>(4 * child.map.size())
                              : small ? 4 * pick(5)
                                      : *high - *low + 4 + 4 * pick(3),
                     lower = dense ? 0 : 4 * (pick(3) - 1);
      large ? MPI_Type_create_resized_c(child.type, lower, extent, &made)
            : MPI_Type_create_resized(child.type, lower, extent, &made);
      map = child.map;
      break;
    }
    case 10: {
      const int whole[] = {2 + pick(2), 2 + pick(2)}, first[] = {dense ? 0 : pick(2), dense ? 0 : pick(2)};
      const int part[] = {dense ? whole[0] : 1 + pick(whole[0] - first[0]),
                          dense ? whole[1] : 1 + pick(whole[1] - first[1])};
      const MPI_Count whole_c[] = {whole[0], whole[1]}, first_c[] = {first[0], first[1]}, part_c[] = {part[0], part[1]};
      const bool fortran = pick(2);
      const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, slow = fortran ? 1 : 0, fast = 1 - slow;
      large ? MPI_Type_create_subarray_c(2, whole_c, part_c, first_c, order, child.type, &made)
            : MPI_Type_create_subarray(2, whole, part, first, order, child.type, &made);
      for (int i = 0; i < part[slow]; ++i)
        lay(map, child, part[fast], ((first[slow] + i) * whole[fast] + first[fast]) * child.extent);
      break;
    }
    default:
      MPI_Type_dup(child.type, &made);
      map = child.map;
  }
  return take(child, made, std::move(map));
}

/// A column of a matrix of n ints by rows; the next column begins with the next int.
Type column(int n, Draw pick) {
  const int rows = 2 + pick(3);
  if (n % rows != 0) return {};
  MPI_Datatype strided, made;
  MPI_Type_vector(rows, 1, n / rows, MPI_INT, &strided);
  MPI_Type_create_resized(strided, 0, 4, &made);
  MPI_Type_free(&strided);
  Type out;
  std::vector<MPI_Aint> map;
  for (int i = 0; i < rows; ++i) map.push_back(MPI_Aint{4} * i * (n / rows));
  return take(out, made, std::move(map));
}

Type random_type(Draw pick) {
  Type out;
  for (int depth = pick(4); depth > 0 && out.map.size() < 40 && !out.map.empty(); --depth)
    out = around(std::move(out), pick);
  return out;
}

bool distinct(std::vector<MPI_Aint> places) {
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) == places.end();
}

/// Memory for `blocks` of n ints each, and the MPI arguments that describe them.
class Buffer {
 public:
  /// `written`: no place occurs twice. Empty for n = 0.
  Buffer(int n, int blocks, bool written, Draw pick) {
    for (int attempt = 0;; ++attempt) {
      Type t = attempt >= 8                                   ? Type{}
               : n > 0 && pick == shared_draw && pick(5) == 0 ? column(n, pick)
                                                              : random_type(pick);
      const int k = static_cast<int>(t.map.size());
      if (k == 0 || k > n || t.extent < 0) {
        if (t.type != MPI_INT) MPI_Type_free(&t.type);
        if (n > 0) continue;
        t = Type{};
      }
      if (k != 0 && n % k == 0) {
        count_ = n / k;
        t_ = std::move(t);
      } else {  // the rest in plain ints behind
        std::vector<MPI_Aint> map;
        lay(map, t, n / std::max(k, 1), 0);
        const MPI_Aint behind = (map.empty() ? 0 : *std::max_element(map.begin(), map.end())) + 4;
        lay(map, Type{}, n % std::max(k, 1), behind);
        const int lengths[] = {n / std::max(k, 1), n % std::max(k, 1)};
        const MPI_Aint places[] = {0, behind};
        const MPI_Datatype types[] = {t.type, MPI_INT};
        MPI_Datatype made;
        MPI_Type_create_struct(2, lengths, places, types, &made);
        t_ = take(t, made, std::move(map));
        count_ = 1;
      }
      map_.clear();
      lay(map_, t_, count_ * blocks, 0);
      if (t_.extent < 0 || (written && !distinct(map_))) {
        free();
        continue;
      }
      break;
    }
    MPI_Aint low = 0, high = 0;
    for (const MPI_Aint at : map_) {
      low = std::min(low, at);
      high = std::max(high, at + 4);
    }
    memory_.assign(static_cast<std::size_t>(high - low) / 4 + 8, kUntouched);
    origin_ = reinterpret_cast<char*>(memory_.data() + 4) - low;
    data_ = origin_;
    if (n > 0 && pick(3) == 0) {  // absolute addresses
      MPI_Aint where;
      MPI_Get_address(origin_, &where);
      MPI_Datatype made;
      MPI_Type_create_hindexed(1, &count_, &where, t_.type, &made);
      MPI_Datatype placed;  // the next block follows as without it
      MPI_Type_create_resized(made, 0, count_ * t_.extent, &placed);
      MPI_Type_free(&made);
      const MPI_Aint extent = count_ * t_.extent;
      std::vector<MPI_Aint> one;
      lay(one, t_, count_, where);
      t_ = take(t_, placed, std::move(one));
      t_.extent = extent;
      count_ = 1;
      data_ = MPI_BOTTOM;
    }
    if (t_.type != MPI_INT) MPI_Type_commit(&t_.type);
  }
  ~Buffer() { free(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void fill(int seed) {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_[i] = value(seed, rank_world, static_cast<int>(i)) & 0xfffff;
  }
  void* data() const { return data_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return t_.type; }
  const Type& model() const { return t_; }
  std::vector<std::int32_t>& memory() { return memory_; }

 private:
  void free() {
    if (t_.type != MPI_INT) MPI_Type_free(&t_.type);
    t_ = Type{};
  }
  Type t_;
  int count_ = 0;
  std::vector<MPI_Aint> map_;
  std::vector<std::int32_t> memory_;
  char* origin_ = nullptr;
  void* data_ = nullptr;
};

const Type* reduced = nullptr;  // the type of the current reduction
void add(void* in, void* inout, int* n, MPI_Datatype*) {
  for (int i = 0; i < *n; ++i)
    for (const MPI_Aint at : reduced->map) {
      const auto place = static_cast<std::uintptr_t>(i * reduced->extent + at);
      // The pointers are the origin of the items. With absolute addresses this is no address in memory.
      auto* const from = reinterpret_cast<std::int32_t*>(reinterpret_cast<std::uintptr_t>(in) + place);
      auto* const to = reinterpret_cast<std::int32_t*>(reinterpret_cast<std::uintptr_t>(inout) + place);
      std::int32_t a, b;
      std::memcpy(&a, from, 4);
      std::memcpy(&b, to, 4);
      b = static_cast<std::int32_t>((static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b)) & 0xfffff);
      std::memcpy(to, &b, 4);
    }
}

/// Runs `call(native)` twice on the same memory: MPICH's own collective, then the program's.
template <typename Call>
void compare(Buffer& into, const std::string& where, Call call) {
  const auto before = into.memory();
  if (call(true) != MPI_SUCCESS) fail(where + ": native failed");
  const auto want = into.memory();
  into.memory().assign(before.begin(), before.end());
  pause_at_random();
  if (call(false) != MPI_SUCCESS) fail(where + ": error");
  if (into.memory() != want) fail(where + ": differs from native");
}

constexpr int kFirstReduction = 5;

void one(int round, int op, MPI_Op sum) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static const char* const kNames[] = {"bcast", "scatter", "gather", "scatterv", "gatherv", "allreduce", "reduce"};
  const int n = draw(12) == 0 ? 400 + draw(3000) : draw(90), root = draw(size);
  const bool at_root = rank_world == root;
  const std::string where = std::string(kNames[op]) + " " + std::to_string(round) + ", " + std::to_string(n) +
                            " ints, root " + std::to_string(root);
  const MPI_Comm comm = MPI_COMM_WORLD;
  if (op == 0) {
    Buffer b(n, 1, !at_root, own_draw);
    b.fill(round);
    compare(b, where, [&](bool native) {
      return (native ? NATIVE(PMPI_Bcast) : MPI_Bcast)(b.data(), b.count(), b.type(), root, comm);
    });
  } else if (op <= 4) {
    const bool scatters = op == 1 || op == 3, irregular = op > 2;
    Buffer all(at_root ? n : 0, size, !scatters, own_draw), mine(n, 1, scatters, own_draw);
    all.fill(round);
    mine.fill(round + 1);
    Buffer& into = scatters ? mine : all;
    std::vector<int> counts(static_cast<std::size_t>(size), all.count()), places(counts.size());
    for (int r = 0; r < size; ++r) places[static_cast<std::size_t>(r)] = (size - 1 - r) * all.count();
    compare(into, where, [&](bool native) {
      if (irregular && scatters)
        return (native ? NATIVE(PMPI_Scatterv) : MPI_Scatterv)(all.data(), counts.data(), places.data(), all.type(),
                                                               mine.data(), mine.count(), mine.type(), root, comm);
      if (irregular)
        return (native ? NATIVE(PMPI_Gatherv) : MPI_Gatherv)(mine.data(), mine.count(), mine.type(), all.data(),
                                                             counts.data(), places.data(), all.type(), root, comm);
      if (scatters)
        return (native ? NATIVE(PMPI_Scatter) : MPI_Scatter)(all.data(), all.count(), all.type(), mine.data(),
                                                             mine.count(), mine.type(), root, comm);
      return (native ? NATIVE(PMPI_Gather) : MPI_Gather)(mine.data(), mine.count(), mine.type(), all.data(),
                                                         all.count(), all.type(), root, comm);
    });
  } else {
    Buffer b(n, 1, true, shared_draw);
    b.fill(round);
    reduced = &b.model();
    // Call allreduce natively, because MPICH 4.0.2's reduce in place to a root other than 0 crashes.
    if (op == 5) {
      compare(b, where, [&](bool native) {
        return (native ? NATIVE(PMPI_Allreduce) : MPI_Allreduce)(MPI_IN_PLACE, b.data(), b.count(), b.type(), sum,
                                                                 comm);
      });
    } else {
      // With root 0, native may serve the call, too.
      const auto before = b.memory();
      compare(b, where, [&](bool native) {
        if (native) {
          const int rc = NATIVE(PMPI_Allreduce)(MPI_IN_PLACE, b.data(), b.count(), b.type(), sum, comm);
          if (rank_world != 0) b.memory().assign(before.begin(), before.end());
          return rc;
        }
        return MPI_Reduce(rank_world == 0 ? MPI_IN_PLACE : b.data(), rank_world == 0 ? b.data() : nullptr, b.count(),
                          b.type(), sum, 0, comm);
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds;
  begin(argc, argv, rounds);
  MPI_Op sum;
  MPI_Op_create(add, 1, &sum);
  for (int round = 0; round < rounds; ++round) {
    for (int op = argc > 3 ? kFirstReduction : 0; op < 7; ++op) one(round, op, sum);
    if (round % 8 == 0) MPI_Barrier(MPI_COMM_WORLD);  // lets plans come into force
  }
  MPI_Op_free(&sum);
  return finish();
}
