// SPDX-License-Identifier: BSD-3-Clause
// Geometry of datatypes, and whether a typemap is in the order of memory.
#include "shim/runner/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace latecomer::shim {
namespace {

bool is_run(MPI_Datatype type);

/// Follows a typemap: every part has to begin where the part before ended.
class Cursor {
 public:
  explicit Cursor(MPI_Datatype part) { use(part); }
  Cursor() = default;
  /// Sets the datatype of the parts that follow. If MPI returns an error, the typemap counts as out of order.
  void use(MPI_Datatype part) {
    if (layout_of(part) != MPI_SUCCESS) in_order_ = false;
    else part_is_run_ = layout_.size == 0 || is_run(part);
  }
  MPI_Count extent() const { return layout_.extent; }
  /// Adds `count` items, one extent after the other, `at` bytes from the beginning. Returns false if they are out of
  /// order: then the whole typemap is.
  bool place(MPI_Count count, MPI_Count at) {
    if (count <= 0 || layout_.size == 0 || !in_order_) return in_order_;
    if (!part_is_run_ || (count > 1 && layout_.extent != layout_.size)) return in_order_ = false;
    const MPI_Count begin = at + layout_.true_lower;
    if (placed_ && begin != next_) return in_order_ = false;
    placed_ = true;
    next_ = begin + count * layout_.size;
    return true;
  }
  bool in_order() const { return in_order_; }

 private:
  int layout_of(MPI_Datatype part) {
    layout_ = {};
    int rc = PMPI_Type_size_x(part, &layout_.size);
    if (rc == MPI_SUCCESS) rc = PMPI_Type_get_extent_x(part, &layout_.lower, &layout_.extent);
    if (rc == MPI_SUCCESS) rc = PMPI_Type_get_true_extent_x(part, &layout_.true_lower, &layout_.true_extent);
    return rc;
  }
  Layout layout_;
  MPI_Count next_ = 0;
  bool part_is_run_ = false, placed_ = false, in_order_ = true;
};

/// The constructor of a datatype and its arguments. Frees the handles of its parts.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> large;
  std::vector<MPI_Datatype> types;
  bool known = false;

  explicit Contents(MPI_Datatype type) {
    MPI_Count n[4] = {};
    if (PMPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &combiner) != MPI_SUCCESS) return;
    known = combiner == MPI_COMBINER_NAMED;
    if (known) return;
    const auto room = [](MPI_Count count) { return static_cast<std::size_t>(count); };
    integers.resize(room(n[0]));
    addresses.resize(room(n[1]));
    large.resize(room(n[2]));
    types.resize(room(n[3]), MPI_DATATYPE_NULL);
    known = PMPI_Type_get_contents_c(type, n[0], n[1], n[2], n[3], integers.data(), addresses.data(), large.data(),
                                     types.data()) == MPI_SUCCESS;
    if (!known) types.clear();
  }
  ~Contents() {
    for (MPI_Datatype& type : types) {
      if (is_basic(type)) continue;
      MPI_Count n[4] = {};
      int made_by = MPI_COMBINER_NAMED;
      PMPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &made_by);
      const bool predefined = made_by == MPI_COMBINER_NAMED || made_by == MPI_COMBINER_F90_REAL ||
                              made_by == MPI_COMBINER_F90_COMPLEX || made_by == MPI_COMBINER_F90_INTEGER;
      if (!predefined) PMPI_Type_free(&type);
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  /// Counts, lengths and places in one sequence, whether the constructor had int or MPI_Count arguments.
  std::size_t numbers() const { return large.empty() ? integers.size() + addresses.size() : large.size(); }
  MPI_Count number(std::size_t i) const {
    return !large.empty() ? large[i] : i < integers.size() ? integers[i] : addresses[i - integers.size()];
  }
};

/// `count` blocks of `length` items, `stride` bytes apart.
bool strided(MPI_Datatype part, MPI_Count count, MPI_Count length, MPI_Count stride, bool in_extents) {
  Cursor cursor(part);
  if (in_extents) stride *= cursor.extent();
  for (MPI_Count i = 0; i < count; ++i) {
    if (!cursor.place(length, i * stride)) return false;
    if (length <= 0) break;
    if (i == 1) break;  // two blocks in order: all are
  }
  return cursor.in_order();
}

/// A block of an array. Take the fastest dimension that the block does not fill. The block is in order if it has one
/// index only in each slower dimension.
bool block_of_array(const Contents& c) {
  const auto dimensions = static_cast<std::size_t>(c.integers.front());
  const bool large = !c.large.empty();
  if (dimensions == 0 ||
      (large ? c.large.size() != 3 * dimensions || c.integers.size() != 2 : c.integers.size() != 3 * dimensions + 2))
    return false;
  const auto of = [&](std::size_t row, std::size_t d) {
    return large ? c.large[row * dimensions + d] : MPI_Count{c.integers[1 + row * dimensions + d]};
  };
  MPI_Count items = 1;
  bool whole = true, run = true;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t d = c.integers.back() == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i;
    run = run && (whole || of(1, d) == 1);
    whole = whole && of(1, d) == of(0, d);
    items *= of(1, d);
  }
  return Cursor(c.types.front()).place(items, 0) && (run || items == 0);
}

