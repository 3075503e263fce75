// SPDX-License-Identifier: BSD-3-Clause
// Ranks may disagree whether these calls count: collectives in delete functions of attributes, and calls that MPI
// refuses. Others are of one datatype with several names, or are left by a jump or an exception. Each case is right
// natively. Usage: counting CASE
#include <mpi.h>

#include <complex>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

int rank_world, ranks, bad = 0;
#define CHECK(condition) \
  ((condition) ? 0 : (bad++, std::printf("rank %d: line %d: %s\n", rank_world, __LINE__, #condition)))

// The calls of one job in two ways that count alike. MPICH's PMPI names are behind every preload.
#ifdef OPEN_MPI
int (*const allreduce_other)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = PMPI_Allreduce;
#else
int (*const allreduce_other)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = MPI_Allreduce;
#endif

void sums(MPI_Comm comm, int calls) {
  std::vector<double> in(300), out(300);
  for (int i = 0; i < calls; ++i) {
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = rank_world + static_cast<double>(k) + i;
    ((rank_world + i) % 2 ? MPI_Allreduce : allreduce_other)(in.data(), out.data(), 300, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(out[299] == ranks * (ranks - 1) / 2 + ranks * (299.0 + i));
  }
}

int calls_on_delete = 0;
bool refuses = false;
int on_delete(MPI_Comm comm, int, void*, void*) {
  sums(comm, calls_on_delete);
  return refuses ? MPI_ERR_OTHER : MPI_SUCCESS;
}
int callback() {
  static int keyval = [] {
    int made;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &made, nullptr);
    return made;
  }();
  return keyval;
}

// MPI deletes attributes in an order that depends on when they were set: some ranks set theirs before the first
// collective, others behind it.
void callbacks(bool disconnects) {
  for (const int calls : {0, 3, 15, 20, 40}) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    calls_on_delete = 5;
    if (rank_world % 2) MPI_Comm_set_attr(comm, callback(), nullptr);
    sums(comm, calls);
    if (rank_world % 2 == 0) MPI_Comm_set_attr(comm, callback(), nullptr);
    if (disconnects) MPI_Comm_disconnect(&comm);
    else MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);
  }
}

// Rank 0 calls before MPI_Comm_free, the others inside it.
void before_or_inside() {
  for (const int calls : {0, 1, 16, 31}) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    calls_on_delete = 17;
    if (rank_world != 0) MPI_Comm_set_attr(comm, callback(), nullptr);
    sums(comm, calls);
    if (rank_world == 0) sums(comm, calls_on_delete);
    MPI_Comm_free(&comm);
  }
}

// A delete function refuses, so the communicator lives on. (MPICH takes the answer of the last attribute, which is the
// first one that was set.)
void refused_free() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  calls_on_delete = 2;
  MPI_Comm_set_attr(comm, callback(), nullptr);
  sums(comm, 20);
  refuses = true;
  CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS && comm != MPI_COMM_NULL);
  refuses = false;
  sums(comm, 40);
  MPI_Comm_delete_attr(comm, callback());
  MPI_Comm_free(&comm);
}

// All ranks get a call back at once, so none may wait for another there.
void refused() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  double in = 1, out = 0, all[64] = {};
  int data = 0;
  const auto in_turn = [&](auto call) {  // rank r calls when rank r - 1 is back
    if (rank_world > 0) MPI_Recv(nullptr, 0, MPI_INT, rank_world - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(call() != MPI_SUCCESS);
    if (rank_world < ranks - 1) MPI_Send(nullptr, 0, MPI_INT, rank_world + 1, 1, MPI_COMM_WORLD);
  };
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 8; ++i) MPI_Bcast(&data, 1, MPI_INT, 1, comm);  // depends on rank 1 only
    in_turn([&] { return MPI_Bcast(&data, 1, MPI_INT, ranks, comm); });
#ifdef OPEN_MPI
    in_turn([&] { return MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_BAND, comm); });
    in_turn([&] { return MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_OP_NULL, comm); });
    in_turn([&] { return MPI_Allreduce(&in, &out, -1, MPI_DOUBLE, MPI_SUM, comm); });
    in_turn([&] { return MPI_Allgather(all, 1, MPI_DOUBLE, all, -1, MPI_DOUBLE, comm); });
    in_turn([&] { return MPI_Reduce_scatter_block(all, &out, 1, MPI_DOUBLE, MPI_BXOR, comm); });
