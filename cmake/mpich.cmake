# SPDX-License-Identifier: BSD-3-Clause
# MPICH by its own wrappers' names: with another MPI installed beside it, mpicc may be the other one.
find_program(MPICH_MPICC NAMES mpicc.mpich mpicc REQUIRED)
find_program(MPICH_MPIEXEC NAMES mpiexec.mpich mpiexec.hydra mpiexec REQUIRED)
execute_process(COMMAND ${MPICH_MPICC} -show OUTPUT_VARIABLE _show OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "-I *[^ ]+" _includes "${_show}")
list(TRANSFORM _includes REPLACE "^-I *" "")
string(REGEX MATCHALL "(^| )-L *[^ ]+" _libdirs "${_show}")
list(TRANSFORM _libdirs REPLACE "^ *-L *" "")
find_path(MPICH_INCLUDE_DIR mpi.h HINTS ${_includes} NO_DEFAULT_PATH REQUIRED)
find_library(MPICH_LIBRARY NAMES mpich HINTS ${_libdirs} REQUIRED)
find_path(LIBUNWIND_INCLUDE_DIR libunwind.h REQUIRED)
find_library(LIBUNWIND_LIBRARY unwind REQUIRED)

list(APPEND LATECOMER_FAMILIES mpich)
set(LATECOMER_LEVEL_mpich f08)  # shim/front/generate.py
# Headers only: the shim must not link MPI (docs/explanation/architecture.md).
add_library(mpich_headers INTERFACE)
target_include_directories(mpich_headers SYSTEM INTERFACE ${MPICH_INCLUDE_DIR})
add_library(mpich INTERFACE)
target_link_libraries(mpich INTERFACE mpich_headers ${MPICH_LIBRARY})