/// Whether the typemap is one run of bytes in the order of memory, from any beginning. Each of its parts must be one.
bool is_run(MPI_Datatype type) {
  if (is_basic(type)) return true;
  const Contents c(type);
  if (!c.known) return false;
  const auto numbers = c.numbers();
  const auto blocks = [&](std::size_t behind) {
    return numbers > 0 && numbers == 1 + behind * static_cast<std::size_t>(c.number(0))
               ? static_cast<std::size_t>(c.number(0))
               : SIZE_MAX;
  };
  switch (c.combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER: {
      MPI_Count size = 0, lower = 0, extent = 0;
      return PMPI_Type_size_x(type, &size) == MPI_SUCCESS &&
             PMPI_Type_get_true_extent_x(type, &lower, &extent) == MPI_SUCCESS && size == extent;
    }
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return is_run(c.types.front());
    case MPI_COMBINER_CONTIGUOUS:
      return numbers == 1 && Cursor(c.types.front()).place(c.number(0), 0);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
      return numbers == 3 &&
             strided(c.types.front(), c.number(0), c.number(1), c.number(2), c.combiner == MPI_COMBINER_VECTOR);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: {
      const std::size_t n = blocks(2);
      if (n == SIZE_MAX || (c.combiner == MPI_COMBINER_STRUCT && c.types.size() != n)) return false;
      Cursor cursor;
      for (std::size_t i = 0; i < n; ++i) {
        if (i == 0 || (c.combiner == MPI_COMBINER_STRUCT && c.types[i] != c.types[i - 1]))
          cursor.use(c.types[c.combiner == MPI_COMBINER_STRUCT ? i : 0]);
        const MPI_Count unit = c.combiner == MPI_COMBINER_INDEXED ? cursor.extent() : 1;
        if (!cursor.place(c.number(1 + i), c.number(1 + n + i) * unit)) return false;
      }
      return cursor.in_order();
    }
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: {
      if (numbers < 2 || numbers != 2 + static_cast<std::size_t>(c.number(0))) return false;
      Cursor cursor(c.types.front());
      const MPI_Count unit = c.combiner == MPI_COMBINER_INDEXED_BLOCK ? cursor.extent() : 1;
      for (std::size_t i = 2; i < numbers; ++i)
        if (!cursor.place(c.number(1), c.number(i) * unit)) return false;
      return cursor.in_order();
    }
    case MPI_COMBINER_SUBARRAY:
      return block_of_array(c);
    default:
      return false;  // distributed arrays and types of Fortran 77's constructors: packing is always right
  }
}

/// Keeps the answer in an attribute of the datatype. MPI deletes it with the datatype, so a handle that MPI uses again
/// has no attribute. Duplicates get no copy.
bool known_run(MPI_Datatype type) {
  static const int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &made, nullptr);
    return made;
  }();
  static char answers[2];  // the attribute's value is the address of one
  void* value = nullptr;
  int there = 0;
  if (keyval != MPI_KEYVAL_INVALID && PMPI_Type_get_attr(type, keyval, &value, &there) == MPI_SUCCESS && there)
    return value == &answers[1];
  const bool run = is_run(type);
  if (keyval != MPI_KEYVAL_INVALID) PMPI_Type_set_attr(type, keyval, &answers[run]);
  return run;
}

}  // namespace

bool holds_data(MPI_Datatype type) {
  MPI_Count size = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size != 0) return size != 0;
  const Contents c(type);
  const auto positive = [&](std::size_t i) { return i < c.numbers() && c.number(i) > 0; };
  switch (c.known ? c.combiner : MPI_COMBINER_NAMED) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return holds_data(c.types.front());
    case MPI_COMBINER_CONTIGUOUS:
      return positive(0) && holds_data(c.types.front());
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return positive(0) && positive(1) && holds_data(c.types.front());
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
      for (std::size_t i = 1; positive(0) && i <= static_cast<std::size_t>(c.number(0)); ++i)
        if (positive(i) && holds_data(c.types[c.types.size() > 1 ? i - 1 : 0])) return true;
      return false;
    default:
      return false;  // predefined, and blocks of arrays, which memory does not hold if they are so large
  }
}

int Layout::read_type(MPI_Datatype type) {
  int rc = PMPI_Type_size_x(type, &size);
  if (rc == MPI_SUCCESS && is_basic(type)) {
    lower = true_lower = 0;
    extent = true_extent = pitch = size;
    gapless = true;
    return rc;
  }
  if (rc == MPI_SUCCESS) rc = PMPI_Type_get_extent_x(type, &lower, &extent);
  if (rc == MPI_SUCCESS) rc = PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
  constexpr MPI_Count kAlignment = alignof(std::max_align_t);
  pitch = extent >= true_extent ? extent : (true_extent + kAlignment - 1) / kAlignment * kAlignment;
  gapless =
      rc == MPI_SUCCESS && size == extent && true_lower == 0 && true_extent == extent && (size == 0 || known_run(type));
  return rc;
}

}  // namespace latecomer::shim
