# SPDX-License-Identifier: BSD-3-Clause
# MPI's standard ABI, for the family abi, with a header of our own: no library that has it needs to be installed. Programs
# of the tests are linked with a library of the same name whose functions end the program. They run where a library of MPI is.
option(LATECOMER_ABI "Build the family abi" ON)
if(NOT LATECOMER_ABI)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(_generate ${CMAKE_SOURCE_DIR}/shim/front/generate.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_generate} shim/front/functions.def shim/mpi/abi/functions.def)
set(_generated ${CMAKE_BINARY_DIR}/generated/abi)
execute_process(COMMAND ${Python3_EXECUTABLE} ${_generate} abi-header ${_generated}/mpi_functions.h COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${Python3_EXECUTABLE} ${_generate} abi-library ${_generated}/library.c COMMAND_ERROR_IS_FATAL ANY)

list(APPEND LATECOMER_FAMILIES abi)
set(LATECOMER_LEVEL_abi c)  # shim/front/generate.py
add_library(abi_headers INTERFACE)
target_include_directories(abi_headers SYSTEM INTERFACE ${CMAKE_SOURCE_DIR}/shim/mpi/abi ${_generated})
target_compile_definitions(abi_headers INTERFACE LATECOMER_ABI)

# Not in the folder of libraries: no program may find it there and run on it.
add_library(abi_library SHARED EXCLUDE_FROM_ALL ${_generated}/library.c)
set_target_properties(abi_library PROPERTIES OUTPUT_NAME mpi_abi SOVERSION 1 C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${_generated})
add_library(abi INTERFACE)
target_link_options(abi INTERFACE -L${_generated})
target_link_libraries(abi INTERFACE abi_headers -lmpi_abi)  # by its name, so that programs get no path to it
add_dependencies(abi abi_library)
