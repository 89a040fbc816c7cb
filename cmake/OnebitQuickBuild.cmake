# ONEBIT_QUICK_BUILD: a build that parses shared headers once for many sources.

# A small source takes most of its time for headers. If the preset or ./run asks for it, the headers of
# libraries are compiled once, and sources of a target that define no common local name are compiled as
# one (tools/source_units.py). Such a build does not detect a missing include: ./run lint parses some
# sources alone. nlohmann/json.hpp is not among the headers: its inline functions take 0.3 s in every
# source that includes it, and most sources read no JSON.
option(ONEBIT_QUICK_BUILD "Read shared headers once for many sources" OFF)
set(ONEBIT_SOURCES_A_UNIT 8 CACHE STRING "The most sources that ONEBIT_QUICK_BUILD compiles as one")
set(ONEBIT_TESTS_A_UNIT 12 CACHE STRING "The most sources of tests that ONEBIT_QUICK_BUILD compiles as one")
mark_as_advanced(ONEBIT_SOURCES_A_UNIT ONEBIT_TESTS_A_UNIT)
find_package(Python3 COMPONENTS Interpreter QUIET)
set(ONEBIT_PRECOMPILED_HEADERS <algorithm> <array> <cmath> <cstring> <filesystem> <functional> <map>
  <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>
  <fmt/format.h> <fmt/ranges.h>)
if(ONEBIT_QUICK_BUILD)
  # GCC takes precompiled headers of the standard library for the project's own, and warns of strings
  # in them where nothing is wrong (GCC 12).
  target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread>)
endif()

# onebit_compile_quickly(target first_target HEADERS): compiles the target like this if
# ONEBIT_QUICK_BUILD is on. The first target compiles the headers, and the others of its kind reuse
# them.
function(onebit_compile_quickly target first)
  if(ONEBIT_QUICK_BUILD AND target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  elseif(ONEBIT_QUICK_BUILD)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
  if(ONEBIT_QUICK_BUILD AND Python3_FOUND)
    # At the end of the folder's list, when options of single sources are known.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL onebit_compile_together [[${target}]])")
  endif()
endfunction()

# A local variable may have the name of another source's constant. And GCC accepts classes that use types
# of unnamed namespaces only in the source that is compiled, not in what it includes.
add_library(onebit_of_units INTERFACE)
target_compile_options(onebit_of_units INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)

# Replaces sources of the target by units. Sources with options of their own stay alone. (CMake's own units
# contain the paths of this clone, so that no other clone could take their objects from ccache.)
function(onebit_compile_together target)
  get_target_property(all ${target} SOURCES)
  set(sources ${all})
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  foreach(source IN LISTS sources)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(options OR definitions)
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  if(NOT sources)
    return()
  endif()
  set(most ${ONEBIT_SOURCES_A_UNIT})
  set(separated "")
  if(target MATCHES "^test_")
    set(most ${ONEBIT_TESTS_A_UNIT})
    set(separated --separated)
  endif()
  set(script ${PROJECT_SOURCE_DIR}/tools/source_units.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${script} ${separated} ${most} ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(number 0)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/units)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    string(REPLACE "|" ";" members "${line}")
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/units/${target}_${number}.cc)
    set(command ${Python3_EXECUTABLE} -B ${script} ${separated} --write ${unit} ${members})
    if(separated)
      add_custom_command(OUTPUT ${unit} COMMAND ${command} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
        DEPENDS ${members} ${script} VERBATIM)
    else()  # does not depend on what the sources contain
      execute_process(COMMAND ${command} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
    endif()
    list(REMOVE_ITEM all ${members})
    list(APPEND all ${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${all}")
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:onebit_of_units>)
endfunction()
