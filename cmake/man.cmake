# SPDX-License-Identifier: BSD-3-Clause
# One man page from the help of one command: cmake -DHELP2MAN= -DPROGRAM= -DCOMMAND= -DPAGE= -DOUTPUT= -DVERSION= -DINCLUDE=
# "-DCOMMANDS=run report" -P man.cmake
execute_process(COMMAND ${PROGRAM} ${COMMAND} --help OUTPUT_VARIABLE _help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^[^\n]*" _what "${_help}")
string(REGEX REPLACE "^latecomer: " "" _what "${_what}")
# SEE ALSO names every other page.
set(_see "[see also]\n")
string(REPLACE " " ";" _others "${COMMANDS}")
list(TRANSFORM _others PREPEND "latecomer-")
list(PREPEND _others latecomer)
list(REMOVE_ITEM _others ${PAGE})
foreach(_other IN LISTS _others)
  string(APPEND _see ".BR ${_other} (1),\n")
endforeach()
file(READ ${INCLUDE} _include)
file(WRITE ${OUTPUT}.h2m "${_include}\n${_see}.BR mpiexec (1)\n")
execute_process(COMMAND ${HELP2MAN} --no-info --include=${OUTPUT}.h2m "--help-option=${COMMAND} --help" "--version-string=latecomer ${VERSION}" "--name=${_what}" ${PROGRAM}
  OUTPUT_VARIABLE _page_text COMMAND_ERROR_IS_FATAL ANY)
string(TOUPPER ${PAGE} _title)
string(REPLACE ".TH LATECOMER " ".TH ${_title} " _page_text "${_page_text}")
string(REPLACE "SH NAME\nlatecomer \\-" "SH NAME\n${PAGE} \\-" _page_text "${_page_text}")
file(WRITE ${OUTPUT} "${_page_text}")
