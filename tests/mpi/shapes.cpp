// SPDX-License-Identifier: BSD-3-Clause
// Hundreds of random allreduces and reduces, each compared with MPICH's own allreduce. (PMPI bypasses every preload.
// MPICH's reduce in place to a root other than 0 crashes above 2 KiB.) Compares bit by bit if the operator is exact;
// results must always be bitwise equal on all ranks. Uses in place, derived datatypes with gaps, user-defined operators
// (also non-commutative), and communicators of every other rank and of the reversed ranks.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/mpi/random_calls.hpp"

namespace {

struct Affine {
  std::int64_t a, b;
};  // (a, b) o (c, d) = (a c, b c + d) mod M: not commutative
constexpr std::int64_t kModulus = 1000003;
void compose(void* in, void* inout, int* n, MPI_Datatype*) {
  auto *l = static_cast<Affine*>(in), *r = static_cast<Affine*>(inout);
  for (int i = 0; i < *n; ++i) r[i] = {l[i].a * r[i].a % kModulus, (l[i].b * r[i].a + r[i].b) % kModulus};
}
struct Extrema {
  double low, high;
  std::int32_t where;
};
void extrema(void* in, void* inout, int* n, MPI_Datatype*) {
  auto *l = static_cast<Extrema*>(in), *r = static_cast<Extrema*>(inout);
  for (int i = 0; i < *n; ++i) {
    if (l[i].low < r[i].low || (l[i].low == r[i].low && l[i].where < r[i].where)) {
      r[i].low = l[i].low;
      r[i].where = l[i].where;
    }
    if (l[i].high > r[i].high) r[i].high = l[i].high;
  }
}
// An element is three of every five ints, in a type with gaps and a lower bound of 4 bytes.
void sum_gapped(void* in, void* inout, int* n, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *n; ++i)
    for (int k : {1, 3, 4}) {
      const auto at = static_cast<std::size_t>(i) * static_cast<std::size_t>(extent) + static_cast<std::size_t>(k) * 4;
      std::int32_t l, r;
      std::memcpy(&l, static_cast<char*>(in) + at, 4);
      std::memcpy(&r, static_cast<char*>(inout) + at, 4);
      r += l;
      std::memcpy(static_cast<char*>(inout) + at, &r, 4);
    }
}

struct Kind {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t extent;
  bool exact;
  std::function<void(char*, int count, int rank)> fill;
};

template <typename T>
void put(char* at, int i, T v) {
  std::memcpy(at + static_cast<std::size_t>(i) * sizeof(T), &v, sizeof v);
}

/// root -1: allreduce.
void one(MPI_Comm comm, const Kind& kind, int count, bool in_place, int root = -1) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const std::size_t bytes = kind.extent * static_cast<std::size_t>(count) + 16;
  std::vector<char> send(bytes, 0x55), got(bytes, 0x33), want(bytes, 0x33);
  kind.fill(send.data(), count, rank);
  const bool result = root < 0 || rank == root;
  if (in_place) got = want = send;
  const std::vector<char> sent = send;
  NATIVE(PMPI_Allreduce)(in_place ? MPI_IN_PLACE : send.data(), want.data(), count, kind.type, kind.op, comm);
  if (root < 0) {
    MPI_Allreduce(in_place ? MPI_IN_PLACE : send.data(), got.data(), count, kind.type, kind.op, comm);
  } else if (result) {
    MPI_Reduce(in_place ? MPI_IN_PLACE : send.data(), got.data(), count, kind.type, kind.op, root, comm);
  } else {
    // An insignificant argument: a null pointer, or a buffer that must not change.
    MPI_Reduce(send.data(), count % 2 ? nullptr : got.data(), count, kind.type, kind.op, root, comm);
    want = got;
    if (got != (in_place ? sent : std::vector<char>(bytes, 0x33)))
      fail(std::string(kind.name) + ": reduce wrote where it is not the root");
  }
  const std::string where = (root < 0 ? "" : "reduce to " + std::to_string(root) + ", ") + std::string(kind.name) +
                            ", count " + std::to_string(count) + (in_place ? ", in place" : "") + ", " +
                            std::to_string(rank) + " of " + std::to_string(size);
  if (send != sent) fail(where + ": the input was changed");
  if (kind.exact) {
    if (got != want) fail(where + ": differs from native");
  } else {
    for (int i = 0; result && i < count; ++i) {
      double a, b;
      std::memcpy(&a, got.data() + 8 * i, 8);
      std::memcpy(&b, want.data() + 8 * i, 8);
      if (std::abs(a - b) > 1e-12 * (std::abs(b) + size)) fail(where + ": off by more than rounding");
    }
    if (root >= 0) return;
    std::vector<char> first = got;
    NATIVE(PMPI_Bcast)(first.data(), static_cast<int>(bytes - 16), MPI_BYTE, 0, comm);
    if (first != got) fail(where + ": ranks differ bitwise");
  }
}

