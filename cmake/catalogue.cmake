# SPDX-License-Identifier: BSD-3-Clause
# Reads core/algorithms/catalogue.def: one source file per row, named COLLECTIVE/NAME.cpp. LATECOMER_ALGORITHMS_<collective> lists the names.
set(_catalogue ${CMAKE_SOURCE_DIR}/core/algorithms/catalogue.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_catalogue})
file(STRINGS ${_catalogue} _rows REGEX "^LATECOMER_ALGORITHM\\(")
set(LATECOMER_ALGORITHM_SOURCES)
foreach(_row IN LISTS _rows)
  if(NOT _row MATCHES "^LATECOMER_ALGORITHM\\(([a-z_]+), ([a-z_0-9]+),")
    message(FATAL_ERROR "catalogue.def: cannot read the row '${_row}'")
  endif()
  list(APPEND LATECOMER_ALGORITHMS_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  list(APPEND LATECOMER_ALGORITHM_SOURCES ${CMAKE_SOURCE_DIR}/core/algorithms/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.cpp)
endforeach()