#endif
  }
  (void)in;
  (void)out;
  (void)all;
  sums(comm, 20);
  MPI_Comm_free(&comm);
}

template <typename Value>
void names_of(MPI_Op op, Value value, Value want, const std::vector<MPI_Datatype>& names) {
  for (std::size_t shift = 0; shift < names.size(); ++shift) {
    const MPI_Datatype mine = names[(static_cast<std::size_t>(rank_world) + shift) % names.size()];
    std::vector<Value> in(200, value), out(200);
    MPI_Allreduce(in.data(), out.data(), 200, mine, op, MPI_COMM_WORLD);
    CHECK(std::memcmp(&out[199], &want, sizeof want) == 0);
  }
}

struct Pair {
  int value, place;
};

// Ranks in C and Fortran name one datatype differently.
void names() {
  MPI_Datatype integer, real, complex, byte;
  MPI_Type_create_f90_integer(9, &integer);
  MPI_Type_create_f90_real(15, 300, &real);
  MPI_Type_create_f90_complex(15, 300, &complex);
  MPI_Type_create_f90_integer(2, &byte);
  for (int round = 0; round < 12; ++round) {
    names_of(MPI_MAXLOC, Pair{7, rank_world}, Pair{7, 0}, {MPI_2INT, MPI_2INTEGER});
    names_of(MPI_SUM, std::complex<double>(1, 2), std::complex<double>(ranks, 2 * ranks),
             {MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX16, MPI_CXX_DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX, complex});
    names_of(MPI_SUM, std::complex<float>(1, 2),
             std::complex<float>(static_cast<float>(ranks), static_cast<float>(2 * ranks)),
             {MPI_C_FLOAT_COMPLEX, MPI_COMPLEX8, MPI_CXX_FLOAT_COMPLEX, MPI_COMPLEX});
    names_of(MPI_SUM, 3, 3 * ranks, {MPI_INT, MPI_INTEGER, MPI_INTEGER4, MPI_INT32_T, integer});
    names_of(MPI_SUM, 3.0, 3.0 * ranks, {MPI_DOUBLE, MPI_DOUBLE_PRECISION, MPI_REAL8, real});
    names_of(MPI_MAX, 3L, 3L, {MPI_LONG, MPI_LONG_LONG, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER8});
    names_of(MPI_LAND, 1L, 1L, {MPI_LONG, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT});
    names_of(MPI_BOR, static_cast<signed char>(6), static_cast<signed char>(6),
             {MPI_SIGNED_CHAR, MPI_CHAR, MPI_INT8_T, MPI_INTEGER1, byte, MPI_CHARACTER, MPI_BYTE});
    names_of(MPI_LOR, static_cast<unsigned char>(1), static_cast<unsigned char>(1), {MPI_C_BOOL, MPI_CXX_BOOL});
  }
}

// A delete function of MPI_COMM_SELF makes the call by another name that rank 0 made before MPI_Finalize.
void in_finalize() {
  sums(MPI_COMM_WORLD, 10);
  calls_on_delete = 11;
  static int keyval;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm, int, void*, void*) {
        sums(MPI_COMM_WORLD, calls_on_delete);
        if (bad) MPI_Abort(MPI_COMM_WORLD, 9);
        return MPI_SUCCESS;
      },
      &keyval, nullptr);
  if (rank_world == 0) sums(MPI_COMM_WORLD, calls_on_delete);
  else MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
}

std::jmp_buf back;
void jump_back(MPI_Comm*, int*, ...) { std::longjmp(back, 1); }

/// Makes a call from a deeper frame than the one that a jump left.
[[gnu::noinline]] void deeper(MPI_Comm comm, int frames) {
  char volatile room[500] = {};
  if (frames > 0) deeper(comm, frames - 1);
  else sums(comm, 4);
  (void)room[0];
}

// A duplicate of MPI_COMM_WORLD with this error handler.
MPI_Comm duplicate_with(MPI_Comm_errhandler_function* function) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(function, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  return comm;
}