/// Whether MPICH 4.0.2 survives the call natively: in place, it crashes above 2 KiB at roots other than 0.
bool natively_safe(const Kind& kind, int count, int root, bool in_place) {
  return in_place && (root == 0 || kind.extent * static_cast<std::size_t>(count) <= 2048);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds;
  const int size = begin(argc, argv, rounds);

  MPI_Datatype affine, extrema_type, triple, gapped;
  MPI_Type_contiguous(2, MPI_INT64_T, &affine);
  MPI_Type_commit(&affine);
  MPI_Type_contiguous(sizeof(Extrema), MPI_BYTE, &extrema_type);
  MPI_Type_commit(&extrema_type);
  const int lengths[] = {1, 2}, places[] = {1, 3};
  MPI_Type_indexed(2, lengths, places, MPI_INT32_T, &triple);
  MPI_Type_create_resized(triple, 0, 24, &gapped);
  MPI_Type_commit(&gapped);
  MPI_Op compose_op, extrema_op, gapped_op;
  MPI_Op_create(compose, 0, &compose_op);
  MPI_Op_create(extrema, 1, &extrema_op);
  MPI_Op_create(sum_gapped, 1, &gapped_op);

  const auto ints = [](char* at, int n, int r) {
    for (int i = 0; i < n; ++i) put<std::int32_t>(at, i, (r + 1) * 7919 + i * 31);
  };
  const auto longs = [](char* at, int n, int r) {
    for (int i = 0; i < n; ++i) put<std::int64_t>(at, i, (r * 2654435761LL) ^ (i * 40503LL));
  };
  const auto doubles = [](char* at, int n, int r) {
    for (int i = 0; i < n; ++i) put<double>(at, i, std::sin(r * 12.9898 + i * 78.233) * (1 + i % 3));
  };
  const auto pairs = [](char* at, int n, int r) {
    struct Pair {
      double v;
      int k;
    };
    for (int i = 0; i < n; ++i) {
      Pair p{};
      std::memset(static_cast<void*>(&p), 0, sizeof p);
      p.v = (r * 7 + i) % 5;
      p.k = r;
      put<Pair>(at, i, p);
    }
  };
  const Kind kinds[] = {
      {"int sum", MPI_INT, MPI_SUM, 4, true, ints},
      {"int max", MPI_INT, MPI_MAX, 4, true, ints},
      {"int min", MPI_INT, MPI_MIN, 4, true, ints},
      {"long xor", MPI_INT64_T, MPI_BXOR, 8, true, longs},
      {"long product", MPI_INT64_T, MPI_PROD, 8, true, longs},
      {"logical and", MPI_INT, MPI_LAND, 4, true,
       [](char* at, int n, int r) {
         for (int i = 0; i < n; ++i) put<std::int32_t>(at, i, (r + i) % 3);
       }},
      {"logical xor", MPI_INT, MPI_LXOR, 4, true, ints},
      {"double max", MPI_DOUBLE, MPI_MAX, 8, true, doubles},
      {"double sum", MPI_DOUBLE, MPI_SUM, 8, false, doubles},
      {"double product", MPI_DOUBLE, MPI_PROD, 8, false, doubles},
      {"maxloc", MPI_DOUBLE_INT, MPI_MAXLOC, 16, true, pairs},
      {"affine maps", affine, compose_op, 16, true,
       [](char* at, int n, int r) {
         for (int i = 0; i < n; ++i) put<Affine>(at, i, {r + 2 + i, 3 * r + 1});
       }},
      {"extrema", extrema_type, extrema_op, sizeof(Extrema), true,
       [](char* at, int n, int r) {
         for (int i = 0; i < n; ++i) {
           Extrema x;
           std::memset(static_cast<void*>(&x), 0, sizeof x);
           x.low = (r * 5 + i) % 4;
           x.high = (r * 3 + i) % 7;
           x.where = r;
           put<Extrema>(at, i, x);
         }
       }},
#ifndef OPEN_MPI  // Open MPI 4.1.4 writes beyond its own buffers there, and crashes
      {"gapped ints", gapped, gapped_op, 24, true,
       [](char* at, int n, int r) {
         for (int i = 0; i < n; ++i)
           for (int k : {1, 3, 4}) put<std::int32_t>(at, i * 6 + k, r * 100 + i * 5 + k);
       }},
#endif
  };
  Communicators comms;
  for (int round = 0; round < rounds; ++round)
    for (const MPI_Comm comm : comms.all) {
      const Kind& kind = kinds[draw() % (sizeof kinds / sizeof kinds[0])];
      int count;
      switch (draw() % 6) {
        case 0:
          count = static_cast<int>(draw() % 3);
          break;
        case 1:
          count = static_cast<int>(draw() % static_cast<unsigned>(size + 1));
          break;
        case 2:
          count = 20000 + static_cast<int>(draw() % 30000);
          break;
        default:
          count = static_cast<int>(draw() % 700);
      }
      one(comm, kind, count, draw() % 3 == 0);
      const int root = static_cast<int>(draw() % static_cast<unsigned>(2 * size));
      const bool in_place = draw() % 3 == 0;
      int members;
      MPI_Comm_size(comm, &members);
      one(comm, kind, count, natively_safe(kind, count, root % members, in_place), root % members);
    }
  // Calls that crash natively, for policies that serve every reduce: `shapes ROUNDS in_place`.
  if (argc > 2)
    for (const Kind& kind : kinds)
      for (int root = 0; root < size; ++root)
        for (const int count : {600, 20'000}) one(MPI_COMM_WORLD, kind, count, true, root);
  // Every kind in both forms on the world, with one size below and one above P.
  for (const Kind& kind : kinds)
    for (const int count : {1, size + 5})
      for (const bool in_place : {false, true}) {
        one(MPI_COMM_WORLD, kind, count, in_place);
        one(MPI_COMM_WORLD, kind, count, in_place, size - 1);
      }
  comms.free();
  return finish();
}
