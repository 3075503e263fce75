# SPDX-License-Identifier: BSD-3-Clause
# Embeds the files of the HTML page, and the modules of D3 that draw its axes and scales, in generated/page_files.hpp.
# Debian's packages node-d3-* have the modules; a folder node_modules of npm does as well (LATECOMER_D3).
set(_d3_modules array collection color format interpolate time time-format scale selection axis)
find_path(LATECOMER_D3 d3-scale/dist/d3-scale.min.js PATHS /usr/share/nodejs NO_CMAKE_FIND_ROOT_PATH
          DOC "Folder with the modules of D3, such as /usr/share/nodejs")
set(_plots "")
set(_licences "")
if(LATECOMER_D3)
  foreach(_module IN LISTS _d3_modules)
    set(_script ${LATECOMER_D3}/d3-${_module}/dist/d3-${_module}.min.js)
    if(NOT EXISTS ${_script})
      if(_module STREQUAL collection)  # only D3 before version 6 has it
        continue()
      endif()
      message(FATAL_ERROR "LATECOMER_D3 is ${LATECOMER_D3}, which lacks d3-${_module}/dist/d3-${_module}.min.js. Install "
        "Debian's node-d3-${_module}, or set LATECOMER_D3 to OFF for pages without plots.")
    endif()
    set(_licence "")
    foreach(_name ${LATECOMER_D3}/d3-${_module}/LICENSE /usr/share/doc/node-d3-${_module}/copyright)
      if(EXISTS ${_name} AND NOT _licence)
        file(READ ${_name} _licence)
      endif()
    endforeach()
    if(NOT _licence)
      message(FATAL_ERROR "The licence of d3-${_module} is missing, and a page with the module must hold it.")
    endif()
    file(READ ${_script} _text)
    string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" _text "${_text}")
    string(APPEND _plots "${_text}\n")
    string(APPEND _licences "d3-${_module}\n\n${_licence}\n")
  endforeach()
else()
  message(WARNING "D3 is missing, so the pages of `latecomer report --html` have tables but no plots. Debian's packages "
    "are node-d3-array, node-d3-axis, node-d3-format, node-d3-scale and node-d3-selection.")
endif()
foreach(_name page.html page.css page.js)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/render/page/${_name})
endforeach()
file(READ render/page/page.html _template)
file(READ render/page/page.css _style)
file(READ render/page/page.js _page_script)
string(CONCAT _content "#pragma once\n"
  "inline constexpr char kPageTemplate[] = R\"@file@(@_template@)@file@\";\n"
  "inline constexpr char kPageStyle[] = R\"@file@(@_style@)@file@\";\n"
  "inline constexpr char kPageScript[] = R\"@file@(@_page_script@)@file@\";\n"
  "inline constexpr char kPagePlots[] = R\"@file@(@_plots@)@file@\";\n"
  "inline constexpr char kPageLicences[] = R\"@file@(@_licences@)@file@\";\n")
string(REPLACE "@file@" "page~file" _content "${_content}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/page_files.hpp CONTENT "${_content}" @ONLY)
