# SPDX-License-Identifier: BSD-3-Clause
# LATECOMER_COMMIT, for `latecomer --version`: from git, or in an archive that git made from cmake/commit.txt, else empty.
# A new commit configures anew. Changes that are not committed count as of the last configuration.
set(LATECOMER_COMMIT "" CACHE STRING "Commit that `latecomer --version` names; empty: found out")
set(_commit "${LATECOMER_COMMIT}")
if(NOT _commit)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt _commit LIMIT_COUNT 1)
  string(SUBSTRING "${_commit}" 0 12 _commit)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/commit.txt)
endif()
if(_commit MATCHES "Format")
  set(_commit "")
  find_program(GIT git)
  if(GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT} describe --always --dirty --abbrev=12 --match v[0-9]* WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      OUTPUT_VARIABLE _commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT} rev-parse --path-format=absolute --git-path logs/HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
      OUTPUT_VARIABLE _log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS "${_log}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_log})
    endif()
  endif()
endif()
set(_version ${PROJECT_VERSION})
if(_commit)
  string(APPEND _version " (${_commit})")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/version.cpp @ONLY CONTENT [[
#include "profiles/cli/version.hpp"
const char latecomer::profiles::cli::kVersionText[] = "@_version@";
]])
