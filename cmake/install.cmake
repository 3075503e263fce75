# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts in place, relocatable: the command finds the library beside itself.
include(CMakePackageConfigHelpers)

# Debugging information is 19 parts in 20 of what is built. The build folder keeps it.
option(LATECOMER_STRIP "cmake --install leaves out debugging information" ON)
if(LATECOMER_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")
endif()

install(TARGETS latecomer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LATECOMER_BUILD_SHIM)
  list(TRANSFORM LATECOMER_FAMILIES PREPEND latecomer_ OUTPUT_VARIABLE _families)
  install(TARGETS latecomer_shim ${_families} latecomer_symbols latecomer_client ${LATECOMER_RANGES} latecomer_core LIBRARY DESTINATION ${LATECOMER_INSTALL_PRELOADDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(LATECOMER_STRIP)  # CMake leaves archives as they are
    set(_archives)
    foreach(_archive latecomer_client ${LATECOMER_RANGES} latecomer_core)
      list(APPEND _archives "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:${_archive}>")
    endforeach()
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug \"$<JOIN:${_archives},\" \">\" COMMAND_ERROR_IS_FATAL ANY)")
  endif()
  install(TARGETS ${LATECOMER_CALIBRATES} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/latecomer)
  install(FILES shim/include/latecomer.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES shim/include/latecomer/range.h shim/include/latecomer/range.hpp shim/include/latecomer/rbc.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/latecomer)

  set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/latecomer)
  configure_package_config_file(cmake/latecomer-config.cmake.in ${CMAKE_BINARY_DIR}/generated/latecomer-config.cmake
    INSTALL_DESTINATION ${_package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR LATECOMER_INSTALL_PRELOADDIR)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/latecomer-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/latecomer-config.cmake ${CMAKE_BINARY_DIR}/generated/latecomer-config-version.cmake DESTINATION ${_package})

  # pkg-config knows where its own file lies: paths relative to it survive a prefix that is moved.
  file(RELATIVE_PATH _up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(cmake/latecomer.pc.in ${CMAKE_BINARY_DIR}/generated/latecomer.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/latecomer.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  foreach(_range ${LATECOMER_RANGES})
    string(REPLACE _ - _dashed ${_range})
    configure_file(cmake/latecomer-range.pc.in ${CMAKE_BINARY_DIR}/generated/${_dashed}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/generated/${_dashed}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
endif()
install(FILES docs/schema/policy.schema.json docs/schema/profile.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/latecomer)
# A module, which finds the prefix from its own place.
set(_modules ${CMAKE_INSTALL_DATADIR}/modulefiles/latecomer)
file(RELATIVE_PATH _up /${_modules} /)
configure_file(cmake/modulefile.in ${CMAKE_BINARY_DIR}/generated/modulefile @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/modulefile DESTINATION ${_modules} RENAME ${PROJECT_VERSION})
# Launchers that observe, for the PATH of all users (docs/guide/site.md).
set(_launchers ${CMAKE_INSTALL_DATADIR}/latecomer/launchers)
file(RELATIVE_PATH _up /${_launchers} /)
configure_file(cmake/launcher.in ${CMAKE_BINARY_DIR}/generated/launcher @ONLY)
install(PROGRAMS ${CMAKE_BINARY_DIR}/generated/launcher DESTINATION ${_launchers} RENAME mpiexec)
install(PROGRAMS ${CMAKE_BINARY_DIR}/generated/launcher DESTINATION ${_launchers} RENAME mpirun)
# As in the repository, so that links between the documents hold.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.png PATTERN *.svg PATTERN *.json PATTERN man EXCLUDE)

# Completion for bash and zsh, where their packages look for it.
if(NOT LATECOMER_SANITIZE)
  set(_bash ${CMAKE_BINARY_DIR}/completion/latecomer)
  set(_zsh ${CMAKE_BINARY_DIR}/completion/_latecomer)
  add_custom_command(OUTPUT ${_bash} ${_zsh}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
    COMMAND latecomer_cli completion bash > ${_bash}
    COMMAND latecomer_cli completion zsh > ${_zsh}
    DEPENDS latecomer_cli VERBATIM)
  add_custom_target(completion ALL DEPENDS ${_bash} ${_zsh})
  install(FILES ${_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

# Man pages are made from what the command says of itself.
find_program(HELP2MAN help2man)
if(HELP2MAN AND NOT LATECOMER_SANITIZE)
  set(_commands ${CMAKE_SOURCE_DIR}/profiles/cli/commands.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_commands})
  file(READ ${_commands} _text)
  string(REGEX MATCH "define LATECOMER_COMMANDS[^#]*" _row "${_text}")  # on several lines
  string(REGEX MATCHALL "ROW\\([a-z]+\\)" _names "${_row}")
  list(TRANSFORM _names REPLACE "ROW\\((.*)\\)" "\\1")
  list(JOIN _names " " _all)
  set(_pages)
  foreach(_name "" ${_names})
    string(JOIN - _page latecomer ${_name})
    set(_file ${CMAKE_BINARY_DIR}/man/${_page}.1)
    add_custom_command(OUTPUT ${_file}
      COMMAND ${CMAKE_COMMAND} -DHELP2MAN=${HELP2MAN} -DPROGRAM=$<TARGET_FILE:latecomer_cli> -DCOMMAND=${_name} -DPAGE=${_page} -DOUTPUT=${_file}
              -DVERSION=${PROJECT_VERSION} -DINCLUDE=${CMAKE_SOURCE_DIR}/docs/man/common.h2m "-DCOMMANDS=${_all}" -P ${CMAKE_SOURCE_DIR}/cmake/man.cmake
      DEPENDS latecomer_cli cmake/man.cmake docs/man/common.h2m VERBATIM)
    list(APPEND _pages ${_file})
  endforeach()
  add_custom_target(man ALL DEPENDS ${_pages})
  install(FILES ${_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
elseif(NOT HELP2MAN)
  message(STATUS "help2man is not installed: no man pages")
endif()