// An error handler leaves a call by a jump that all ranks get back.
void jump() {
  MPI_Comm comm = duplicate_with(jump_back);
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(comm, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (int round = 0; round < 8; ++round) {
    int data = 0;
    if (setjmp(back) == 0) {
      MPI_Bcast(&data, 1, MPI_INT, ranks, comm);
      CHECK(false);
    }
    sums(comm, 3);
    deeper(comm, 20);
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

// The last rank alone leaves a call that depends on all, in its operator, which comes behind the messages.
void jumping(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  if (rank_world == ranks - 1) std::longjmp(back, 1);
}
void jump_alone() {
  MPI_Op op;
  MPI_Op_create(jumping, 1, &op);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int data = round, sum = -1;
    for (int i = 0; i < 20; ++i) MPI_Bcast(&data, 1, MPI_INT, 1, comm);
    if (setjmp(back) == 0) MPI_Allreduce(&data, &sum, 1, MPI_INT, op, comm);
    deeper(comm, 20);
    sums(comm, 40);
    MPI_Comm_free(&comm);
  }
  MPI_Op_free(&op);
}

int calls_of_operator = 0;
void throwing(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
  if (calls_of_operator > 0 && --calls_of_operator == 0) throw std::string("from the operator");
}
// Under a rule, a rank may hear of another one's failure before it runs the operator: then it returns an error.
void exceptions() {
  MPI_Op op;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Op_create(throwing, 1, &op);
  for (int round = 0; round < 20; ++round) {
    int in[2] = {round, 1}, out[2] = {};
    std::string caught;
    int rc = MPI_SUCCESS;
    calls_of_operator = 1;
    try {
      rc = MPI_Allreduce(in, out, 2, MPI_INT, op, MPI_COMM_WORLD);
    } catch (const std::string& thrown) {
      caught = thrown;
    }
    CHECK(caught == "from the operator" || rc != MPI_SUCCESS);
    calls_of_operator = 0;
    MPI_Allreduce(in, out, 2, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(out[0] == ranks * round && out[1] == ranks);
    sums(MPI_COMM_WORLD, 3);
  }
  MPI_Op_free(&op);
}

#ifndef OPEN_MPI  // which allows one buffer for both
void throw_no_memory(MPI_Comm*, int*, ...) { throw std::bad_alloc(); }
// All ranks get a call back, and the program catches what its error handler throws.
void handler_throws() {
  MPI_Comm comm = duplicate_with(throw_no_memory);
  for (int round = 0; round < 20; ++round) {
    int both[2] = {1, 2};
    bool caught = false;
    try {
      MPI_Allreduce(both, both, 2, MPI_INT, MPI_SUM, comm);
    } catch (const std::bad_alloc&) {
      caught = true;
    }
    CHECK(caught);
    sums(comm, 3);
  }
  MPI_Comm_free(&comm);
}
#endif

}  // namespace

#ifdef INJECTS
extern "C" void inject_arm(int memory, int at);
extern "C" int inject_disarm();
// On rank 1 one allocation fails at the first call on a communicator.
static void memory(int at) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  double in[300] = {1}, out[300];
  if (rank_world == 1) inject_arm(1, at);
  MPI_Allreduce(in, out, 300, MPI_DOUBLE, MPI_SUM, comm);
  if (rank_world == 1 && inject_disarm()) std::printf("an allocation failed\n");
  CHECK(out[0] == ranks);
  sums(comm, 40);
  MPI_Comm_free(&comm);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_world);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "callbacks") callbacks(false);
  else if (what == "disconnect") callbacks(true);
  else if (what == "before_or_inside") before_or_inside();
  else if (what == "refused_free") refused_free();
  else if (what == "refused") refused();
  else if (what == "names") names();
  else if (what == "in_finalize") in_finalize();
  else if (what == "jump") jump();
  else if (what == "jump_alone") jump_alone();
  else if (what == "exceptions") exceptions();
#ifndef OPEN_MPI
  else if (what == "handler_throws") handler_throws();
#endif
#ifdef INJECTS
  else if (what == "memory") memory(std::stoi(argv[2]));
#endif
  else CHECK(!"no such case");
  MPI_Finalize();
  if (rank_world == 0 && bad == 0) std::printf("right\n");
  return bad != 0;
}
